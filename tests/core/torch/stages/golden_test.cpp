// Golden tests: what passes make of small programs, as text (tests/data/golden). A file there is what `retrograd trace
// FILE --show all` printed; opening it derives its traces once more and compares them with those in the text.
// RETROGRAD_UPDATE_GOLDEN=1 writes them again: look at the difference before it is kept.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "core/formats/text/text_trace.h"
#include "core/torch/stages/open_pipeline.h"
#include "core/torch/stages/pipeline.h"
#include "core/trace/print/printer.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"

namespace fs = std::filesystem;

namespace retrograd {
namespace {

const fs::path folder = fs::path(sourcePath("tests/data/golden"));

bool updates() { return std::getenv("RETROGRAD_UPDATE_GOLDEN") != nullptr; }

std::vector<std::string> programs() {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".txt") found.push_back(entry.path().stem().string());
  std::sort(found.begin(), found.end());
  return found;
}

/// A program's name says how it is partitioned.
DerivationRequest requestOf(const std::string& name) {
  DerivationRequest options;
  if (name.starts_with("recomputed")) options.partition.recompute = {"all"};
  if (name.starts_with("min_cut")) options.partition.kind = PartitionOptions::minCut;
  return options;
}

std::string print(const Analysis& analysis, std::initializer_list<const Trace*> traces) {
  PrintOptions options;
  options.computation = &analysis.computation();
  std::string text;
  for (const auto* trace : traces) text += (text.empty() ? "" : "\n") + printTrace(*analysis.document, *trace, options);
  return std::regex_replace(text, std::regex(R"(took \d+ milliseconds)"), "took 0 milliseconds");
}

void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, TracesAreThoseInTheText) {
  const auto path = folder / (GetParam() + ".txt");
  const auto analysis = openModel(path.string(), requestOf(GetParam()));
  ASSERT_TRUE(analysis->derived());
  if (updates())
    return write(path, print(*analysis, {&analysis->computation().trace, &analysis->joint, &analysis->forward,
                                         &analysis->backward}));
  ASSERT_TRUE(analysis->file.printed);
  for (auto kind : {TraceKind::joint, TraceKind::forward, TraceKind::backward})
    EXPECT_TRUE(analysis->file.printed->find(kind)) << name(kind) << " is not in the text";
  for (const auto& difference : analysis->printedDifferences) ADD_FAILURE() << difference;
}

INSTANTIATE_TEST_SUITE_P(Programs, Golden, testing::ValuesIn(programs()), [](const auto& info) { return info.param; });

// The stages of a program that is cut twice: computation, forward and backward of each.
TEST(GoldenStages, AreThoseInTheText) {
  const auto path = folder / "split.txt";
  CutRequest request;
  request.at = {"#c:before", "#d:after"};
  auto cut = openCut(path.string(), request, {}, [](const ModelFile&) { return DerivationRequest(); }, true);
  const auto pipeline = derivePipeline(std::move(cut.model), cut.whole, std::move(cut.split));
  std::string text;
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s)
    text += "# stage " + std::to_string(s) + "\n" +
            print(*pipeline.stages[s], {&pipeline.stages[s]->computation().trace, &pipeline.stages[s]->forward,
                                        &pipeline.stages[s]->backward}) +
            "\n";
  const auto expected = folder / "split.stages";
  if (updates()) return write(expected, text);
  std::stringstream known;
  known << std::ifstream(expected).rdbuf();
  EXPECT_EQ(known.str(), text);
}

}  // namespace
}  // namespace retrograd
