#pragma once
#include <optional>
#include <utility>

#include "core/debug/analysis.h"

namespace retrograd {

/// How far two runs may differ, relative to the largest output or gradient.
struct Tolerances {
  double outputs, gradients;
};

inline constexpr double doubleTolerance = 1e-9;

inline bool isHalf(DType d) { return d == DType::f16 || d == DType::bf16 || d == DType::c32; }
inline bool isSingle(DType d) { return d == DType::f32 || d == DType::c64; }

/// `asked` where it is given; else 2e-2 where forward or backward compute in bfloat16 or float16, 1e-9 where all is float64, else
/// max(1e-5, 20 * noise) for `noise` of [outputs, gradients], and 1e-4 without it.
Tolerances tolerancesFor(const Analysis& analysis, std::optional<double> asked, const std::optional<std::pair<double, double>>& noise);

/// Calls `visit(op, meta)` for every tensor that forward and backward compute.
template <class Visit>
void forEachComputedMeta(const Analysis& analysis, Visit&& visit) {
  const auto& document = *analysis.document;
  for (const auto* trace : {&analysis.forward, &analysis.backward})
    for (auto op : trace->ops)
      for (auto output : document.outputs(op))
        if (output && document.isTensor(output)) visit(op, document.meta(document.value(output).meta));
}

}  // namespace retrograd
