#include "core/formats/folder/folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/base/error.h"

namespace fs = std::filesystem;

namespace retrograd {
namespace {

const std::string plain =
    R"({"format": "retrograd.folder", "version": 1, "kind": "catch", "made": {"torch": "2.15.0"}, "rank": 1, "ranks": 2, "step": 7, "device": "cuda",
  "failure": {"kind": "nan_loss", "message": "the loss is nan"}, "open": {"graph": "second", "at": "root"},
  "graphs": [{"name": "first", "model": "first/model.pt2"},
             {"name": "second", "model": "second/model.pt2", "values": "second/ref.safetensors", "ops": 12, "mode": "train", "compile": "0/1",
              "location": "model.py:3 in forward", "not_finite": ["out.0"], "cannot_replay": ["draws on the GPU"]}],
  "cannot_replay": ["draws on the GPU"], "something newer": [1, 2]})";

struct Folder : testing::Test {
  fs::path path = fs::temp_directory_path() / ("retrograd-folder-" + std::to_string(getpid()));
  void SetUp() override {
    fs::create_directories(path / "first");
    fs::create_directories(path / "second");
  }
  void TearDown() override { fs::remove_all(path); }
  void write(const std::string& text) const { std::ofstream(path / "retrograd.json") << text; }
  std::string refusal(const std::string& text) const {
    write(text);
    try {
      chooseGraph(path.string());
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::badInput);
      return e.what();
    }
    return "it was read";
  }
};

TEST_F(Folder, saysWhatThePythonPackageWrote) {
  write(plain);
  const auto folder = readRecordedFolder(path.string());
  EXPECT_EQ(folder.kind, "catch");
  EXPECT_EQ(folder.torchVersion, "2.15.0");
  EXPECT_EQ(folder.rank, 1);
  EXPECT_EQ(folder.ranks, 2);
  EXPECT_EQ(folder.step, 7);
  EXPECT_EQ(folder.failure, "the loss is nan");
  ASSERT_EQ(folder.graphs.size(), 2u);
  EXPECT_EQ(folder.graphs[0].values, "");
  EXPECT_EQ(folder.graphs[1].model, (path / "second/model.pt2").string());
  EXPECT_EQ(folder.graphs[1].ops, 12);
  EXPECT_EQ(folder.graphs[1].device, "cuda");
  EXPECT_EQ(folder.graphs[1].notFinite, std::vector<std::string>{"out.0"});
}

TEST_F(Folder, opensTheGraphThatItNames) {
  write(plain);
  const auto choice = chooseGraph(path.string());
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->graph.name, "second");
  EXPECT_TRUE(choice->atRoot);
  EXPECT_EQ(choice->cannotReplay, std::vector<std::string>{"draws on the GPU"}) << "said once";
  EXPECT_EQ(chooseGraph(path.string() + "/")->graph.name, "second");
}

TEST_F(Folder, aGraphsOwnFolderIsThatGraph) {
  write(plain);
  const auto choice = chooseGraph((path / "first").string());
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->graph.name, "first");
  EXPECT_FALSE(choice->atRoot);
  EXPECT_TRUE(isRecordedFolder((path / "first/").string()));
}

TEST_F(Folder, anyOtherPathIsNone) {
  EXPECT_FALSE(isRecordedFolder(path.string()));
  EXPECT_FALSE(chooseGraph(path.string()));
  EXPECT_FALSE(chooseGraph((path / "absent").string()));
  write(plain);
  EXPECT_FALSE(chooseGraph((path / "retrograd.json").string()));
}

TEST_F(Folder, pathsStayInside) {
  for (const char* outside : {"/etc/passwd", "../model.pt2", "a/../../model.pt2", ""})
    EXPECT_NE(
        refusal(
            R"({"format": "retrograd.folder", "version": 1, "kind": "capture", "graphs": [{"name": "a", "model": ")" +
            std::string(outside) + R"("}]})")
            .find("not inside the folder"),
        std::string::npos)
        << outside;
}

TEST_F(Folder, refusesByName) {
  EXPECT_NE(refusal("{}").find("retrograd.json"), std::string::npos);
  EXPECT_NE(refusal(R"({"format": "retrograd.folder", "version": 2, "kind": "catch", "graphs": []})").find("version 2"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"format": "retrograd.folder", "version": 1, "kind": "catch", "graphs": []})")
                .find("no graph was saved"),
            std::string::npos);
  EXPECT_NE(refusal("[").find("retrograd.json"), std::string::npos);
  EXPECT_NE(refusal(R"({"format": "retrograd.folder", "version": 1, "kind": "catch", "graphs": [{"name": "a"}]})")
                .find("model"),
            std::string::npos);
}

}  // namespace
}  // namespace retrograd
