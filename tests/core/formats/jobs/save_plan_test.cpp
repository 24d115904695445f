#include "core/formats/jobs/save_plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>

#include "core/formats/fx/fx_reader.h"
#include "core/formats/jobs/equal_layers.h"
#include "tests/core/formats/cases.h"

namespace retrograd {
namespace {

// A job of four layers, as PyTorch prints its graphs: the backward computes `mm` of each layer again from the saved
// `relu`.
struct Job {
  std::size_t layers = 4;
  std::map<std::size_t, std::string> policy;  ///< of a layer's relu, where it is not MUST_SAVE
  std::set<std::size_t> savesProduct;         ///< layers that save mm
  std::set<std::size_t> recomputesRelu;       ///< layers whose backward runs relu and mm again
  bool hasJoint = true;

  static std::string comment(const std::string& policy) {
    if (policy.empty()) return "        # File: /job/m.py:7 in forward, code: x\n";
    return fmt::format("        # ac_graph_id: 1 - {} File: /job/m.py:7 in forward, code: x\n", policy);
  }

  std::string layer(std::size_t i) const {
    const auto found = policy.find(i);
    return comment("PREFER_RECOMPUTE") +
           fmt::format("        t_{0}: \"f32[8, 8][1, 8]cpu\" = torch.ops.aten.t.default(primals_{0})\n", i) +
           fmt::format("        mm_{0}: \"f32[2, 8][8, 1]cpu\" = torch.ops.aten.mm.default({1}, t_{0})\n", i,
                       i == 0 ? "x" : fmt::format("add_{}", i - 1)) +
           comment(found == policy.end() ? "MUST_SAVE" : found->second) +
           fmt::format("        relu_{0}: \"f32[2, 8][8, 1]cpu\" = torch.ops.aten.relu.default(mm_{0})\n", i) +
           comment("PREFER_RECOMPUTE") +
           fmt::format("        add_{0}: \"f32[2, 8][8, 1]cpu\" = torch.ops.aten.add.Tensor(relu_{0}, {1})\n", i,
                       i == 0 ? "x" : fmt::format("add_{}", i - 1));
  }
  std::string inputs() const {
    std::string text = "x: \"f32[2, 8][8, 1]cpu\"";
    for (std::size_t i = 0; i < layers; ++i) text += fmt::format(", primals_{}: \"f32[8, 8][8, 1]cpu\"", i);
    return text;
  }
  std::string body() const {
    std::string text;
    for (std::size_t i = 0; i < layers; ++i) text += layer(i);
    return text + fmt::format(
                      "        # File: /job/m.py:9 in forward, code: x\n        sum_1: \"f32[][]cpu\" = "
                      "torch.ops.aten.sum.default(add_{})\n",
                      layers - 1);
  }
  std::string forward() const {
    auto text = fmt::format(
        "class G(torch.nn.Module):\n    def forward(self, {}):\n{}        return (sum_1,  # PlainAOTOutput(idx=0)\n",
        inputs(), body());
    for (std::size_t i = 0; i < layers; ++i) {
      if (!recomputesRelu.contains(i))
        text += fmt::format("            relu_{},  # SavedForBackwardsAOTOutput(idx={})\n", i, i);
      if (savesProduct.contains(i))
        text += fmt::format("            mm_{},  # SavedForBackwardsAOTOutput(idx={})\n", i, 10 + i);
    }
    return text + "        )\n";
  }
  std::string backward() const {
    auto text =
        fmt::format("class G(torch.nn.Module):\n    def forward(self, {}, tangents_1: \"f32[][]cpu\"):\n", inputs());
    for (const auto i : recomputesRelu)
      text += fmt::format("        relu_{0}: \"f32[2, 8][8, 1]cpu\" = torch.ops.aten.relu.default(primals_{0})\n", i);
    return text + "        neg: \"f32[][]cpu\" = torch.ops.aten.neg.default(tangents_1)\n        return (neg,)\n";
  }
  std::string joint() const {
    auto text =
        fmt::format("class inner_f(torch.nn.Module):\n    def forward(self, {}, tangents_1: \"f32[][]cpu\"):\n{}",
                    inputs(), body());
    text += "        neg: \"f32[][]cpu\" = torch.ops.aten.neg.default(tangents_1)\n";
    for (auto i = layers; i-- > 0;)
      text += fmt::format(
          "        le_{0}: \"b8[2, 8][8, 1]cpu\" = torch.ops.aten.threshold_backward.default(neg, relu_{0}, 0)\n", i);
    return text + "        return (sum_1, neg)\n";
  }
  SavePlan plan() const {
    JobGraphs graphs;
    graphs.forward = fx::readGraph(forward(), "forward");
    graphs.backward = fx::readGraph(backward(), "backward");
    if (hasJoint) graphs.joint = fx::readGraph(joint(), "joint");
    graphs.sources.resize(graphs.forward.inputs.size());
    graphs.results = 1;
    return savePlanOf(graphs);
  }
};

TEST(SavePlan, EqualLayersAreFoundAndTheirSavedTensorsFolded) {
  const auto plan = Job().plan();
  ASSERT_EQ(plan.layers.size(), 4u);
  for (const auto& layer : plan.layers) EXPECT_EQ(layer.ops, 4u);
  ASSERT_EQ(plan.residuals.rows.size(), 1u);
  EXPECT_EQ(plan.residuals.rows[0].layers, (std::vector<std::size_t>{0, 1, 2, 3}));
  EXPECT_EQ(layersText(plan, plan.residuals.rows[0].layers), "layers 0 to 3");
  EXPECT_TRUE(findingsOf(plan).empty());
}

TEST(SavePlan, TotalsCountEachStorageOnceAndInputsApart) {
  auto job = Job();
  job.savesProduct = {0, 1, 2, 3};
  const auto plan = job.plan();
  EXPECT_EQ(plan.saved.values, 8u);
  EXPECT_EQ(plan.saved.bytes, 8 * 2 * 8 * 4);
  ASSERT_TRUE(plan.allSaved);
  EXPECT_EQ(plan.allSaved->values, 4u) << "the joint's backward reads relu alone";
  EXPECT_EQ(plan.allSaved->bytes, 4 * 2 * 8 * 4);
  job.hasJoint = false;
  EXPECT_FALSE(job.plan().allSaved);
}

TEST(SavePlan, ALayerWithAnotherPolicyIsAFindingThatSaysWhatTheOthersHave) {
  for (std::size_t odd = 0; odd < 4; ++odd) {
    auto job = Job();
    job.policy[odd] = "PREFER_RECOMPUTE";
    const auto findings = findingsOf(job.plan());
    ASSERT_EQ(findings.size(), 1u) << odd;
    EXPECT_TRUE(findings[0].starts_with(fmt::format(
        "layer {}: relu_{} = aten.relu: f32[2, 8], 64 bytes (/job/m.py:7) is saved (PREFER_RECOMPUTE); in layers ", odd,
        odd)))
        << findings[0];
    EXPECT_TRUE(findings[0].ends_with(" saved (MUST_SAVE)")) << findings[0];
  }
}

TEST(SavePlan, ALayerThatSavesMoreIsAFindingWithBothTotals) {
  auto job = Job();
  job.savesProduct = {2};
  const auto findings = findingsOf(job.plan());
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0], "layer 2 saves 128 bytes, layers 0, 1 and 3 save 64 bytes each");
  EXPECT_EQ(findings[1],
            "layer 2: mm_2 = aten.mm: f32[2, 8], 64 bytes (/job/m.py:7) is saved (PREFER_RECOMPUTE); in layers 0, 1 "
            "and 3 not needed (PREFER_RECOMPUTE)");
}

