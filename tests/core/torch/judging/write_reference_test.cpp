#include "core/torch/judging/write_reference.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/formats/safetensors/safetensors.h"
#include "core/torch/checking/check.h"
#include "core/torch/judging/reference.h"
#include "tests/support/open_model.h"
#include "tests/support/report_text.h"

namespace fs = std::filesystem;

namespace retrograd::test {
namespace {

/// Writes through a view of a buffer, to a counter, to an input, and where no op returns what was written (batch norm).
constexpr const char* text = R"(
def computation(x, count, b, n, mean, var, w):
    # x: "f32[4, 3]"
    # count: "i64[2]"
    # b: "f32[4]", buffer b
    # n: "i64[]", buffer n
    # mean: "f32[3]", buffer norm.mean
    # var: "f32[3]", buffer norm.var
    # w: "f32[4]", parameter w
    part = aten.select.int(b, 0, 1)
    z = aten.add_.Tensor(part, 2.0)
    m = aten.add_.Tensor(n, 1)
    c = aten.mul_.Tensor(count, 3)
    h = aten.batch_norm(x, None, None, mean, var, True, 0.1, 1e-05, False)
    s = aten.sum(h)
    y = aten.mul.Tensor(w, b)
    o = aten.mul.Tensor(y, s)
    return o
)";

struct SavedRun : testing::Test {
  std::string folder = (fs::temp_directory_path() / ("retrograd-save-" + std::to_string(getpid()))).string();
  std::string model = folder + "/model.txt", saved = folder + "/saved.safetensors";

  void SetUp() override {
    fs::create_directories(folder);
    std::ofstream(model) << text;
  }
  void TearDown() override { fs::remove_all(folder); }

  Reference save(std::size_t opsBeforeEnd = 0) {
    Session session(openModel(model));
    session.runTo(session.size() - opsBeforeEnd);
    saveRun(session, saved);
    return readReference(saved);
  }
  Report check() { return check(saved); }
  Report check(const std::string& reference) {
    CheckOptions options;
    options.reference = reference;
    return checkModel(model, options);
  }
};

std::set<std::string> keys(const TensorMap& map) {
  std::set<std::string> keys;
  for (const auto& [key, tensor] : map) keys.insert(key);
  return keys;
}

// What was written is in the file, under the names that the cases' references have.
TEST_F(SavedRun, HoldsWhatWasWritten) {
  const auto reference = save();
  EXPECT_EQ(keys(reference.expected.bufferMutations), (std::set<std::string>{"b", "n", "norm.mean", "norm.var"}));
  EXPECT_EQ(keys(reference.expected.inputMutations), std::set<std::string>{"count"});
  EXPECT_EQ(keys(reference.expected.parameterGradients), std::set<std::string>{"w"});
  std::int64_t before[2], after[2];
  std::memcpy(before, reference.inputs.at("count").data, sizeof before);
  std::memcpy(after, reference.expected.inputMutations.at("count").data, sizeof after);
  EXPECT_EQ(after[0], 3 * before[0]);
  EXPECT_EQ(after[1], 3 * before[1]);
  EXPECT_EQ(test::verdictOf(check()), Verdict::pass) << decide(check()).reason;
}

TEST_F(SavedRun, WritesAreThereOnceTheForwardIsOver) {
  const auto reference = save(1);
  EXPECT_EQ(keys(reference.expected.bufferMutations).size(), 4u);
  EXPECT_TRUE(reference.expected.parameterGradients.empty());
}

// And it is compared.
TEST_F(SavedRun, ACheckComparesWhatWasWritten) {
  save();
  const auto content = readSafetensors(saved);
  for (const std::string key : {"mut.b.b", "mut.b.n", "mut.b.norm.mean", "mut.in.count"}) {
    auto tensors = content.tensors;
    auto& tensor = tensors.at(key);
    const auto bytes = std::make_shared<std::vector<std::byte>>(tensor.data, tensor.data + tensor.bytes);
    if (tensor.meta.dtype == DType::i64) (*bytes)[0] ^= std::byte{1};
    else (*bytes)[3] ^= std::byte{0x80};  // the first element's sign
    tensor.data = bytes->data();
    tensor.owner = bytes;
    const auto changed = saved + "." + key + ".safetensors";
    writeSafetensors(changed, tensors, content.metadata);
    const auto report = check(changed);
    EXPECT_EQ(test::verdictOf(report), Verdict::fail) << key;
    EXPECT_NE(decide(report).reason.find(key), std::string::npos) << decide(report).reason;
  }
}

}  // namespace
}  // namespace retrograd::test
