#include "core/formats/zip/archive.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "core/formats/files/deferred_check.h"
#include "tests/core/formats/cases.h"
#include "tests/core/formats/zip/zip_writer.h"

namespace retrograd {
namespace {

using test::makeZip;
using test::writeTemporary;

std::shared_ptr<const Archive> openBytes(const std::string& bytes) {
  auto kept = std::make_shared<std::string>(bytes);
  return Archive::open(ByteRegion{reinterpret_cast<const std::byte*>(kept->data()), kept->size(), kept}, "test.zip");
}

std::string failure(const std::string& bytes) {
  try {
    openBytes(bytes);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::badInput);
    return e.what();
  }
  return {};
}

const test::ZipContent two{{"model/a.txt", "first"}, {"model/data/b", "second record"}};

TEST(Archive, dropsTheCommonFolder) {
  const auto archive = openBytes(makeZip(two));
  EXPECT_EQ(archive->read("a.txt").text(), "first");
  EXPECT_EQ(archive->read("data/b").text(), "second record");
  EXPECT_FALSE(archive->has("model/a.txt"));
}

TEST(Archive, keepsNamesWithoutACommonFolder) {
  const auto archive = openBytes(makeZip({{"a/x", "1"}, {"b/x", "2"}}));
  EXPECT_EQ(archive->read("b/x").text(), "2");
}

TEST(Archive, readsDeflatedAndZip64) {
  EXPECT_EQ(openBytes(makeZip(two, {.deflate = true}))->read("data/b").text(), "second record");
  EXPECT_EQ(openBytes(makeZip(two, {.zip64 = true}))->read("data/b").text(), "second record");
}

TEST(Archive, storedRecordsLieInTheFile) {
  const auto path = writeTemporary("stored.zip", makeZip(two));
  const auto file = mapFile(path);
  const auto archive = Archive::open(file, path);
  const auto region = archive->read("data/b");
  EXPECT_GE(region.data, file.data);
  EXPECT_LE(region.data + region.size, file.data + file.size);
}

TEST(Archive, aRegionOutlivesItsArchive) {
  auto archive = openBytes(makeZip(two));
  const auto region = archive->read("a.txt");
  archive.reset();
  EXPECT_EQ(region.text(), "first");
}

TEST(Archive, refusesWrongChecksums) {
  for (const bool deflate : {false, true}) {
    auto bytes = makeZip({{"a", "some content"}}, {.deflate = deflate});
    bytes[33] = static_cast<char>(bytes[33] ^ 1);
    EXPECT_NE(failure(bytes), "");
  }
}

TEST(Archive, refusesTwoMembersOfOneName) {
  EXPECT_NE(failure(makeZip({{"a", "1"}, {"a", "2"}})).find("twice"), std::string::npos);
}

TEST(Archive, refusesOverlappingMembers) {
  auto bytes = makeZip({{"a", "same"}, {"a", "same"}});
  // The second entry of the directory names the first member again.
  const auto second = bytes.rfind(std::string("\x50\x4b\x01\x02", 4));
  for (int i = 0; i < 4; ++i) bytes[second + 42 + static_cast<std::size_t>(i)] = 0;
  EXPECT_NE(failure(bytes), "");
}

TEST(Archive, refusesClaimsOfImpossibleSize) {
  auto bytes = makeZip({{"a", std::string(1000, 'x')}}, {.deflate = true});
  const auto entry = bytes.rfind(std::string("\x50\x4b\x01\x02", 4));
  bytes[entry + 27] = 0x40;  // 1 GiB of content
  EXPECT_NE(failure(bytes), "");
}

TEST(Archive, everyTruncationIsRefused) {
  const auto bytes = makeZip(two);
  for (std::size_t n = 0; n < bytes.size(); ++n) EXPECT_NE(failure(bytes.substr(0, n)), "") << n;
}

TEST(Archive, largeRecordsCostNoMemory) {
  // 1 GiB of zeros in a sparse file; read whole for its checksum, yet not kept.
  constexpr std::size_t size = std::size_t{1} << 30;
  const auto peak = [] {
    const auto status = test::contentOf("/proc/self/status");
    return std::stol(status.substr(status.find("VmRSS:") + 6)) * 1024;
  };
  const std::string zeros(1 << 20, '\0');
  uLong crc = 0;
  for (std::size_t at = 0; at < size; at += zeros.size())
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(zeros.data()), zeros.size());
  std::string head, tail;
  test::put(head, 0x04034b50, 4), test::put(head, 20, 2), test::put(head, 0, 8), test::put(head, crc, 4),
      test::put(head, size, 4);
  test::put(head, size, 4), test::put(head, 1, 2), test::put(head, 0, 2), head += 'w';
  test::put(tail, 0x02014b50, 4), test::put(tail, 20, 2), test::put(tail, 20, 2), test::put(tail, 0, 8),
      test::put(tail, crc, 4);
  test::put(tail, size, 4), test::put(tail, size, 4), test::put(tail, 1, 2), test::put(tail, 0, 12),
      test::put(tail, 0, 4), tail += 'w';
  const auto directory = tail.size();
  test::put(tail, 0x06054b50, 4), test::put(tail, 0, 4), test::put(tail, 1, 2), test::put(tail, 1, 2),
      test::put(tail, directory, 4);
  test::put(tail, head.size() + size, 4), test::put(tail, 0, 2);
  const auto path = writeTemporary("large.zip", head);
  std::filesystem::resize_file(path, head.size() + size);
  std::ofstream(path, std::ios::binary | std::ios::app) << tail;
  const auto before = peak();
  const auto archive = Archive::open(path);
  EXPECT_EQ(archive->read("w").size, size);
  EXPECT_LT(peak() - before, 64 << 20);
  std::filesystem::remove(path);
}

