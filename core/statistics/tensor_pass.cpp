#include "core/statistics/tensor_pass.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/statistics/sums.h"

namespace retrograd {
namespace {

/// A tensor's memory in chunks of runs that lie side by side. The order of elements is that of memory, not that of the
/// tensor.
class Walk {
 public:
  explicit Walk(const Footprint& footprint) : footprint_(footprint), item_(itemSize(footprint.dtype)) {}

  std::int64_t chunks() const { return (footprint_.elements + chunk - 1) / chunk; }

  /// Calls `visit(data, count)` with the elements of one chunk.
  template <class Visit>
  void run(std::int64_t index, Visit&& visit) const {
    const auto begin = index * chunk, end = std::min(begin + chunk, footprint_.elements);
    const auto inner = footprint_.dims.back();
    const bool isOneRun = footprint_.dims.size() == 1 && end - begin <= inner.size;
    if (inner.stride == 1 && (inner.size >= shortest || isOneRun))
      return forEachRun(begin, end, [&](const std::byte* from, std::int64_t count) { visit(from, count); });
    const auto room = std::min(gathered, end - begin);
    std::vector<std::byte> buffer(room * item_);
    std::int64_t filled = 0;
    forEachRun(begin, end, [&](const std::byte* from, std::int64_t count) {
      for (std::int64_t done = 0; done < count;) {
        const auto now = std::min(count - done, room - filled);
        gather(from + done * inner.stride * item_, now, inner.stride, buffer.data() + filled * item_);
        done += now;
        filled += now;
        if (filled < room) continue;
        visit(buffer.data(), filled);
        filled = 0;
      }
    });
    if (filled > 0) visit(buffer.data(), filled);
  }

 private:
  static constexpr std::int64_t chunk = 1 << 17, gathered = 4096, shortest = 256;

  /// Pieces of the innermost dimension, for elements `begin` to `end` in the order of the dimensions.
  template <class Visit>
  void forEachRun(std::int64_t begin, std::int64_t end, Visit&& visit) const {
    const auto& dims = footprint_.dims;
    const auto inner = dims.back();
    const auto* data = static_cast<const std::byte*>(footprint_.data);
    while (begin < end) {
      auto row = begin / inner.size;
      const auto column = begin % inner.size, count = std::min(inner.size - column, end - begin);
      auto offset = column * inner.stride;
      for (std::size_t d = dims.size() - 1; d-- > 0;) {
        offset += row % dims[d].size * dims[d].stride;
        row /= dims[d].size;
      }
      visit(data + offset * item_, count);
      begin += count;
    }
  }

  template <class Bits>
  static void gatherAs(const std::byte* from, std::int64_t count, std::int64_t stride, std::byte* to) {
    for (std::int64_t i = 0; i < count; ++i)
      std::memcpy(to + i * static_cast<std::int64_t>(sizeof(Bits)),
                  from + i * stride * static_cast<std::int64_t>(sizeof(Bits)), sizeof(Bits));
  }

  void gather(const std::byte* from, std::int64_t count, std::int64_t stride, std::byte* to) const {
    struct Sixteen {
      std::uint64_t parts[2];
    };
    if (stride == 1) return void(std::memcpy(to, from, static_cast<std::size_t>(count * item_)));
    switch (item_) {
      case 1: return gatherAs<std::uint8_t>(from, count, stride, to);
      case 2: return gatherAs<std::uint16_t>(from, count, stride, to);
      case 4: return gatherAs<std::uint32_t>(from, count, stride, to);
      case 8: return gatherAs<std::uint64_t>(from, count, stride, to);
      default: return gatherAs<Sixteen>(from, count, stride, to);
    }
  }

