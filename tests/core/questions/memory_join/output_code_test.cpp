#include "core/questions/memory_join/output_code.h"

#include <gtest/gtest.h>

namespace retrograd {
namespace {

constexpr std::string_view code = R"(import torch

class Runner:
    def call(self, args):
        primals_1, primals_2 = args
        args.clear()
        buf0 = empty_strided_cuda((8, 128), (128, 1), torch.float32)
        buf1 = buf0; del buf0  # reuse
        # Topologically Sorted Source Nodes: [x, n], Original ATen: [aten.embedding, aten.native_layer_norm]
        stream0 = get_raw_stream(0)
        triton_per_fused_native_layer_norm_0.run(buf1, primals_1, 1024, stream=stream0)
        buf2 = empty_strided_cuda((1024, 192), (192, 1), torch.float32)
        # Topologically Sorted Source Nodes: [linear], Original ATen: [aten.t, aten.addmm]
        extern_kernels.addmm(primals_2, reinterpret_tensor(buf1, (1024, 64), (64, 1), 0), primals_1, out=buf2)
        buf3 = torch.ops.aten._scaled_dot_product_efficient_attention.default(buf2, buf2, buf2, None, True)
        buf4 = buf3[0]
        assert_size_stride(buf4, (8, 4), (4, 1))
        buf5 = buf3[1]
        del buf3
        buf6 = reinterpret_tensor(buf2, (192, 1024), (1024, 1), 0); del buf2  # reuse
        triton_poi_fused_add_1.run(buf6, primals_1, 1024, stream=stream0)
        return (buf6, primals_1, reinterpret_tensor(buf1, (8, 64), (64, 1), 0), buf4, )

runner = Runner(partitions=[])
)";

TEST(OutputCode, EachLineOfGeneratedCodeHasWhatIsInItsMemory) {
  const auto read = readOutputCode(code);
  EXPECT_EQ(read.outputCount, 4u);
  ASSERT_EQ(read.buffers.size(), 4u);
  const auto& norm = read.buffers[0];
  EXPECT_EQ(norm.line, 7);
  EXPECT_EQ(norm.op, "aten.native_layer_norm");
  EXPECT_EQ(norm.outputs, std::vector<std::size_t>{2});
  EXPECT_FALSE(norm.isReused);  // another name before anything was in it
  const auto& product = read.buffers[1];
  EXPECT_EQ(product.line, 12);
  EXPECT_EQ(product.op, "aten.addmm");
  EXPECT_EQ(product.outputs, std::vector<std::size_t>{0});
  EXPECT_TRUE(product.isReused);
  // The results of one call are taken on one line.
  EXPECT_EQ(read.buffers[2].line, 15);
  EXPECT_EQ(read.buffers[2].op, "aten._scaled_dot_product_efficient_attention");
  EXPECT_EQ(read.buffers[2].outputs, std::vector<std::size_t>{3});
  EXPECT_EQ(read.buffers[3].line, 15);
  EXPECT_TRUE(read.buffers[3].outputs.empty());
}

TEST(OutputCode, WhatIsNotSuchCodeHasNoLines) {
  for (const auto* text : {"", "def call(", "def call(args):\n    return (",
                           "def call(args):\n    buf0 = buf0[0\n  return (((", "buf0 = empty_strided_cuda((8), (1))"}) {
    const auto read = readOutputCode(text);
    EXPECT_TRUE(read.buffers.empty()) << text;
  }
}

}  // namespace
}  // namespace retrograd
