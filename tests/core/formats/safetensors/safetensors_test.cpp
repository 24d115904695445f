#include "core/formats/safetensors/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "core/base/error.h"
#include "tests/core/formats/cases.h"
#include "tests/support/float_tensor.h"

namespace retrograd {
namespace {

using test::floatTensor;

std::string withHeader(const std::string& header, const std::string& data) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i) & 0xff);
  return bytes + header + data;
}

std::string failure(const std::string& bytes) {
  try {
    readSafetensors(test::writeTemporary("bad.safetensors", bytes));
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::badInput);
    return e.what();
  }
  return "nothing failed";
}

TEST(Safetensors, readsAReference) {
  const auto file = readSafetensors((test::data() / "mlp/ref.safetensors").string());
  ASSERT_TRUE(file.tensors.contains("grad.p.l1.weight"));
  EXPECT_EQ(file.tensors.at("grad.p.l1.weight").meta.sizes, (std::vector<std::int64_t>{16, 8}));
  EXPECT_TRUE(file.metadata.contains("seed") || !file.metadata.empty());
}

TEST(Safetensors, readsBackWhatItWrote) {
  const auto path = test::writeTemporary("round.safetensors", "");
  TensorMap tensors{{"a \"quoted\" ä", floatTensor({2, 3}, {1, 2, 3, 4, 5, 6})},
                    {"empty", floatTensor({0, 4}, {})},
                    {"scalar", floatTensor({}, {7})}};
  writeSafetensors(path, tensors, {{"seed", "3"}});
  const auto file = readSafetensors(path);
  EXPECT_EQ(file.metadata.at("seed"), "3");
  ASSERT_EQ(file.tensors.size(), 3u);
  const auto& a = file.tensors.at("a \"quoted\" ä");
  EXPECT_EQ(a.meta, tensors.at("a \"quoted\" ä").meta);
  EXPECT_EQ(std::memcmp(a.data, tensors.at("a \"quoted\" ä").data, 24), 0);
  EXPECT_EQ(file.tensors.at("empty").meta.sizes, (std::vector<std::int64_t>{0, 4}));
}

TEST(Safetensors, writesFromAnOffset) {
  auto tensor = floatTensor({2}, {1, 2, 3, 4});
  tensor.meta.offset = 2;
  const auto path = test::writeTemporary("offset.safetensors", "");
  writeSafetensors(path, {{"t", tensor}});
  const auto file = readSafetensors(path);
  EXPECT_EQ(reinterpret_cast<const float*>(file.tensors.at("t").data)[0], 3);
}

TEST(Safetensors, refusesWhatItCannotWrite) {
  auto transposed = floatTensor({2, 2}, {1, 2, 3, 4});
  transposed.meta.strides = {1, 2};
  auto beyond = floatTensor({2}, {1, 2});
  beyond.meta.offset = 1;
  auto complex = floatTensor({1}, {1, 2, 3, 4});
  complex.meta.dtype = DType::c128;
  const auto never = test::writeTemporary("a", "") + "-never.safetensors";
  for (const auto& tensor : {transposed, beyond, complex}) {
    try {
      writeSafetensors(never, {{"t", tensor}});
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::badUse);
    }
  }
  EXPECT_FALSE(std::filesystem::exists(never));
}

TEST(Safetensors, aFailedWriteKeepsWhatWasThere) {
  try {
    writeSafetensors("/nonexistent/folder/t.safetensors", {{"t", floatTensor({1}, {1})}});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::io);
  }
  const auto path = test::writeTemporary("kept.safetensors", "before");
  auto complex = floatTensor({1}, {1, 2, 3, 4});
  complex.meta.dtype = DType::c128;
  EXPECT_THROW(writeSafetensors(path, {{"t", complex}}), Error);
  EXPECT_EQ(test::contentOf(path), "before");
}

TEST(Safetensors, refusesWrongHeaders) {
  const std::string good = R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  EXPECT_EQ(failure(withHeader(good, "1234")), "nothing failed");
  EXPECT_NE(failure(withHeader(good, "123")).find("outside"), std::string::npos);
  EXPECT_NE(failure(withHeader(good, "12345")).find("behind the last"), std::string::npos);
  EXPECT_NE(failure(""), "nothing failed");
  EXPECT_NE(failure("1234567"), "nothing failed");
  EXPECT_NE(failure(std::string(8, '\xff') + good), "nothing failed");
  EXPECT_NE(failure(withHeader("[]", "")), "nothing failed");
  const auto entry = [](const std::string& rest) { return withHeader("{\"t\":{" + rest + "}}", std::string(8, 'x')); };
  EXPECT_NE(failure(entry(R"("dtype":"F31","shape":[2],"data_offsets":[0,8])")).find("unknown dtype"),
            std::string::npos);
  EXPECT_NE(failure(entry(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])")).find("needs 12"), std::string::npos);
  EXPECT_NE(failure(entry(R"("dtype":"F32","shape":[-2,-1],"data_offsets":[0,8])")).find("negative"),
            std::string::npos);
  EXPECT_NE(failure(entry(R"("dtype":"F32","shape":[4611686018427387904,4611686018427387904],"data_offsets":[0,8])"))
                .find("too large"),
            std::string::npos);
  EXPECT_NE(failure(entry(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])")).find("outside"), std::string::npos);
  EXPECT_NE(failure(entry(R"("dtype":"F32","shape":[2])")).find("'data_offsets' is missing"), std::string::npos);
  const std::string overlap =
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})";
  EXPECT_NE(failure(withHeader(overlap, std::string(8, 'x'))).find("overlap"), std::string::npos);
}

TEST(Safetensors, truncationsAreRefused) {
  const auto bytes = test::contentOf(test::data() / "mlp/ref.safetensors");
  for (std::size_t n = 0; n < bytes.size(); n += 203) EXPECT_NE(failure(bytes.substr(0, n)), "nothing failed") << n;
}

}  // namespace
}  // namespace retrograd
