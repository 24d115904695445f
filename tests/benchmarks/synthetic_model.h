#pragma once
#include <memory>

#include "tests/support/model_builder.h"

namespace retrograd::benchmarks {

/// A model of some `ops` computation ops: residual blocks of ten ops (layer norm, linear, gelu, linear, dropout off,
/// scale, add, ...) with parameters of their own. Tensors are small: what is measured is the traces.
inline ModelFile syntheticModel(std::size_t ops) {
  test::ModelBuilder m;
  constexpr std::int64_t width = 8;
  auto x = m.input("x", {4, width});
  for (std::size_t block = 0; block * 10 < ops; ++block) {
    const auto name = [&](const char* what) { return "blocks." + std::to_string(block) + "." + what; };
    const auto weight = m.parameter(name("norm.weight"), {width}), bias = m.parameter(name("norm.bias"), {width});
    const auto up = m.parameter(name("up.weight"), {2 * width, width}),
               upBias = m.parameter(name("up.bias"), {2 * width});
    const auto down = m.parameter(name("down.weight"), {width, 2 * width}),
               downBias = m.parameter(name("down.bias"), {width});
    const auto normed = m.op("aten.layer_norm.default", {x, test::ModelBuilder::list({width}), weight, bias});
    const auto hidden = m.op("aten.gelu.default", {m.op("aten.linear.default", {normed, up, upBias})});
    const auto out = m.op("aten.linear.default", {hidden, down, downBias});
    const auto gate = m.op("aten.sigmoid.default", {m.op("aten.mul.Tensor", {out, weight})});
    const auto gated = m.op("aten.mul.Tensor", {out, gate});
    const auto turned = m.op("aten.transpose.int", {m.op("aten.transpose.int", {gated, 0, 1}), 0, 1});
    x = m.op("aten.add.Tensor", {x, turned});
  }
  m.output(m.op("aten.sum.default", {x}));
  return m.take();
}

/// The same with each block in a module of its own; the joint has 4.2 ops for each of the computation.
inline ModelFile inModules(std::size_t ops) {
  auto model = syntheticModel(ops);
  const auto& all = model.computation.trace.ops;
  for (std::size_t i = 0; i < all.size(); ++i)
    model.document->boundSymbol(all[i]).module = model.document->intern("blocks." + std::to_string(i / 10));
  return model;
}

}  // namespace retrograd::benchmarks