TEST(SavePlan, OpsThatDifferInPolicyAloneAreOneFinding) {
  auto job = Job();
  job.policy[1] = "";
  const auto findings = findingsOf(job.plan());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].find("is saved (no policy); in layers 0, 2 and 3 saved (MUST_SAVE)"), std::string::npos)
      << findings[0];
}

TEST(SavePlan, ALayerThatRecomputesIsAFindingAndItsOpHasTheFate) {
  auto job = Job();
  job.recomputesRelu = {1};
  const auto plan = job.plan();
  const auto findings = findingsOf(plan);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0], "layer 1 saves 0 bytes, layers 0, 2 and 3 save 64 bytes each");
  EXPECT_NE(findings[1].find("layer 1: relu_1"), std::string::npos);
  EXPECT_NE(findings[1].find("is recomputed (MUST_SAVE); in layers 0, 2 and 3 saved (MUST_SAVE)"), std::string::npos)
      << findings[1];
  const auto must = std::find_if(plan.policies.begin(), plan.policies.end(),
                                 [](const auto& count) { return count.policy == "MUST_SAVE"; });
  ASSERT_NE(must, plan.policies.end());
  EXPECT_EQ(must->saved, 3u);
  EXPECT_EQ(must->recomputed, 1u);
}

TEST(SavePlan, EveryLayerRecomputingWhatMustBeSavedIsAFindingToo) {
  auto job = Job();
  job.recomputesRelu = {0, 1, 2, 3};
  EXPECT_EQ(findingsOf(job.plan()).size(), 4u);
}

