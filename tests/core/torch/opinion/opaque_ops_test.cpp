// Jobs with ops that cannot run here: what else differs is found, and what cannot be known is said.
#include <gtest/gtest.h>

#include "core/formats/fx/fx_reader.h"
#include "core/formats/listing/stand_ins.h"
#include "core/torch/opinion/second_opinion.h"
#include "core/torch/tracing/op_table.h"
#include "tests/core/formats/cases.h"
#include "tests/core/torch/opinion/sample_job.h"
#include "tests/core/torch/opinion/written_log.h"
#include "tests/support/float_tensor.h"

namespace retrograd {
namespace {

using test::logOf, test::replaced;
// loss = sum(swish(x @ w) * 2) with an op of the author's own, whose backward is one too
const std::string call = R"(torch.ops.myops.swish.default(mm, {'beta': 1.5}))",
                  backwardCall = "torch.ops.myops.swish_backward.default(mul_1, mm)";

const std::string forward =
    replaced(replaced(test::writtenForward, "torch.ops.aten.tanh.default(mm);  mm = None", call), "tanh,  # Saved",
             "mm,  # Saved");

const std::string backward = [] {
  auto text = test::writtenBackward;
  text = replaced(text, "        tanh: \"f32[4, 5][5, 1]cpu\",\n", "        mm: \"f32[4, 5][5, 1]cpu\",\n");
  const auto from = text.find("        mul_2:"), to = text.find("        t: \"f32[5, 3]");
  return text.replace(from, to - from, "        mul_3: \"f32[4, 5][5, 1]cpu\" = " + backwardCall + "\n");
}();

const std::string joint = R"py(class inner_f(torch.nn.Module):
    def forward(
        self,
        primals,
        tangents,
    ):
        primals_1: "f32[4, 3][3, 1]cpu"  # PlainAOTInput(idx=0)
        primals_2: "f32[3, 5][5, 1]cpu"  # PlainAOTInput(idx=1)
        tangents_1: "f32[][]cpu"  # TangentAOTInput(output=PlainAOTOutput(idx=0))
        primals_1, primals_2, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
        # File: /job/train.py:7 in f, code: y = swish(x @ w)
        mm: "f32[4, 5][5, 1]cpu" = torch.ops.aten.mm.default(primals_1, primals_2)
        tanh: "f32[4, 5][5, 1]cpu" = torch.ops.myops.swish.default(mm, {'beta': 1.5})
        mul: "f32[4, 5][5, 1]cpu" = torch.ops.aten.mul.Tensor(tanh, 2);  tanh = None
        sum_1: "f32[][]cpu" = torch.ops.aten.sum.default(mul);  mul = None

