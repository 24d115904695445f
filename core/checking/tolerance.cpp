#include "core/checking/tolerance.h"

#include <algorithm>

namespace retrograd {
namespace {

constexpr double halfTolerance = 2e-2, floatTolerance = 1e-5, unknownFloatTolerance = 1e-4, noiseFactor = 20;

}  // namespace

Tolerances tolerancesFor(const Analysis& analysis, std::optional<double> asked, const std::optional<std::pair<double, double>>& noise) {
  if (asked) return {*asked, *asked};
  bool half = false, single = false;
  forEachComputedMeta(analysis, [&](BoundSymbolId, const TensorMeta& meta) {
    half |= isHalf(meta.dtype);
    single |= isSingle(meta.dtype);
  });
  if (half) return {halfTolerance, halfTolerance};
  if (!single) return {doubleTolerance, doubleTolerance};
  if (!noise) return {unknownFloatTolerance, unknownFloatTolerance};
  return {std::max(floatTolerance, noiseFactor * noise->first), std::max(floatTolerance, noiseFactor * noise->second)};
}

}  // namespace retrograd
