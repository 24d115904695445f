#include "core/base/id_vector.h"

#include <gtest/gtest.h>

#include <concepts>
#include <string>

#include "core/base/enum_array.h"

namespace retrograd {
namespace {

template <class Table, class Index>
concept IndexedBy = requires(Table table, Index index) { table[index]; };

static_assert(IndexedBy<IdVector<ValueId, int>, ValueId>);
static_assert(!IndexedBy<IdVector<ValueId, int>, StorageId>, "an id of another kind is no index");
static_assert(!IndexedBy<IdVector<ValueId, int>, std::size_t>, "nor is a number");

enum class Fruit { apple, pear };
static_assert(IndexedBy<EnumArray<Fruit, int, 2>, Fruit>);
static_assert(!IndexedBy<EnumArray<Fruit, int, 2>, std::size_t>);

TEST(IdVector, GivesIdsInTheOrderInWhichEntriesCome) {
  IdVector<ValueId, std::string> names;
  EXPECT_TRUE(names.empty());
  EXPECT_EQ(names.nextId(), ValueId(0));
  EXPECT_EQ(names.push_back("a"), ValueId(0));
  EXPECT_EQ(names.push_back("b"), ValueId(1));
  EXPECT_EQ(names[ValueId(0)], "a");
  EXPECT_EQ(names[ValueId(1)], "b");
  std::string all;
  for (auto id : names.ids()) all += std::to_string(id.index) + names[id];
  EXPECT_EQ(all, "0a1b");
}

TEST(IdVector, ContainsOnlyIdsBelowItsSize) {
  IdVector<ValueId, int> table(2, 7);
  EXPECT_TRUE(table.contains(ValueId(0)));
  EXPECT_TRUE(table.contains(ValueId(1)));
  EXPECT_FALSE(table.contains(ValueId(2)));
  EXPECT_FALSE(table.contains(ValueId())) << "none is in no table";
  table.resize(3, 8);
  EXPECT_TRUE(table.contains(ValueId(2)));
  EXPECT_EQ(table[ValueId(2)], 8);
}

TEST(IdVector, HoldsBitsAsAVectorDoes) {
  IdVector<StorageId, bool> marks(3);
  marks[StorageId(1)] = true;
  const auto& read = marks;
  EXPECT_FALSE(read[StorageId(0)]);
  EXPECT_TRUE(read[StorageId(1)]);
  marks.assign(2, false);
  EXPECT_EQ(marks, (IdVector<StorageId, bool>(2)));
}

TEST(IdVector, HasNoIdsWhereItIsEmpty) {
  const IdVector<ValueId, int> table;
  for (auto id : table.ids()) FAIL() << id.index;
}

#ifndef NDEBUG
TEST(IdVectorDeathTest, StopsAtAnIdThatIsNotItsOwn) {
  IdVector<ValueId, int> table(1);
  EXPECT_DEATH(table[ValueId(1)] = 0, "contains");
  EXPECT_DEATH(table[ValueId()] = 0, "contains");
}
#endif

TEST(EnumArray, HoldsOneEntryForEachEnumerator) {
  constexpr EnumArray<Fruit, const char*, 2> names{"apple", "pear"};
  static_assert(names.size() == 2);
  EXPECT_STREQ(names[Fruit::pear], "pear");
  EnumArray<Fruit, int, 2> counts{};
  ++counts[Fruit::apple];
  EXPECT_EQ(counts, (EnumArray<Fruit, int, 2>{1, 0}));
}

}  // namespace
}  // namespace retrograd
