#pragma once
// Sums without vectors: what is left behind the last whole vector, and rare cases.
#include <algorithm>
#include <cmath>

#include "core/statistics/element.h"
#include "core/statistics/sums.h"

namespace retrograd {

template <class Element>
void addOneByOne(Element, const void* data, std::int64_t count, Sums& sums) {
  const auto* p = static_cast<const typename Element::Bits*>(data);
  for (std::int64_t i = 0; i < count; ++i) {
    const double x = Element::number(p[i]), size = std::abs(x);
    if (!std::isfinite(x)) {
      ++(std::isnan(x) ? sums.nan : sums.inf);
      continue;
    }
    sums.sum += x;
    sums.absolutes += numbers::isInteger<Element> ? static_cast<double>(static_cast<float>(size)) : size;
    sums.squares += x * x;
    sums.least = std::min(sums.least, x);
    sums.greatest = std::max(sums.greatest, x);
    sums.zeros += size == 0;
    sums.subnormal += size != 0 && size < Element::smallestNormal;
  }
}

}  // namespace retrograd
