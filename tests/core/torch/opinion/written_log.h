// A log of one compile that is written here: loss = sum(tanh(x @ w) * 2), its graphs, and edits of them.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace retrograd::test {

/// The record of a log that holds a graph.
inline std::string graphRecord(const std::string& name, std::string_view text) {
  std::string out = "V1122 08:20:21.133000 77 a/b.py:18] {\"" + name +
                    "\": {}, \"frame_id\": 0, \"frame_compile_id\": 0, \"attempt\": 0, \"has_payload\": \"\"}\n";
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    out.append("\t").append(text.substr(at, end - at)).append("\n");
    at = end + 1;
  }
  return out;
}

inline const std::string writtenDynamo =
    "class GraphModule(torch.nn.Module):\n    def forward(self, L_x_: \"f32[4, 3]\", L_w_: \"f32[3, 5]\"):\n        "
    "l_x_ = L_x_\n        "
    "l_w_ = L_w_\n        return (l_x_,)";

/// The log of one compile, made of its texts. Without a joint graph where that is empty.
inline std::string logOf(const std::string& forward, const std::string& backward, const std::string& joint = {},
                         const std::string& dynamo = writtenDynamo) {
  const auto plain = [](const std::string& json) {
    return "V1122 08:20:21.133000 77 a/b.py:18] {" + json +
           ", \"frame_id\": 0, \"frame_compile_id\": 0, \"attempt\": 0}\n";
  };
  std::string described;
  for (const auto* name : {"x", "w"}) {
    const int id = *name == 'x' ? 0 : 1;
    described += plain(fmt::format(
        R"("describe_tensor": {{"id": {}, "describer_id": 0, "dtype": "torch.float32", "size": [3], "requires_grad": true}})",
        id));
    described +=
        plain(fmt::format(R"("describe_source": {{"id": {}, "describer_id": 0, "source": "L['{}']"}})", id, name));
  }
  return described + graphRecord("dynamo_output_graph", dynamo) +
         (joint.empty() ? "" : graphRecord("aot_joint_graph", joint)) + graphRecord("aot_forward_graph", forward) +
         graphRecord("aot_backward_graph", backward);
}

// loss = sum(tanh(x @ w) * 2)
inline const std::string writtenForward = R"py(class GraphModule(torch.nn.Module):
    def forward(
        self,
        primals_1: "f32[4, 3][3, 1]cpu",  # PlainAOTInput(idx=0)
        primals_2: "f32[3, 5][5, 1]cpu",  # PlainAOTInput(idx=1)
    ):
        # File: /job/train.py:7 in f, code: y = torch.tanh(x @ w)
        mm: "f32[4, 5][5, 1]cpu" = torch.ops.aten.mm.default(primals_1, primals_2)
        tanh: "f32[4, 5][5, 1]cpu" = torch.ops.aten.tanh.default(mm);  mm = None
        mul: "f32[4, 5][5, 1]cpu" = torch.ops.aten.mul.Tensor(tanh, 2)
        sum_1: "f32[][]cpu" = torch.ops.aten.sum.default(mul);  mul = None
        return (
            sum_1,  # PlainAOTOutput(idx=0)
            primals_1,  # SavedForBackwardsAOTOutput(idx=0)
            primals_2,  # SavedForBackwardsAOTOutput(idx=1)
            tanh,  # SavedForBackwardsAOTOutput(idx=2)
        )
)py";
inline const std::string writtenBackward = R"py(class GraphModule(torch.nn.Module):
    def forward(
        self,
        primals_1: "f32[4, 3][3, 1]cpu",  # PlainAOTInput(idx=0)
        primals_2: "f32[3, 5][5, 1]cpu",  # PlainAOTInput(idx=1)
        tanh: "f32[4, 5][5, 1]cpu",
        tangents_1: "f32[][]cpu",  # TangentAOTInput(output=PlainAOTOutput(idx=0))
    ):
        # Backward of forward node: File: /job/train.py:7 in f, code: y = torch.tanh(x @ w)
        expand: "f32[4, 5][0, 0]cpu" = torch.ops.aten.expand.default(tangents_1, [4, 5]);  tangents_1 = None
        mul_1: "f32[4, 5][5, 1]cpu" = torch.ops.aten.mul.Tensor(expand, 2);  expand = None
        mul_2: "f32[4, 5][5, 1]cpu" = torch.ops.aten.mul.Tensor(tanh, tanh);  tanh = None
        sub: "f32[4, 5][5, 1]cpu" = torch.ops.aten.sub.Tensor(1, mul_2);  mul_2 = None
        mul_3: "f32[4, 5][5, 1]cpu" = torch.ops.aten.mul.Tensor(mul_1, sub);  mul_1 = sub = None
        t: "f32[5, 3][1, 5]cpu" = torch.ops.aten.t.default(primals_2);  primals_2 = None
        mm_1: "f32[4, 3][3, 1]cpu" = torch.ops.aten.mm.default(mul_3, t);  t = None
        t_1: "f32[3, 4][1, 3]cpu" = torch.ops.aten.t.default(primals_1);  primals_1 = None
        mm_2: "f32[3, 5][5, 1]cpu" = torch.ops.aten.mm.default(t_1, mul_3);  t_1 = mul_3 = None
        return (
            mm_1,  # GradAOTOutput(grad_of=PlainAOTInput(idx=0))
            mm_2,  # GradAOTOutput(grad_of=PlainAOTInput(idx=1))
        )
)py";

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

}  // namespace retrograd::test
