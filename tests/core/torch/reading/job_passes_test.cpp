#include "core/torch/reading/job_passes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <set>

#include "core/formats/jobs/md5.h"
#include "tests/core/formats/cases.h"

namespace retrograd {
namespace {

using State = FollowedOp::State;

std::string graph(const std::string& body) {
  return "class G(torch.nn.Module):\n    def forward(self, x: \"f32[4, 4][4, 1]cpu\", w: \"f32[4, 4][4, 1]cpu\"):\n" +
         body;
}

std::string line(int number) { return fmt::format("        # File: /job/m.py:{} in f, code: y\n", number); }

std::string op(const std::string& name, const std::string& call) {
  return fmt::format("        {}: \"f32[4, 4][4, 1]cpu\" = {}\n", name, call);
}

/// A structured log of one compile with these graphs, by the keys or, after a colon, the names of artifacts.
std::string logOf(const std::vector<std::pair<std::string, std::string>>& graphs) {
  std::string text;
  for (const auto& [key, payload] : graphs) {
    jobs::Md5 md5;
    md5.add(payload);
    const auto what = key.starts_with("artifact:")
                          ? fmt::format("\"artifact\": {{\"name\": \"{}\", \"encoding\": \"string\"}}", key.substr(9))
                          : fmt::format("\"{}\": {{}}", key);
    text += fmt::format(
        "V1122 08:20:21.133000 77 a/b.py:18] {{{}, \"frame_id\": 0, \"frame_compile_id\": 0, \"attempt\": 0, "
        "\"has_payload\": \"{}\"}}\n",
        what, md5.digest());
    std::string_view rest = payload;
    while (!rest.empty()) {
      const auto end = std::min(rest.find('\n'), rest.size());
      text += "\t" + std::string(rest.substr(0, end)) + "\n";
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return text;
}

JobPasses passesOf(const std::string& path, const std::string& compile = {}) {
  const auto log = jobs::openJobLog(path);
  return jobPasses(log, jobs::chooseCompile(log, compile));
}

/// Dynamo's graph, ATen's, and two of Inductor: `mul` is dropped, mm and relu become one op, `neg` stays and sees
/// another operand.
JobPasses planted() {
  const auto dynamo = graph(line(3) + op("linear", "torch._C._nn.linear(x, w)") + line(4) + op("h", "linear.relu()") +
                            line(5) + op("scaled", "h * 1.0") + line(6) +
                            op("part", "scaled[(slice(None, 2, None), Ellipsis)]") + "        return (part,)");
  const auto head = line(3) + op("t", "torch.ops.aten.t.default(w)") + op("mm", "torch.ops.aten.mm.default(x, t)") +
                    line(4) + op("relu", "torch.ops.aten.relu.default(mm)");
  const auto tail = line(5) + op("mul", "torch.ops.aten.mul.Tensor(relu, 1.0)") + line(6) +
                    op("neg", "torch.ops.aten.neg.default(mul)") + "        return (neg,)";
  const auto fused =
      graph(line(3) + op("fused", "torch.ops.mkldnn._linear_pointwise.default(x, w, None, 'relu', [], '')") + line(6) +
            op("neg", "torch.ops.aten.neg.default(fused)") + "        return (neg,)");
  return passesOf(test::writeTemporary("passes.log", logOf({{"dynamo_output_graph", dynamo},
                                                            {"aot_inference_graph", graph(head + tail)},
                                                            {"artifact:before_post_grad_graph", graph(head + tail)},
                                                            {"artifact:inductor_post_grad_graph", fused}})));
}

BoundSymbolId opNamed(const JobPass& pass, const std::string& value) {
  for (const auto op : pass.trace().ops)
    for (const auto output : pass.analysis->document->outputs(op))
      if (pass.analysis->document->displayName(output) == value) return op;
  return {};
}

std::string valueOf(const JobPass& pass, BoundSymbolId op) {
  return pass.analysis->document->displayName(pass.analysis->document->outputs(op)[0]);
}

// Holds J3: the graphs of one compile in the order of its passes, each with what it changed.
TEST(JobPasses, J3_GraphsOfACompileAreAChainWithWhatEachPassChanged) {
  const auto chain = planted();
  ASSERT_EQ(chain.passes.size(), 4u);
  const char* names[] = {"dynamo", "inference", "before-post-grad", "post-grad"};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(chain.passes[i].name, names[i]);
    EXPECT_EQ(chain.passes[i].problem, "");
    ASSERT_TRUE(chain.passes[i].analysis) << i;
    EXPECT_EQ(chain.passes[i].before, i == 0 ? std::nullopt : std::optional(i - 1));
  }
  EXPECT_EQ(chain.passes[0].trace().ops.size(), 4u);
  EXPECT_EQ(chain.passes[0].analysis->document->opName(opNamed(chain.passes[0], "h")), "torch.ops.Tensor.relu.default");
  EXPECT_EQ(chain.passes[0].analysis->document->opName(opNamed(chain.passes[0], "linear")),
            "torch.ops.torch__C__nn.linear.default");
  EXPECT_TRUE(chain.passes[2].diff->equal());
  EXPECT_EQ(chain.passes[3].diff->counts.onlyRight + chain.passes[3].diff->counts.changed, 2u);  // fused; neg reads it
  EXPECT_GE(chain.passes[3].diff->counts.onlyLeft, 3u);
  EXPECT_EQ(chain.find("post"), 3u);
  EXPECT_THROW(chain.find("fusion"), Error);
}

TEST(JobPasses, J3_AnOpIsFollowedToWhereItIsDroppedOrReplaced) {
  const auto chain = planted();
  auto followed = followOp(chain, 1, opNamed(chain.passes[1], "mul"));
  EXPECT_EQ(followed[2].state, State::same);
  EXPECT_EQ(followed[3].state, State::gone);
  EXPECT_TRUE(followed[3].ops.empty());
  followed = followOp(chain, 1, opNamed(chain.passes[1], "mm"));
  EXPECT_EQ(followed[3].state, State::replaced);
  ASSERT_EQ(followed[3].ops.size(), 1u);
  EXPECT_EQ(valueOf(chain.passes[3], followed[3].ops[0]), "fused");
  followed = followOp(chain, 1, opNamed(chain.passes[1], "neg"));
  EXPECT_EQ(followed[3].state, State::changed);
  EXPECT_EQ(valueOf(chain.passes[3], followed[3].ops[0]), "neg");
  // Back to the first graph, by the line of Python.
  followed = followOp(chain, 3, opNamed(chain.passes[3], "fused"));
  EXPECT_EQ(followed[2].state, State::replaced);
  EXPECT_EQ(followed[0].state, State::replaced);
  ASSERT_FALSE(followed[0].ops.empty());
  EXPECT_EQ(valueOf(chain.passes[0], followed[0].ops[0]), "linear");
}

// The log's list, which counts by lines, and the passes, which are read, give one number.
TEST(JobPasses, J3_AGraphHasAsManyOpsInTheListOfTheLogAsInItsPasses) {
  std::vector<std::string> folders{sourcePath("resources/samples/layers/trace"),
                                   sourcePath("resources/samples/lost_precision/trace")};
  for (const auto* job :
       {"gpt", "gpt_torch260", "gpt_torch2100", "convolution", "gpt_checkpoint", "gpt_dynamic", "gpt_amp", "tp"})
    if (const auto folder = test::cases() / "jobs" / job / "trace"; std::filesystem::exists(folder))
      folders.push_back(folder.string());
  for (const auto& folder : folders) {
    const auto log = jobs::openJobLog(folder);
    const auto place = jobs::chooseCompile(log, {});
    for (const auto& pass : jobPasses(log, place).passes) {
      ASSERT_TRUE(pass.analysis) << folder << ": " << pass.name;
      EXPECT_EQ(place.attempt->graphs[pass.graph].ops, static_cast<std::int64_t>(pass.trace().ops.size()))
          << folder << ": " << pass.name;
    }
  }
}

TEST(JobPasses, J3_AllGraphsOfTheSamplesAreInTheChain) {
  for (const auto* job : {"gpt", "gpt_torch260", "gpt_torch2100", "convolution", "gpt_checkpoint", "gpt_dynamic",
                          "gpt_amp", "tp", "lost_precision"}) {
    const auto folder = (test::cases() / "jobs" / job / "trace").string();
    if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
    const auto chain = passesOf(folder);
    EXPECT_GE(chain.passes.size(), 4u) << job;
    std::set<std::string> names;
    for (const auto& pass : chain.passes) {
      EXPECT_EQ(pass.problem, "") << job << ": " << pass.name;
      EXPECT_TRUE(names.insert(pass.name).second) << job << ": " << pass.name;
      EXPECT_EQ(!pass.before, pass.name == "dynamo") << job << ": " << pass.name;
      if (pass.diff && pass.name.starts_with("before-post-grad"))
        EXPECT_LT(pass.diff->counts.onlyRight, pass.trace().ops.size() / 2) << job << ": " << pass.name;
    }
    EXPECT_TRUE(names.contains("joint") && names.contains("forward") && names.contains("backward")) << job;
  }
}

}  // namespace
}  // namespace retrograd