  const Footprint& footprint_;
  std::int64_t item_;
};

constexpr double leastSquares = 1e-260;  // below, squares of doubles may have become 0
constexpr double cancelled = 1e-6;       // of the squares: what is less than that has lost too many digits

/// Means and squares where the first pass's sums do not do.
void lookAgain(const Footprint& footprint, const Sums& sums, bool inRange, const ForEachChunk& forEachChunk,
               TensorStatistics& result) {
  const auto count = static_cast<double>(sums.finite()), copies = static_cast<double>(footprint.copies);
  const Walk walk(footprint);
  if (!inRange) {
    WideSums all;
    for (std::int64_t i = 0; i < walk.chunks(); ++i)
      walk.run(i, [&](const void* data, std::int64_t elements) { addWideSums(footprint.dtype, data, elements, all); });
    const long double times = static_cast<long double>(footprint.copies), n = static_cast<long double>(sums.finite()),
                      mean = all.sum * times / n;
    result.mean = static_cast<double>(mean);
    result.norm = static_cast<double>(std::sqrt(all.squares * times));
    result.norm1 = static_cast<double>(all.absolutes * times);
    if (n > 1)
      result.standardDeviation =
          static_cast<double>(std::sqrt(std::max(0.0L, all.squares * times - n * mean * mean) / (n - 1)));
    return;
  }
  std::vector<Distances> parts(walk.chunks());
  forEachChunk(walk.chunks(), [&](std::int64_t i) {
    walk.run(i, [&](const void* data, std::int64_t elements) {
      addDistances(footprint.dtype, data, elements, result.mean, parts[i]);
    });
  });
  Distances all;
  for (const auto& part : parts) {
    all.sum += part.sum * copies;
    all.squares += part.squares * copies;
  }
  result.mean += all.sum / count;
  result.standardDeviation = std::sqrt(std::max(0.0, all.squares - all.sum * all.sum / count) / (count - 1));
}

}  // namespace

Footprint::Footprint(const StridedNumbers& numbers) : dtype(numbers.dtype), data(numbers.data) {
  std::vector<Dim> found;
  for (std::size_t d = 0; d < numbers.sizes.size(); ++d) {
    const auto size = numbers.sizes[d], stride = numbers.strides[d];
    if (size == 0) elements = 0;
    if (size > 1 && stride == 0) copies *= size;
    if (size > 1 && stride != 0) found.push_back({size, stride});
  }
  std::sort(found.begin(), found.end(), [](const Dim& a, const Dim& b) { return a.stride > b.stride; });
  for (const auto& dim : found) {
    elements *= dim.size;
    if (!dims.empty() && dims.back().stride == dim.stride * dim.size)
      dims.back() = {dims.back().size * dim.size, dim.stride};
    else dims.push_back(dim);
  }
  if (dims.empty()) dims.push_back({1, 1});
}

TensorStatistics statisticsOf(const Footprint& footprint, const ForEachChunk& forEachChunk) {
  const Walk walk(footprint);
  Sums sums;
  if (walk.chunks() == 1) {
    walk.run(0, [&](const void* data, std::int64_t elements) { addSums(footprint.dtype, data, elements, sums); });
  } else {
    std::vector<Sums> parts(walk.chunks());
    forEachChunk(walk.chunks(), [&](std::int64_t i) {
      walk.run(i, [&](const void* data, std::int64_t elements) { addSums(footprint.dtype, data, elements, parts[i]); });
    });
    for (const auto& part : parts) sums.merge(part);
  }
  const auto copies = footprint.copies;
  for (auto* count : {&sums.elements, &sums.nan, &sums.inf, &sums.zeros, &sums.subnormal}) *count *= copies;
  for (auto* sum : {&sums.sum, &sums.absolutes, &sums.squares}) *sum *= static_cast<double>(copies);

  TensorStatistics result;
  result.elements = sums.elements;
  result.nan = sums.nan;
  result.inf = sums.inf;
  result.zeros = sums.zeros;
  result.subnormal = sums.subnormal;
  if (sums.finite() == 0) return result;
  const auto count = static_cast<double>(sums.finite());
  result.min = sums.least;
  result.max = sums.greatest;
  result.mean = sums.sum / count;
  result.norm = std::sqrt(sums.squares);
  result.norm1 = sums.absolutes;
  const bool zero = sums.least == 0 && sums.greatest == 0,
             inRange = zero || (sums.squares > leastSquares && std::isfinite(sums.squares));
  const double distances = sums.squares - sums.sum * result.mean;
  if (inRange && sums.least == sums.greatest) result.mean = sums.least;
  else if (inRange && distances > cancelled * sums.squares)
    result.standardDeviation = std::sqrt(distances / (count - 1));
  else lookAgain(footprint, sums, inRange, forEachChunk, result);
  return result;
}

}  // namespace retrograd
