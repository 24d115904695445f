// Printed traces of real models read back in as they were.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/derivation/analysis.h"
#include "core/formats/text/text_trace.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/checking/suite.h"
#include "core/torch/tracing/op_table.h"
#include "core/trace/diff/difference.h"
#include "core/trace/print/printer.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"

namespace fs = std::filesystem;

namespace retrograd {
namespace {

std::vector<std::string> models() {
  std::vector<std::string> found;
  for (const char* folder : {"tests/data/models", "tests/data/dynamic", "resources/samples", "../shared/cases/models",
                             "../shared/cases/models_2.9", "../shared/cases/large"})
    if (const auto path = fs::path(sourcePath(folder)); fs::is_directory(path))
      for (const auto& one : findCases(path.string())) found.push_back(one.model);
  // Of the ops a sample: they are some thousand.
  if (const auto path = fs::path(sourcePath("../shared/cases/ops")); fs::is_directory(path)) {
    const auto cases = findCases(path.string());
    for (std::size_t i = 0; i < cases.size(); i += 29) found.push_back(cases[i].model);
  }
  return found;
}

std::string print(const Document& document, const std::vector<const Trace*>& traces, const PrintOptions& options) {
  std::string text;
  for (const auto* trace : traces) text += (text.empty() ? "" : "\n") + printTrace(document, *trace, options);
  return text;
}

std::string lineAround(const std::string& text, std::size_t at) {
  const auto begin = text.rfind('\n', at == 0 ? 0 : at - 1);
  return text.substr(begin + 1, text.find('\n', at) - begin - 1);
}

void expectSame(const std::string& one, const std::string& other) {
  const auto [a, b] = std::mismatch(one.begin(), one.end(), other.begin(), other.end());
  if (a == one.end() && b == other.end()) return;
  ADD_FAILURE() << "printed:  " << lineAround(one, static_cast<std::size_t>(a - one.begin()))
                << "\nread and printed: " << lineAround(other, static_cast<std::size_t>(b - other.begin()));
}

class PrintedModels : public testing::TestWithParam<std::string> {};

void expectReadsBack(const std::string& path, const DerivationRequest& analysisOptions) {
  const auto analysis = openModel(path, analysisOptions);
  if (!analysis->derived()) return;  // an op without a derivative
  PrintOptions options;
  options.computation = &analysis->computation();
  options.numbers = &analysis->request.numbers;
  options.guards = &analysis->file.guards;
  const auto text =
      print(*analysis->document,
            {&analysis->computation().trace, &analysis->joint, &analysis->forward, &analysis->backward}, options);
  const auto read = readTextTraces(text, "printed", lookupSymbol);
  ASSERT_TRUE(read.computation);
  ASSERT_EQ(read.derived.size(), 3u);
  options.computation = &*read.computation;
  options.numbers = &read.numbers;
  options.guards = &read.guards;
  TraceComparison comparison(*analysis->document, *read.document);
  for (const auto* trace : {&analysis->computation().trace, &analysis->joint, &analysis->forward, &analysis->backward})
    if (const auto difference = comparison.compare(*trace, *read.find(trace->kind)))
      ADD_FAILURE() << name(trace->kind) << ", " << difference->what << "\nwritten: " << difference->first
                    << "\nread:    " << difference->second;
  expectSame(text, print(*read.document,
                         {&read.computation->trace, &read.derived[0], &read.derived[1], &read.derived[2]}, options));
}

TEST_P(PrintedModels, readBackAsTheyWere) { expectReadsBack(GetParam(), {}); }

// A text of symbolic sizes derives what it shows, other sizes included: the conditions on them are in it.
TEST(PrintedDynamicModels, deriveTheSameAgain) {
  std::size_t symbolic = 0;
  for (const auto& one : findCases((fs::path(sourcePath("tests/data/dynamic"))).string())) {
    const auto analysis = openModel(one.model, {});
    if (!analysis->dataDependent.empty()) continue;  // the text has no inputs, so what they decide is decided again
    PrintOptions options;
    options.computation = &analysis->computation();
    options.numbers = &analysis->request.numbers;
    options.guards = &analysis->file.guards;
    const auto text =
        print(*analysis->document,
              {&analysis->computation().trace, &analysis->joint, &analysis->forward, &analysis->backward}, options);
    const auto again = analyse(readTextModel(text, "printed", lookupSymbol), {});
    EXPECT_EQ(again->printedDifferences.size(), 0u) << one.model << ": " << again->printedDifferences.front();
    symbolic += !analysis->document->sizeSymbols().empty();
  }
  EXPECT_GE(symbolic, 7u);
}

TEST_P(PrintedModels, readBackWithRecomputation) {
  DerivationRequest all, cut;
  all.partition.recompute = {"all"};
  cut.partition.kind = PartitionOptions::minCut;
  expectReadsBack(GetParam(), all);
  expectReadsBack(GetParam(), cut);
}

std::string testName(const testing::TestParamInfo<std::string>& info) {
  auto text = std::to_string(info.index) + "_" + fs::path(info.param).parent_path().filename().string() + "_" +
              fs::path(info.param).stem().string();
  std::replace_if(text.begin(), text.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return text;
}

INSTANTIATE_TEST_SUITE_P(All, PrintedModels, testing::ValuesIn(models()), testName);

}  // namespace
}  // namespace retrograd
