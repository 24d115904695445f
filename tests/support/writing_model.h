#pragma once
#include "tests/support/model_builder.h"

namespace retrograd::test {

/// Draws, writes through a view, to a buffer and by copy_, after which what was there before is needed.
inline std::shared_ptr<const Analysis> writingModel() {
  ModelBuilder m;
  const auto x = m.input("x", {3, 4}), w = m.parameter("w", {4}), b = m.buffer("b", {4});
  auto y = m.op("aten.mul.Tensor", {x, w});
  for (int i = 0; i < 4; ++i) {
    y = m.op("aten.dropout.default", {y, 0.5, Argument::ofBool(true)});
    const auto z = m.op("aten.sin.default", {y});
    m.op("aten.add_.Tensor", {m.op("aten.select.int", {z, 0, 1}), 1.0});
    m.op("aten.mul_.Tensor", {b, 0.5});
    m.op("aten.copy_.default", {m.op("aten.select.int", {z, 0, 2}), b});
    y = m.op("aten.relu_.default", {m.op("aten.add.Tensor", {z, b})});
  }
  m.output(y);
  return m.analyse();
}

}  // namespace retrograd::test
