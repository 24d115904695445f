#include <gtest/gtest.h>

#include "core/formats/model/model_file.h"
#include "core/formats/read/read_file.h"
#include "tests/core/formats/cases.h"
#include "tests/core/formats/stub_symbols.h"
#include "tests/core/formats/zip/zip_writer.h"

namespace retrograd {
namespace {

using namespace std::string_literals;

std::string messageFor(const std::string& bytes) {
  const auto path = test::writeTemporary("other.pt2", bytes);
  try {
    readModelFile(path, test::stubLookup);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::badInput);
    EXPECT_EQ(e.place(), path);
    return e.message();
  }
  return {};
}

void expectMentions(const std::string& message, const std::string& what) {
  EXPECT_NE(message.find(what), std::string::npos) << message;
  EXPECT_NE(message.find("torch.export.save"), std::string::npos) << message;
}

TEST(FileKind, namesOtherArchives) {
  expectMentions(messageFor(test::makeZip({{"m/code/__torch__.py", ""}, {"m/constants.pkl", ""}, {"m/data.pkl", ""}})),
                 "TorchScript");
  expectMentions(messageFor(test::makeZip({{"m/data.pkl", ""}, {"m/data/0", ""}, {"m/version", "3"}})), "state dict");
  expectMentions(messageFor(test::makeZip({{"m/data/aotinductor/model/x.so", ""}})), "AOTInductor");
  expectMentions(messageFor(test::makeZip({{"serialized_exported_program.json", "{}"}, {"version", "5.1"}})),
                 "older layout");
  expectMentions(messageFor(test::makeZip({{"readme", ""}})), "models/*.json");
}

TEST(FileKind, namesOtherFiles) {
  expectMentions(messageFor("\x08\x07\x12\x07pytorch\x1a\x03"s), "ONNX");
  expectMentions(messageFor("\x80\x02}q\0."s), "pickle");
  expectMentions(messageFor("hello, world\n"), "text file");
  expectMentions(messageFor("\x02\0\0\0\0\0\0\0{}"s), "safetensors");
  expectMentions(messageFor(std::string(100, '\x01')), "Unrecognized file format");
  expectMentions(messageFor("PK\x07\x08"s), "zip archive");
  EXPECT_NE(messageFor("PK\x03\x04 and then nothing"s).find("cut off"), std::string::npos);
}

TEST(FileKind, saysWhatIsNotAFile) {
  EXPECT_THROW(readModelFile("/tmp", test::stubLookup), Error);
  EXPECT_THROW(readModelFile(test::writeTemporary("empty.pt2", ""), test::stubLookup), Error);
  EXPECT_THROW(readModelFile("/nonexistent.pt2", test::stubLookup), Error);
}

}  // namespace
}  // namespace retrograd
