#include "core/torch/reading/formats.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/torch/reading/read_model.h"
#include "tests/support/source_path.h"

namespace retrograd {
namespace {

namespace fs = std::filesystem;

// H23: one table says what a file is, for command line, window, serve and engine.
TEST(Formats, EachIsToldByWhatIsInIt) {
  const std::pair<const char*, Format> files[]{
      {"resources/samples/mlp.pt2", Format::model},
      {"tests/data/texts/linear.txt", Format::model},
      {"resources/samples/recorded", Format::recording},
      {"resources/samples/graph_break", Format::job},
      {"resources/samples/minifier/checkpoints/16.py", Format::repro},
      {"tests/data/sessions/mlp_format1.retrograd", Format::session},
      {"tests/data/memory/leak.pickle.xz", Format::pickle},
      {"README.md", Format::model},
      {"there/is/no/such.pt2", Format::model},
  };
  for (const auto& [path, format] : files) EXPECT_STREQ(name(formatOf(sourcePath(path)).format), name(format)) << path;
}

TEST(Formats, AModelSaysWhatItWasReadFrom) {
  EXPECT_EQ(readModel(sourcePath("resources/samples/recorded")).format, Format::recording);
  EXPECT_EQ(readModel(sourcePath("resources/samples/graph_break")).format, Format::job);
  EXPECT_EQ(readModel(sourcePath("tests/data/sessions/mlp_format1.retrograd")).format, Format::session);
}

// A recording has a manifest, too, and so has a captured folder around its graphs.
TEST(Formats, AFolderWithinAnotherIsNotTakenForIt) {
  EXPECT_EQ(formatOf(sourcePath("resources/samples/recorded/data")).format, Format::model);
  const fs::path folder = fs::path(testing::TempDir()) / "formats_test";
  fs::remove_all(folder);
  fs::create_directories(folder / "graph000");
  std::ofstream(folder / "retrograd.json") << "{}";
  EXPECT_EQ(formatOf(folder.string()).format, Format::captured);
  EXPECT_EQ(formatOf((folder / "graph000").string()).format, Format::captured);
  fs::copy(sourcePath("resources/samples/recorded"), folder / "rank0", fs::copy_options::recursive);
  fs::remove(folder / "retrograd.json");
  EXPECT_EQ(formatOf(folder.string()).format, Format::ranks);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace retrograd
