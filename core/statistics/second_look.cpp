// What a second pass over the elements finds, where the first one says that it is needed.
#include "core/statistics/one_by_one.h"

namespace retrograd {
namespace {

template <class Visit>
void forEachFinite(DType dtype, const void* data, std::int64_t elements, Visit&& visit) {
  numbers::withElement(dtype, [&](auto element) {
    using Element = decltype(element);
    const auto* p = static_cast<const typename Element::Bits*>(data);
    for (std::int64_t i = 0; i < elements; ++i)
      if (const double x = Element::number(p[i]); std::isfinite(x)) visit(x);
  });
}

}  // namespace

void addDistances(DType dtype, const void* data, std::int64_t elements, double mean, Distances& distances) {
  double sum = 0, squares = 0;
  forEachFinite(dtype, data, elements, [&](double x) {
    sum += x - mean;
    squares += (x - mean) * (x - mean);
  });
  distances.sum += sum;
  distances.squares += squares;
}

void addWideSums(DType dtype, const void* data, std::int64_t elements, WideSums& sums) {
  forEachFinite(dtype, data, elements, [&](double x) {
    const long double wide = x;
    sums.sum += wide;
    sums.absolutes += std::abs(wide);
    sums.squares += wide * wide;
  });
}

}  // namespace retrograd