/// Large weights, more than open() waits for; the last byte of the last one is flipped where `damaged`.
std::string largeWeights(bool damaged) {
  test::ZipContent content{{"model/models/model.json", "{}"}};
  for (int i = 0; i < 5; ++i)
    content.emplace_back("model/data/weights/weight_" + std::to_string(i),
                         std::string(60u << 20, static_cast<char>('a' + i)));
  auto bytes = makeZip(content);
  if (damaged) bytes[bytes.rfind("eeee") + 3] ^= 1;
  return bytes;
}

TEST(Archive, LargeWeightsAreVerifiedWhileTheProgramWorks) {
  const auto path = writeTemporary("large.zip", largeWeights(true));
  const auto archive = Archive::open(path, {}, Archive::Verify::weightsLater);
  EXPECT_EQ(archive->read("models/model.json").text(), "{}");
  ASSERT_TRUE(archive->deferred());
  EXPECT_EQ(archive->deferred()->bytes(), std::uint64_t{300} << 20);
  const auto first = archive->readUnverified("data/weights/weight_0"),
             last = archive->readUnverified("data/weights/weight_4");
  requireVerified(first.data + 1000);  // whole
  try {
    requireVerified(last.data);  // before its first use, wherever the check is
    FAIL() << "the damaged weight was not noticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::badInput);
    EXPECT_NE(std::string(error.what()).find("data/weights/weight_4: is damaged"), std::string::npos) << error.what();
  }
  EXPECT_THROW(archive->read("data/weights/weight_4"), Error);
  EXPECT_THROW(archive->deferred()->wait(), Error);  // the check gets there too, and says so
  EXPECT_EQ(archive->deferred()->checkedBytes(), archive->deferred()->bytes());
  ASSERT_FALSE(verificationStatus().damaged.empty());
  EXPECT_NE(verificationStatus().damaged.back().find("weight_4"), std::string::npos);
  EXPECT_THROW(requireNoDamage(), Error);
}

TEST(Archive, S3wholeLargeWeightsPass) {
  const auto path = writeTemporary("whole.zip", largeWeights(false));
  const auto archive = Archive::open(path, {}, Archive::Verify::weightsLater);
  ASSERT_TRUE(archive->deferred());
  archive->deferred()->wait();
  EXPECT_FALSE(archive->deferred()->damage());
  EXPECT_EQ(archive->read("data/weights/weight_4").size, 60u << 20);
  EXPECT_FALSE(Archive::open(path)->deferred());  // who asks for all first gets it
  std::string damaged = largeWeights(true);
  const auto other = writeTemporary("first.zip", damaged);
  EXPECT_THROW(Archive::open(other), Error);
}

TEST(Archive, S3aCheckThatIsUnderWayEndsWithItsArchive) {
  const auto path = writeTemporary("left.zip", largeWeights(false));
  for (int i = 0; i < 20; ++i) Archive::open(path, {}, Archive::Verify::weightsLater);
  EXPECT_TRUE(verificationStatus().files.empty());
}

TEST(Archive, S3membersAreVerifiedWhenTheyAreRead) {
  auto bytes = makeZip({{"model/a.txt", "first"}, {"model/b", std::string(5000, 'b')}});
  bytes[bytes.find("bbbb") + 7] ^= 1;
  const auto path = writeTemporary("read.zip", bytes);
  const auto archive = Archive::open(path, {}, Archive::Verify::onRead);
  EXPECT_EQ(archive->read("a.txt").text(), "first");
  EXPECT_THROW(archive->read("b"), Error);
}

TEST(MapFile, refusesWhatIsNotAFile) {
  EXPECT_THROW(mapFile("/nonexistent/file"), Error);
  EXPECT_THROW(mapFile("/tmp"), Error);
  EXPECT_THROW(mapFile("/dev/null"), Error);
  EXPECT_THROW(mapFile(writeTemporary("empty", "")), Error);
}

}  // namespace
}  // namespace retrograd
