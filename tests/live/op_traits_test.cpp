// The table of what ops do beyond their schema.
#include "core/trace/op_traits.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

namespace retrograd {
namespace {

/// A new PyTorch may bring another op of a family that the table of traits has.
TEST(OpTraits, knowAllOpsOfAFamily) {
  const std::vector<std::pair<std::string, OpTrait>> families{
      {"aten::_assert", OpTrait::check},          {"aten::sym_constrain", OpTrait::check},
      {"aten::_print", OpTrait::prints},          {"aten::detach", OpTrait::detach},
      {"aten::as_strided", OpTrait::readsMemory}, {"aten::empty", OpTrait::leavesUnwritten},
      {"aten::_empty", OpTrait::leavesUnwritten}, {"aten::new_empty", OpTrait::leavesUnwritten}};
  for (const auto& op : c10::Dispatcher::singleton().getAllOpNames())
    for (const auto& [family, trait] : families)
      if (op.name.starts_with(family)) {
        auto name = "aten." + op.name.substr(6) + "." + op.overload_name;
        EXPECT_TRUE(hasTrait(name, trait)) << name;
      }
  EXPECT_TRUE(hasTrait("higher_order.cond", OpTrait::passesOperands));
  EXPECT_FALSE(hasTrait("higher_order.cond", OpTrait::region));
  EXPECT_FALSE(hasTrait("", OpTrait::check));
}

}  // namespace
}  // namespace retrograd