TEST(SavePlan, ManyLayersAreWrittenAsRunsAndALongListIsCut) {
  auto job = Job();
  job.layers = 40;
  const auto plan = job.plan();
  EXPECT_EQ(layersText(plan, {0, 1, 2, 3, 5, 7, 8}), "layers 0 to 3, 5, 7 and 8");
  EXPECT_EQ(layersText(plan, {4, 5, 6}), "layers 4 to 6");
  EXPECT_EQ(layersText(plan, {0, 2, 4, 6, 8, 10, 12, 14, 16, 18}), "layers 0, 2, 4, 6, 8, 10, ... and 18");
}

TEST(SavePlan, AnotherLayerInTheMiddleDoesNotHideTheEqualOnes) {
  auto job = Job();
  auto text = job.forward();
  const auto at = text.find("relu.default(mm_2)");
  text.replace(at, 4, "gelu");
  const auto groups = jobs::equalLayers(fx::readGraph(text, "forward"), 16);
  ASSERT_EQ(groups.size(), 1u);
  ASSERT_EQ(groups[0].layers.size(), 3u);
  EXPECT_EQ(groups[0].layers[2].front(), 12u);
}

TEST(SavePlan, ThreeEqualOpsThatReadNoInputAreNotLayers) {
  std::string text =
      "class G(torch.nn.Module):\n    def forward(self, x: \"f32[2][1]cpu\"):\n        a0: \"f32[2][1]cpu\" = "
      "torch.ops.aten.sin.default(x)\n";
  for (int i = 1; i < 20; ++i)
    text += fmt::format("        a{}: \"f32[2][1]cpu\" = torch.ops.aten.{}.default(a{})\n", i,
                        i % 4 == 0 ? "cos" : "sin", i - 1);
  EXPECT_TRUE(jobs::equalLayers(fx::readGraph(text + "        return (a19,)\n", "g"), 20).empty());
}

// The samples.

std::string logOf(const std::string& job) {
  const auto files = test::filesBelow(test::cases() / "jobs" / job, ".log");
  return files.empty() ? std::string() : files[0];
}

JobGraphs graphsOf(const std::string& log) {
  const auto opened = jobs::openJobLog(log);
  return readUnpairedGraphs(opened, *jobs::chooseCompile(opened, {}).attempt);
}

/// The lines of the payload of a graph, read here by regular expressions.
std::vector<std::string> forwardLines(const std::string& content) {
  const auto begin = content.find('\n', content.find("\"aot_forward_graph\"")) + 1;
  std::vector<std::string> lines;
  for (auto at = begin; content[at] == '\t'; at = content.find('\n', at) + 1)
    lines.push_back(content.substr(at + 1, content.find('\n', at) - at - 1));
  return lines;
}

/// 24 of "2, 12".
std::int64_t productOf(const std::string& sizes) {
  std::int64_t product = 1;
  std::istringstream in(sizes);
  for (std::string size; std::getline(in, size, ',');) product *= std::stoll(size);
  return product;
}

