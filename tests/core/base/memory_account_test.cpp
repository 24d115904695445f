#include "core/base/memory_account.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/formats/json/json_tree.h"

namespace retrograd {
namespace {

constexpr std::uint64_t mebi = 1 << 20;

TEST(MemoryAccount, limitsWhatIsHeldAtOnce) {
  const ReadingScope scope(mebi);
  const auto account = MemoryAccount::current();
  EXPECT_EQ(account->limit(), (256 + 64) * mebi);
  for (int i = 0; i < 10; ++i) {
    CountedMemory memory;
    auto* content = memory.allocate(200 * mebi);
    EXPECT_THROW(static_cast<void>(memory.allocate(200 * mebi)), Error);
    memory.deallocate(content, 200 * mebi);
  }
  EXPECT_NO_THROW(chargeReading(300 * mebi));
  EXPECT_THROW(chargeReading(~std::uint64_t{0}), Error);
}

TEST(MemoryAccount, isThatOfTheFileThatIsRead) {
  EXPECT_EQ(MemoryAccount::current(), nullptr);
  EXPECT_NO_THROW(chargeReading(~std::uint64_t{0}));  // no file is read
  const ReadingScope outer(0);
  const auto account = MemoryAccount::current();
  {
    const ReadingScope inner(mebi);
    EXPECT_NE(MemoryAccount::current(), account);
  }
  EXPECT_EQ(MemoryAccount::current(), account);
}

// Two characters a value do not become a gigabyte.
TEST(MemoryAccount, jsonOfManySmallValuesIsRefused) {
  std::string text = "[";
  for (int i = 0; i < 5'000'000; ++i) text += "1,";
  text += "1]";
  {
    const ReadingScope scope(1000);
    EXPECT_THROW(JsonTree tree(text), Error);
  }
  const ReadingScope scope(text.size());
  EXPECT_NO_THROW(JsonTree tree(text));
}

}  // namespace
}  // namespace retrograd