        # Backward of forward node: File: /job/train.py:7 in f, code: y = swish(x @ w)
        expand: "f32[4, 5][0, 0]cpu" = torch.ops.aten.expand.default(tangents_1, [4, 5]);  tangents_1 = None
        mul_1: "f32[4, 5][5, 1]cpu" = torch.ops.aten.mul.Tensor(expand, 2);  expand = None
        mul_3: "f32[4, 5][5, 1]cpu" = torch.ops.myops.swish_backward.default(mul_1, mm);  mul_1 = mm = None
        t: "f32[5, 3][1, 5]cpu" = torch.ops.aten.t.default(primals_2);  primals_2 = None
        mm_1: "f32[4, 3][3, 1]cpu" = torch.ops.aten.mm.default(mul_3, t);  t = None
        t_1: "f32[3, 4][1, 3]cpu" = torch.ops.aten.t.default(primals_1);  primals_1 = None
        mm_2: "f32[3, 5][5, 1]cpu" = torch.ops.aten.mm.default(t_1, mul_3);  t_1 = mul_3 = None
        return pytree.tree_unflatten([
            sum_1,  # PlainAOTOutput(idx=0)
            mm_1,  # GradAOTOutput(grad_of=PlainAOTInput(idx=0))
            mm_2,  # GradAOTOutput(grad_of=PlainAOTInput(idx=1))
        ], self._out_spec)
)py";

SecondOpinion opinionOn(const std::string& forwardText, const std::string& backwardText,
                        const std::string& jointText = joint, const SecondOpinionRequest& request = {}) {
  return secondOpinion(
      jobs::openJobLog(test::writeTemporary("opaque.log", logOf(forwardText, backwardText, jointText))), request);
}

std::string notesOf(const SecondOpinion& opinion) {
  auto text = reasonOf(opinion);
  for (const auto& note : opinion.report.notes) text += "\n" + note;
  return text;
}

TensorData tensorOf(std::vector<std::int64_t> sizes, float value) {
  std::int64_t count = 1;
  for (const auto size : sizes) count *= size;
  return test::floatTensor(std::move(sizes), std::vector<float>(static_cast<std::size_t>(count), value));
}

TEST(OpaqueOps, WhatElseThereIsIsComparedAndTheOpsAreListed) {
  const auto opinion = opinionOn(forward, backward);
  EXPECT_EQ(verdictOf(opinion), Verdict::pass) << notesOf(opinion);
  EXPECT_EQ(opinion.report.judged, 2U);
  EXPECT_NE(notesOf(opinion).find("myops.swish.default (tanh, line "), std::string::npos) << notesOf(opinion);
  EXPECT_NE(notesOf(opinion).find("myops.swish_backward.default (mul_3, line "), std::string::npos);
}

// Before the op of the backward, behind it, and in what it reads.
TEST(OpaqueOps, AFaultAroundAnOpaqueOpIsFound) {
  for (const auto& faulty :
       {replaced(backward, "mul.Tensor(expand, 2)", "mul.Tensor(expand, 3)"),
        replaced(backward, "mul.Tensor(expand, 2)", "mul.Tensor(expand, -2)"),
        replaced(backward, "mm.default(t_1, mul_3)", "mm.default(t_1, mul_1)"),
        replaced(backward, "swish_backward.default(mul_1, mm)", "swish_backward.default(mm, mul_1)")}) {
    const auto opinion = opinionOn(forward, faulty);
    EXPECT_EQ(verdictOf(opinion), Verdict::fail) << notesOf(opinion) << faulty;
  }
}

TEST(OpaqueOps, OtherArgumentsOrAnUnknownCallAreNamed) {
  auto opinion = opinionOn(replaced(forward, "1.5", "2.5"), backward);
  EXPECT_EQ(verdictOf(opinion), Verdict::notPossible);
  EXPECT_NE(reasonOf(opinion).find("other arguments"), std::string::npos) << reasonOf(opinion);
  opinion = opinionOn(forward, replaced(backward, "swish_backward", "swish_backward_fast"));
  EXPECT_EQ(verdictOf(opinion), Verdict::notPossible);
  EXPECT_NE(reasonOf(opinion).find("not in the joint graph"), std::string::npos) << reasonOf(opinion);
  opinion = opinionOn(replaced(forward, "swish.default", "swish_.default"), backward);
  EXPECT_EQ(verdictOf(opinion), Verdict::notPossible);
  EXPECT_NE(reasonOf(opinion).find("may write"), std::string::npos) << reasonOf(opinion);
}

TEST(OpaqueOps, WithoutAJointGraphGradientsThroughThemAreNotCompared) {
  auto opinion = opinionOn(forward, backward, {});
  EXPECT_EQ(verdictOf(opinion), Verdict::notPossible);
  EXPECT_NE(reasonOf(opinion).find("not in the forward graph"), std::string::npos) << reasonOf(opinion);
  const auto known = replaced(backward, backwardCall, "torch.ops.aten.mul.Tensor(mul_1, mm)");
  opinion = opinionOn(forward, known, {});  // the op of the forward alone
  EXPECT_EQ(verdictOf(opinion), Verdict::notPossible);
  EXPECT_NE(reasonOf(opinion).find("2 of 2"), std::string::npos) << reasonOf(opinion);
}

TEST(OpaqueOps, AReferenceNeedsWhatTheOpsGave) {
  SecondOpinionRequest request;
  request.weights = {{"w", tensorOf({3, 5}, 0.5F)}};
  request.batch = {{"x", tensorOf({4, 3}, 1.0F)}};
  request.reference = TensorMap{{"loss", tensorOf({}, 40)}, {"grad.w", tensorOf({3, 5}, 12)}};
  auto opinion = opinionOn(forward, backward, joint, request);
  EXPECT_EQ(verdictOf(opinion), Verdict::notPossible);
  EXPECT_NE(reasonOf(opinion).find("--fill gives their results: mul_3; tanh"), std::string::npos) << reasonOf(opinion);

  request.filled = {{"tanh", tensorOf({4, 5}, 1)}, {"mul_3", tensorOf({4, 5}, 3)}};  // 20 * 2, and 4 * 3
  opinion = opinionOn(forward, backward, joint, request);
  EXPECT_EQ(verdictOf(opinion), Verdict::pass) << notesOf(opinion);
  EXPECT_EQ(referenced(opinion), 2U);

  request.reference->insert_or_assign("loss", tensorOf({}, 41));
  EXPECT_EQ(verdictOf(opinionOn(forward, backward, joint, request)), Verdict::fail);

  request.filled.emplace("no_result", tensorOf({}, 1));
  EXPECT_THROW(opinionOn(forward, backward, joint, request), Error);
}

// The backward has no opaque op, as that of a Triton kernel whose author wrote the derivative in PyTorch.
TEST(OpaqueOps, WhatIsFilledInMayBeOfTheForwardAlone) {
  SecondOpinionRequest request;
  request.filled = {{"tanh", tensorOf({4, 5}, 1)}};
  const std::string product = "torch.ops.aten.mul.Tensor(mul_1, mm)";
  const auto opinion =
      opinionOn(forward, replaced(backward, backwardCall, product), replaced(joint, backwardCall, product), request);
  EXPECT_EQ(verdictOf(opinion), Verdict::pass) << notesOf(opinion);
}

// A fault in what an opaque op reads is found though its result is given.
TEST(OpaqueOps, WhatIsFilledInHidesNoFault) {
  SecondOpinionRequest request;
  request.filled = {{"tanh", tensorOf({4, 5}, 1)}, {"mul_3", tensorOf({4, 5}, 3)}};
  const auto faulty = replaced(backward, "mul.Tensor(expand, 2)", "mul.Tensor(expand, 3)");
  EXPECT_EQ(verdictOf(opinionOn(forward, faulty, joint, request)), Verdict::fail);
}

// Triton kernels write into memory that nobody wrote to yet, and give their results by the names of arguments.
TEST(OpaqueOps, ResultsByNameAndUnwrittenMemory) {
  const auto graph = fx::readGraph(R"py(class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[4][1]cpu"):
        empty: "f32[4][1]cpu" = torch.ops.aten.empty.memory_format([4], dtype = torch.float32)
        proxy = torch.ops.higher_order.triton_kernel_wrapper_functional(kernel_idx = 0, kwargs = {'x': x, 'o': empty}, tensors_to_clone = ['o']);  empty = None
        getitem: "f32[4][1]cpu" = proxy['o'];  proxy = None
        return (getitem,)
)py",
                                   "test");
  const auto calls = jobs::opaqueCalls(graph, lookupSymbol);
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0].results, std::vector<std::string>{"getitem"});
  EXPECT_FALSE(calls[0].writes);
  const auto stood = jobs::withStandIns(graph, lookupSymbol, {});
  std::vector<std::string> added;
  for (const auto i : stood.inputs) added.push_back(stood.graph.inputs[i].name);
  EXPECT_EQ(added, (std::vector<std::string>{"proxy__weights_0", "getitem__stand_in"}));  // none for `empty`
  const auto given = jobs::withStandIns(graph, lookupSymbol, {"getitem"});
  ASSERT_EQ(given.graph.outputs.size(), 1U);
  EXPECT_EQ(given.graph.valueName(given.graph.outputs[0].value.valueIndex()), "getitem");
  EXPECT_LT(given.graph.outputs[0].value.valueIndex(), given.graph.inputs.size());
}

}  // namespace
}  // namespace retrograd
