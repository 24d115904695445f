// A second opinion against backward texts that were changed at random.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/formats/fx/fx_reader.h"
#include "core/formats/jobs/job_graphs.h"
#include "core/torch/judging/compare.h"
#include "core/torch/opinion/second_opinion.h"
#include "tests/core/formats/cases.h"
#include "tests/core/torch/opinion/sample_job.h"

namespace retrograd {
namespace {

/// Changes a backward text at random: an operand for another of its type, a constant, a term left out, a dtype, a None.
class Editor {
 public:
  explicit Editor(std::uint64_t seed) : random_(seed) {}

  /// Empty where nothing fits.
  std::string edit(const std::string& text) {
    const auto graph = fx::readGraph(text, "edited");
    std::vector<std::string> lines;
    for (std::size_t at = 0; at <= text.size();) {
      const auto end = std::min(text.find('\n', at), text.size());
      lines.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    for (int tries = 0; tries < 200; ++tries) {
      const auto n = pick(graph.nodes.size() + graph.outputs.size());
      const bool isOutput = n >= graph.nodes.size();
      auto& line = lines.at(
          static_cast<std::size_t>(isOutput ? graph.outputs[n - graph.nodes.size()].line : graph.nodes[n].line) - 1);
      const auto before = line;
      if (isOutput) {
        editOutput(line);
      } else {
        editNode(graph, n, line);
      }
      if (line == before) continue;
      return fmt::format("{}", fmt::join(lines, "\n"));
    }
    return {};
  }

 private:
  std::size_t pick(std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_); }

  void editOutput(std::string& line) {
    if (line.find("None") == std::string::npos && line.find(",  #") != std::string::npos)
      line = "            None," + line.substr(line.find(",  #") + 1);
  }

  void editNode(const fx::Graph& graph, std::size_t n, std::string& line) {
    const auto call = line.find(" = ");
    auto end = line.find(";  ");
    if (end == std::string::npos) end = line.size();
    auto right = line.substr(call, end - call);
    if (pick(3) == 0) {
      editConstant(right);
    } else {
      editOperand(graph, n, right);
    }
    line = line.substr(0, call) + right + line.substr(end);
  }

  void editConstant(std::string& right) {
    if (const auto at = right.find("torch.bfloat16"); at != std::string::npos) {
      right.replace(at, 14, "torch.float32");
      return;
    }
    for (auto at = right.rfind(", "); at != std::string::npos && at > 0; at = right.rfind(", ", at - 1)) {
      const auto number = right.find_first_not_of("0123456789.e-", at + 2);
      if (number == at + 2 || right.substr(at + 2, number - at - 2).find('.') == std::string::npos) continue;
      right.replace(at + 2, number - at - 2, "3.25");
      return;
    }
  }

  /// Another value of the same type that is there before; for a sum of two, one of them twice.
  void editOperand(const fx::Graph& graph, std::size_t n, std::string& right) {
    std::vector<std::size_t> operands;
    fx::forEachValue(graph.nodes[n].call, [&](std::size_t value) { operands.push_back(value); });
    if (operands.empty()) return;
    const auto old = operands[pick(operands.size())];
    const auto type = graph.valueType(old);
    if (type == fx::noIndex || graph.types[type].kind != fx::Type::Kind::tensor) return;
    std::vector<std::size_t> others;
    for (std::size_t value = 0; value < graph.inputs.size() + n; ++value) {
      if (value != old && graph.valueType(value) == type) others.push_back(value);
    }
    if (others.empty()) return;
    const auto& from = graph.valueName(old);
    for (auto at = right.find(from); at != std::string::npos; at = right.find(from, at + 1)) {
      const auto isPart = [&](std::size_t i) {
        return i < right.size() &&
               (std::isalnum(static_cast<unsigned char>(right[i])) || right[i] == '_' || right[i] == '.');
      };
      if (isPart(at - 1) || isPart(at + from.size())) continue;
      right.replace(at, from.size(), graph.valueName(others[pick(others.size())]));
      return;
    }
  }

  std::mt19937_64 random_;
};

/// Whether two sets of gradients differ by more than rounding: the oracle of the edits, which asks nothing of the
/// second opinion.
bool changed(const TensorMap& before, const TensorMap& after) {
  if (before.size() != after.size()) return true;
  for (const auto& [name, tensor] : before) {
    if (!after.contains(name)) return true;
    const auto found = difference(after.at(name), tensor, true);
    if (!found.failure.empty() || found.deviation > 0.02 * found.scale) return true;
  }
  return false;
}

// J15: 200 random edits of the samples' backward texts; all that change a result are found.
TEST(SecondOpinion, J15_RandomEditsAreFound) {
  const auto folder = test::cases() / "jobs";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "the samples are not beside this checkout";
  int edits = 0, changes = 0;
  for (const auto* name : {"graph_break", "convolution", "convolution_torch260", "ranks", "gpt_amp"}) {
    const auto log = jobs::openJobLog((folder / name / "trace").string());
    SecondOpinionRequest request;
    if (std::string(name) != "ranks" && std::string(name) != "graph_break") request = requestOf(folder / name);
    request.reference.reset();
    if (std::string(name) == "ranks") request.compile = "6/0";
    const auto choice = jobs::chooseCompile(log, request.compile);
    const auto path = log.files[choice.process->file].path;
    const auto& payload = choice.attempt->find(jobs::GraphKind::backward)->payload;
    const auto original = secondOpinion(log, request);
    ASSERT_EQ(verdictOf(original), Verdict::pass) << name << reasonOf(original);
    const auto all = test::contentOf(path), text = jobs::payloadText(log, payload);
    Editor editor(17);
    for (int i = 0; i < (std::string(name) == "gpt_amp" ? 20 : 45); ++i) {
      const auto edited = editor.edit(text.substr(0, text.size() - 1));
      ASSERT_FALSE(edited.empty());
      std::string lines;
      for (std::size_t at = 0; at <= edited.size();) {
        const auto end = std::min(edited.find('\n', at), edited.size());
        lines += "\t" + edited.substr(at, end - at) + "\n";
        at = end + 1;
      }
      const auto file = test::writeTemporary(
          "edited.log", all.substr(0, payload.offset) + lines + all.substr(payload.offset + payload.bytes));
      const auto opinion = secondOpinion(jobs::openJobLog(file), request);
      ++edits;
      const bool doesNotRun = opinion.imported.empty() && verdictOf(opinion) == Verdict::fail;
      if (!doesNotRun && !changed(original.imported, opinion.imported)) continue;
      ++changes;
      EXPECT_EQ(verdictOf(opinion), Verdict::fail) << name << ", edit " << i << ": " << reasonOf(opinion) << "\n"
                                                   << edited;
    }
  }
  EXPECT_GE(edits, 200);
  EXPECT_GE(changes, 100);
}

}  // namespace
}  // namespace retrograd