TEST(SavePlan, TheTableOfASampleIsItsForwardsOwnOutputsWithTheirBytes) {
  for (const auto* job : {"gpt_checkpoint", "gpt", "gpt_amp", "convolution", "gpt_torch2100"}) {
    const auto log = logOf(job);
    if (log.empty()) GTEST_SKIP() << "no samples of jobs";
    std::vector<std::string> outputs;
    std::map<std::string, std::int64_t> bytes;
    const std::map<std::string, std::int64_t> sizes{{"f32", 4}, {"i64", 8}, {"bf16", 2}, {"b8", 1}};
    for (const auto& line : forwardLines(test::contentOf(log))) {
      std::smatch match;
      if (std::regex_match(line, match, std::regex(R"( +(\w+),  # SavedForBackwardsAOTOutput\(idx=\d+\))")))
        outputs.push_back(match[1]);
      if (!std::regex_search(line, match, std::regex(R"re(^ +(\w+): "(\w+)\[([\d, ]*)\])re"))) continue;
      bytes[match[1]] = sizes.at(match[2]) * productOf(match[3]);
    }
    const auto plan = savePlanOf(graphsOf(log));
    ASSERT_GT(outputs.size(), 10u) << job;
    ASSERT_EQ(plan.residuals.values.size(), outputs.size()) << job;
    std::size_t inRows = 0;
    for (const auto& row : plan.residuals.rows) inRows += row.values.size();
    EXPECT_EQ(inRows, outputs.size()) << job;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_EQ(plan.residuals.values[i].name, outputs[i]) << job;
      EXPECT_EQ(plan.residuals.values[i].bytes, bytes.at(outputs[i])) << job << ": " << outputs[i];
    }
    EXPECT_TRUE(findingsOf(plan).empty()) << job << ": " << findingsOf(plan)[0];
  }
}

TEST(SavePlan, LayersOfASampleHaveTheNamesOfTheirModules) {
  const auto log = logOf("gpt_checkpoint");
  if (log.empty()) GTEST_SKIP() << "no samples of jobs";
  const auto plan = savePlanOf(graphsOf(log));
  ASSERT_EQ(plan.layers.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(plan.layers[i].module, fmt::format("blocks.{}", i));
  EXPECT_EQ(plan.saved.bytes, 121828);
  ASSERT_TRUE(plan.allSaved);
  EXPECT_GT(plan.allSaved->bytes, plan.saved.bytes);
  ASSERT_EQ(notesOf(plan).size(), 1u) << "the last layer saves addmm_15 in place of its result";
}

TEST(SavePlan, LayersOfADynamicGraphAreEqualThoughTheFirstComputesTheSizes) {
  const auto log = logOf("gpt_dynamic");
  if (log.empty()) GTEST_SKIP() << "no samples of jobs";
  const auto plan = savePlanOf(graphsOf(log));
  EXPECT_EQ(plan.layers.size(), 2u);
  for (const auto& value : plan.residuals.values)
    EXPECT_TRUE(value.bytes) << value.name << " has sizes that the job met";
}

/// Replaces `from` in the graph texts of these kinds; how often is added to `count`.
std::string edited(std::string content, const std::string& from, const std::string& to,
                   const std::vector<std::string>& kinds, std::size_t& count) {
  for (const auto& kind : kinds) {
    const auto record = content.find("\"" + kind + "\"");
    for (auto at = content.find(from, record); at != std::string::npos && content.rfind("\nV", at) < record;
         at = content.find(from, at + to.size()), ++count)
      content.replace(at, from.size(), to);
  }
  return content;
}

TEST(SavePlan, OneLayerOfFourGivenAnotherPolicyInTheSampleIsNamed) {
  const auto log = logOf("gpt_checkpoint");
  if (log.empty()) GTEST_SKIP() << "no samples of jobs";
  const auto content = test::contentOf(log);
  const std::vector<std::vector<std::string>> places{
      {"aot_forward_graph"}, {"aot_joint_graph"}, {"aot_joint_graph", "aot_forward_graph"}};
  for (std::size_t layer = 0; layer < 4; ++layer) {
    for (const auto& kinds : places) {
      const auto line = fmt::format("# ac_graph_id: {} - MUST_SAVE File: /job/train.py:21 in", 5 + layer);
      const auto other = fmt::format("# ac_graph_id: {} - PREFER_RECOMPUTE File: /job/train.py:21 in", 5 + layer);
      std::size_t count = 0;
      const auto text = edited(content, line, other, kinds, count);
      ASSERT_EQ(count, kinds.size());
      const auto findings = findingsOf(savePlanOf(graphsOf(test::writeTemporary("policy.log", text))));
      ASSERT_EQ(findings.size(), 1u) << layer << " " << kinds[0];
      EXPECT_TRUE(findings[0].starts_with(fmt::format("layer {} (blocks.{}): addmm_{} ", layer, layer, 4 * layer + 1)))
          << findings[0];
      EXPECT_NE(findings[0].find("PREFER_RECOMPUTE"), std::string::npos) << findings[0];
      EXPECT_LT(findings[0].find("PREFER_RECOMPUTE"), findings[0].rfind("MUST_SAVE")) << findings[0];
    }
  }
}

TEST(SavePlan, OneLayerOfFourThatSavesAnotherValueInTheSampleIsNamed) {
  const auto log = logOf("gpt_checkpoint");
  if (log.empty()) GTEST_SKIP() << "no samples of jobs";
  const auto content = test::contentOf(log);
  for (std::size_t layer = 0; layer < 4; ++layer) {
    std::size_t count = 0;
    const auto saved = fmt::format("addmm_{}", 4 * layer + 1), instead = fmt::format("add_{}", 2 * layer + 1);
    const auto text = edited(content, "\t            " + saved + ",  # Saved",
                             "\t            " + instead + ",  # Saved", {"aot_forward_graph"}, count);
    ASSERT_EQ(count, 1u);
    const auto findings = findingsOf(savePlanOf(graphsOf(test::writeTemporary("saved.log", text))));
    ASSERT_EQ(findings.size(), 2u) << layer;
    for (const auto& finding : findings)
      EXPECT_TRUE(finding.starts_with(fmt::format("layer {} (blocks.{}): ", layer, layer))) << finding;
    EXPECT_NE(findings[0].find(saved + " "), std::string::npos) << findings[0];
    EXPECT_NE(findings[1].find(instead + " "), std::string::npos) << findings[1];
  }
}

}  // namespace
}  // namespace retrograd
