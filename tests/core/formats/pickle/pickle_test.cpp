#include "core/formats/pickle/pickle.h"

#include <gtest/gtest.h>

#include "tests/core/formats/cases.h"
#include "tests/core/formats/zip/zip_writer.h"

namespace retrograd {
namespace {

using namespace std::string_literals;

Pickle readCode(const std::string& code, const std::string& storage = std::string(16, '\1')) {
  auto kept = std::make_shared<std::string>(test::makeZip({{"archive/data.pkl", code}, {"archive/data/0", storage}}));
  return readPickle(
      Archive::open(ByteRegion{reinterpret_cast<const std::byte*>(kept->data()), kept->size(), kept}, "sample.pt"));
}

std::string failure(const std::string& code, const std::string& storage = std::string(16, '\1')) {
  try {
    readCode(code, storage);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::badInput);
    return e.what();
  }
  return "nothing failed";
}

/// A tensor as torch.save writes it; `shape` is the opcodes from the offset to the strides.
std::string tensorCode(const std::string& shape) {
  return "\x80\x02"
         "ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0"
         "0X\x03\0\0\0cpuK\x04tQ"s +
         shape +
         "\x89"
         "ccollections\nOrderedDict\n)RtR."s;
}

TEST(Pickle, readsNumbersAndContainers) {
  const auto pickle = readCode(
      "\x80\x02(K\x05J\xff\xff\xff\xff"
      "G\x3f\xf8\0\0\0\0\0\0\x88N]q\0(K\x01K\x02"
      "eX\x02\0\0\0hit."s);
  const auto leaves = leavesOf(pickle, pickle.root);
  ASSERT_EQ(leaves.size(), 8u);
  EXPECT_EQ(pickle.at(leaves[0]).integer, 5);
  EXPECT_EQ(pickle.at(leaves[1]).integer, -1);
  EXPECT_EQ(pickle.at(leaves[2]).real, 1.5);
  EXPECT_EQ(pickle.at(leaves[3]).kind, PickleValue::Kind::boolean);
  EXPECT_EQ(pickle.at(leaves[4]).kind, PickleValue::Kind::none);
  EXPECT_EQ(pickle.at(leaves[7]).text, "hi");
}

TEST(Pickle, readsTensors) {
  const auto pickle = readCode(tensorCode("K\0K\x02K\x02\x86K\x02K\x01\x86"s));
  const auto& value = pickle.at(pickle.root);
  ASSERT_EQ(value.kind, PickleValue::Kind::tensor);
  EXPECT_EQ(value.tensor.meta.sizes, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(value.tensor.meta.strides, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(value.tensor.bytes, 16u);
}

/// What torch.export leaves of a sample whose dimensions it marked as dynamic: a tensor with attributes.
TEST(Pickle, readsTensorsWithAttributes) {
  const auto marked = [](const std::string& rebuild, const std::string& type) {
    return "\x80\x02"
           "ctorch._tensor\n_rebuild_from_type_v2\n(" +
           rebuild + type +
           "((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0"
           "0X\x03\0\0\0cpuK\x04tQK\0K\x02K\x02\x86K\x02K\x01\x86\x89"
           "ccollections\nOrderedDict\n)Rt"
           "}X\x03\0\0\0dimc__builtin__\nset\n]K\0"
           "a\x85RstR."s;
  };
  const std::string v2 = "ctorch._utils\n_rebuild_tensor_v2\n", tensor = "ctorch\nTensor\n";
  const auto pickle = readCode(marked(v2, tensor));
  const auto& value = pickle.at(pickle.root);
  ASSERT_EQ(value.kind, PickleValue::Kind::tensor);
  EXPECT_EQ(value.tensor.meta.sizes, (std::vector<std::int64_t>{2, 2}));
  EXPECT_NE(failure(marked(v2, "ctorch\nFloatStorage\n")).find("refuses to create a torch FloatStorage"),
            std::string::npos);
  EXPECT_NE(failure(marked("ctorch._utils\n_rebuild_parameter\n", tensor)), "nothing failed");
}

TEST(Pickle, refusesTensorsBeyondTheirStorage) {
  EXPECT_NE(failure(tensorCode("K\x01K\x02K\x02\x86K\x02K\x01\x86"s)).find("needs 20"), std::string::npos);
  EXPECT_NE(failure(tensorCode("K\0K\x02K\x02\x86K\x02K\x01\x86"s), "short").find("shorter"), std::string::npos);
}

TEST(Pickle, refusesEveryOtherGlobal) {
  EXPECT_NE(failure("\x80\x02"
                    "cposix\nsystem\n(X\x02\0\0\0lstR."s)
                .find("posix.system"),
            std::string::npos);
  EXPECT_NE(failure("\x80\x02"
                    "cbuiltins\neval\n."s)
                .find("builtins.eval"),
            std::string::npos);
  EXPECT_NE(failure("\x80\x04\x8c\x02os\x8c\x06system\x93."s).find("os.system"), std::string::npos);
}

TEST(Pickle, refusesOtherOpcodes) {
  for (const auto* code : {"i", "o", "\x81", "b", "P1\n.", "\x82\x01."})
    EXPECT_NE(failure("\x80\x02"s + code), "nothing failed");
}

TEST(Pickle, refusesBrokenCode) {
  for (const auto& code :
       {""s, "."s, "t."s, "(."s, "h\x07."s, "X\xff\xff\xff\x7f"s, "K"s, "]K\x01u."s, "R."s, "Q."s, "0."s, "\x85."s})
    EXPECT_NE(failure("\x80\x02"s + code), "nothing failed") << code;
}

TEST(Pickle, aListInItselfEndsInAnError) {
  const auto pickle = readCode(
      "\x80\x02]q\0h\0"
      "a."s);
  EXPECT_THROW(leavesOf(pickle, pickle.root), Error);
}

TEST(Pickle, listsOfListsOfListsEndInAnError) {
  // Each tuple holds the one before ten times: 10^12 leaves in 400 bytes.
  std::string code = "\x80\x02K\x01q\0"s;
  for (int level = 0; level < 12; ++level) {
    code += "(";
    for (int i = 0; i < 10; ++i) code += "h"s + static_cast<char>(level);
    code += "tq"s + static_cast<char>(level + 1);
  }
  const auto pickle = readCode(code + ".");
  EXPECT_THROW(leavesOf(pickle, pickle.root), Error);
}

}  // namespace
}  // namespace retrograd
