#include "core/formats/files/mapping_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "core/base/error.h"
#include "core/formats/files/atomic_file.h"
#include "core/formats/files/mapped_file.h"
#include "tests/core/formats/cases.h"

namespace fs = std::filesystem;

namespace retrograd {
namespace {

using test::writeTemporary;

constexpr std::size_t pages = 16 * 4096;

std::string trouble(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

// Pages that vanish are zeros and an error, for this file alone.
TEST(MappingWatch, aFileThatLosesItsPagesIsAnError) {
  const auto path = writeTemporary("watched", std::string(pages, 'a')),
             other = writeTemporary("other", std::string(pages, 'b'));
  const auto file = mapFile(path), bystander = mapFile(other);
  FilesInUse files, others;
  files.add(file.data + 5000);
  files.add(path.data());  // memory of no file
  others.add(bystander.data);
  EXPECT_NO_THROW(files.requireUnchanged());
  ASSERT_EQ(truncate(path.c_str(), 4096), 0);
  EXPECT_NE(trouble([&] { files.requireUnchanged(); }).find(path + ": the file lost content while it was open"),
            std::string::npos);
  EXPECT_NO_THROW(files.requireWhole());  // nothing was read yet
  EXPECT_EQ(static_cast<char>(file.data[10]), 'a');
  EXPECT_EQ(static_cast<char>(file.data[3 * 4096]), '\0');
  EXPECT_EQ(static_cast<char>(file.data[pages - 1]), '\0');
  EXPECT_THROW(files.requireWhole(), Error);
  EXPECT_THROW(requireUnchanged(file.data), Error);
  std::ofstream(path) << std::string(pages, 'a');  // what was lost once is not trusted again
  EXPECT_THROW(requireUnchanged(file.data), Error);
  EXPECT_NO_THROW(others.requireWhole());
  EXPECT_NO_THROW(others.requireUnchanged());
}

TEST(MappingWatch, aFileThatIsWrittenInPlaceIsAnErrorAndOneThatIsReplacedIsNot) {
  const auto path = writeTemporary("written", std::string(pages, 'a'));
  const auto file = mapFile(path);
  AtomicFile::Over own = AtomicFile::Over::ownInput;
  AtomicFile next(path, own);
  next.write(std::string_view("shorter"));
  next.commit();
  EXPECT_NO_THROW(requireUnchanged(file.data));
  EXPECT_EQ(static_cast<char>(file.data[pages - 1]), 'a');
  const auto again = mapFile(path);
  usleep(20'000);  // a clock of the file system has steps
  std::fstream(path, std::ios::in | std::ios::out) << "LONGER";
  EXPECT_NE(trouble([&] { requireUnchanged(again.data); }).find("the file changed while it was open"),
            std::string::npos);
  EXPECT_NO_THROW(requireUnchanged(file.data));
}

TEST(MappingWatch, anInputIsNotWrittenOverWhileItIsMapped) {
  const auto path = writeTemporary("input", "content");
  const auto link = path + ".link";
  fs::remove(link);
  fs::create_hard_link(path, link);
  {
    const auto file = mapFile(path);
    EXPECT_NE(trouble([&] { AtomicFile out(path); }).find("is an input that is open now"), std::string::npos);
    EXPECT_THROW(AtomicFile out(link), Error);
    AtomicFile own(path, AtomicFile::Over::ownInput);
  }
  writeWholeFile(path, "other");
  EXPECT_EQ(mapFile(path).text(), "other");
  EXPECT_EQ(mapFile(link).text(), "content");
}

TEST(AtomicFile, isThereWholeOrNotAtAll) {
  const auto path = writeTemporary("whole", "before");
  {
    AtomicFile file(path);
    file.write(std::string_view("after"));
  }
  EXPECT_EQ(mapFile(path).text(), "before");
  EXPECT_NE(trouble([] { AtomicFile file("/dev/null"); }).find("/dev/null: is a device"), std::string::npos);
  EXPECT_NE(trouble([] { AtomicFile file("/no/such/folder/x"); }).find("/no/such/folder/x: cannot write: No such file"),
            std::string::npos);
  const auto link = path + ".link";
  fs::remove(link);
  fs::create_symlink(path, link);
  EXPECT_NE(trouble([&] { AtomicFile file(link); }).find("is a symbolic link to " + path), std::string::npos);
  EXPECT_TRUE(fs::is_symlink(link));
}

}  // namespace
}  // namespace retrograd
