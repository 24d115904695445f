#include "core/formats/zip/zip_writer.h"

#include <gtest/gtest.h>

#include "core/formats/zip/archive.h"
#include "tests/core/formats/cases.h"

namespace retrograd {
namespace {

std::span<const std::byte> bytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(ZipWriter, archivesReadBack) {
  const auto path = test::writeTemporary("writer.zip", "x");
  const std::string repeated(200000, 'r');
  {
    ZipWriter zip(path);
    zip.addDeflated("text", repeated);
    zip.addDeflated("nothing", "");
    zip.addStored("bytes", bytesOf("stored bytes"));
    zip.addStored("none", {});
    zip.commit();
  }
  const auto archive = Archive::open(path);
  EXPECT_EQ(archive->read("text").text(), repeated);
  EXPECT_LT(archive->find("text")->compressedSize, 2000u);
  EXPECT_EQ(archive->read("nothing").size, 0u);
  EXPECT_EQ(archive->read("bytes").text(), "stored bytes");
  EXPECT_EQ(archive->read("none").size, 0u);
}

TEST(ZipWriter, storedMembersLieAligned) {
  const auto path = test::writeTemporary("aligned.zip", "x");
  {
    ZipWriter zip(path);
    for (int i = 0; i < 100; ++i)
      zip.addStored(std::string(static_cast<std::size_t>(i + 1), 'n'),
                    bytesOf(std::string(static_cast<std::size_t>(i), 'c')));
    zip.commit();
  }
  const auto archive = Archive::open(path);
  for (const auto& entry : archive->entries()) EXPECT_EQ(entry.dataOffset % ZipWriter::alignment, 0u) << entry.name;
}

TEST(ZipWriter, moreMembersThanSixteenBitsCount) {
  const auto path = test::writeTemporary("many.zip", "x");
  {
    ZipWriter zip(path);
    for (int i = 0; i < 66000; ++i) zip.addStored(std::to_string(i), {}, 1);
    zip.commit();
  }
  const auto archive = Archive::open(path);
  EXPECT_EQ(archive->entries().size(), 66000u);
  EXPECT_TRUE(archive->has("65999"));
}

TEST(ZipWriter, withoutCommitNothingChanges) {
  const auto path = test::writeTemporary("kept.zip", "as it was");
  {
    ZipWriter zip(path);
    zip.addDeflated("text", "new");
  }
  EXPECT_EQ(test::contentOf(path), "as it was");
}

}  // namespace
}  // namespace retrograd
