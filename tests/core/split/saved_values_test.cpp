#include "core/split/saved_values.h"

#include <gtest/gtest.h>

#include "tests/core/trace/build.h"

namespace retrograd::test {
namespace {

TEST(SavedValues, memoryCountsOnceForTheFirstValueInItAndParametersAreFree) {
  Builder b;
  const auto x = b.input("x", {4}), w = b.input("w", {4}, ValueKind::parameter);
  const auto product = b.call("aten.mul.Tensor", {x, w});
  auto& document = b.document;
  const auto view = b.call("aten.view.default", {product}), transposed = b.call("aten.t.default", {w});
  document.value(view).storage = document.value(product).storage;
  document.value(transposed).storage = document.value(w).storage;

  // The view is named first, and twice; the op that made the memory runs first.
  const std::vector kept{view, transposed, view, product, w, x, ValueId()};
  const auto saved = savedValues(document, kept, b.trace.ops);
  EXPECT_EQ(saved.bytes, 16);
  EXPECT_EQ(saved.count, 5u);
  EXPECT_EQ(saved.costOf(product), 16);
  for (auto free : {view, transposed, w, x}) {
    EXPECT_TRUE(saved.contains(free));
    EXPECT_EQ(saved.costOf(free), 0);
  }
  // Without the value that made it, the view's memory counts for the view.
  EXPECT_EQ(savedValues(document, std::vector{view}, b.trace.ops).costOf(view), 16);
}

}  // namespace
}  // namespace retrograd::test
