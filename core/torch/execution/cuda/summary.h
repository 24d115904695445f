#pragma once
// What one thread of the kernels does to its elements, and how its results are merged with those of others. Compiled
// for the GPU and, for the CPU twin (twin.h), by the C++ compiler: the same operations in the same order give the same
// bits on both.
#include "core/statistics/element.h"
#include "core/torch/execution/cuda/interface.h"

namespace retrograd::cuda {
using namespace numbers;

RETROGRAD_BOTH int exponentOf(float x) {
  return static_cast<int>(reinterpretBits<std::uint32_t>(x) >> 23 & 0xff) - 127;
}
RETROGRAD_BOTH int exponentOf(double x) {
  return static_cast<int>(reinterpretBits<std::uint64_t>(x) >> 52 & 0x7ff) - 1023;
}

RETROGRAD_BOTH float magnitudeOf(float x) { return fabsf(x); }
RETROGRAD_BOTH double magnitudeOf(double x) { return fabs(x); }
RETROGRAD_BOTH bool isFinite(float x) { return fabsf(x) <= FLT_MAX; }
RETROGRAD_BOTH bool isFinite(double x) { return fabs(x) <= DBL_MAX; }

/// The cell that `x` is counted in. `normal`: the smallest normal number of its dtype, 0 for integers.
template <class Number>
RETROGRAD_BOTH int magnitudeCell(Number x, Number normal) {
  const Number size = magnitudeOf(x);
  if (!isFinite(x)) return x == x ? infinityCell : nanCell;
  if (size == 0) return zeroCell;
  if (size < normal) return subnormalCell;
  const int octave = exponentOf(x) - leastExponent;
  return firstOctaveCell + (octave < 0 ? 0 : octave >= octaves ? octaves - 1 : octave);
}

/// The cells from `least` to `greatest`, both finite.
RETROGRAD_BOTH LinearCells linearCells(double least, double greatest, int cells) {
  constexpr double tiny = 1e-280;  // a range below it has no reciprocal; the numbers are then so small themselves
  double factor = 1;
  if (!isFinite(greatest - least)) factor = 0.5;
  else if (greatest - least < tiny) factor = 0x1p200;
  const double range = greatest * factor - least * factor;
  return {factor, least * factor, range > 0 ? cells / range : 0, cells};
}

/// The cell of a finite `x`; the nearest one for what lies outside of the cells.
RETROGRAD_BOTH int linearCell(double x, const LinearCells& cells) {
  const double cell = (x * cells.factor - cells.least) * cells.scale;
  if (!(cell > 0)) return 0;
  return cell >= cells.cells ? cells.cells - 1 : static_cast<int>(cell);
}

/// Chan, Golub and LeVeque's update of two sets' moments.
RETROGRAD_BOTH Summary merged(const Summary& a, const Summary& b) {
  Summary both = a.finite == 0 ? b : a;
  both.finite = a.finite + b.finite;
  both.zeros = a.zeros + b.zeros;
  both.subnormal = a.subnormal + b.subnormal;
  both.infinite = a.infinite + b.infinite;
  both.nan = a.nan + b.nan;
  if (a.finite == 0 || b.finite == 0) return both;
  const double total = static_cast<double>(both.finite), share = static_cast<double>(b.finite) / total,
               delta = b.mean - a.mean;
  both.mean = fma(delta, share, a.mean);
  both.squares = a.squares + fma(delta * delta, static_cast<double>(a.finite) * share, b.squares);
  both.norm = a.norm + b.norm;
  both.absolutes = a.absolutes + b.absolutes;
  both.least = b.least < a.least ? b.least : a.least;
  both.greatest = b.greatest > a.greatest ? b.greatest : a.greatest;
  return both;
}

/// How many vectors a thread has on their way at a time, and how many elements these hold: 32 where that makes 2 to 8
/// vectors.
template <class Element>
inline constexpr int perVector = vectorBytes / static_cast<int>(sizeof(typename Element::Bits));
template <class Element>
inline constexpr bool isSingle = std::is_same_v<typename Element::Number, float>;
template <class Element>
inline constexpr int loads = !isSingle<Element>            ? 4
                             : 32 / perVector<Element> < 2 ? 2
                             : 32 / perVector<Element> > 8 ? 8
                                                           : 32 / perVector<Element>;
template <class Element>
inline constexpr int chunk = loads<Element> * perVector<Element>;

/// One thread's elements. Distances are taken from its first finite element, so that nothing cancels; sums are in
/// double precision.
template <class Element>
struct Accumulator {
  using Number = typename Element::Number;
  double shift = 0, sum = 0, squares = 0, norm = 0, absolutes = 0;
  Number least = INFINITY, greatest = -INFINITY;
  std::uint32_t finite = 0, zeros = 0, subnormal = 0, infinite = 0, nan = 0;

  RETROGRAD_BOTH void add(Number x) {
    if (!isFinite(x)) {
      ++(x == x ? infinite : nan);
      return;
    }
    const double value = x;
    if (finite++ == 0) shift = value;
    const double distance = value - shift;
    sum += distance;
    squares = fma(distance, distance, squares);
    norm = fma(value, value, norm);
    absolutes += isInteger<Element> ? static_cast<double>(magnitudeOf(static_cast<float>(x)))
                                    : static_cast<double>(magnitudeOf(x));
    least = x < least ? x : least;
    greatest = x > greatest ? x : greatest;
    countSmall(x);
  }

  /// The elements of one chunk. Floats are added up as such, as distances from the chunk's first element: an error of a
  /// few roundings of that precision in the chunk's sum of squares, none where all are equal. False where their squares
  /// may leave the range of a float, or one is not finite: then they are to be added one by one.
  RETROGRAD_BOTH bool addChunk(const Number (&x)[chunk<Element>]) {
    if constexpr (!isSingle<Element>) {
#pragma unroll
      for (int i = 0; i < chunk<Element>; ++i) add(x[i]);
      return true;
    } else {
      const float first = x[0];
      float distances[2] = {}, squared[2] = {}, sizes[2] = {};
      float low = first, high = first, small = fabsf(first);
#pragma unroll
      for (int i = 0; i < chunk<Element>; ++i) {
        const float distance = x[i] - first;
        distances[i % 2] += distance;
        squared[i % 2] = fmaf(distance, distance, squared[i % 2]);
        sizes[i % 2] += fabsf(x[i]);
        low = fminf(low, x[i]);
        high = fmaxf(high, x[i]);
        small = fminf(small, fabsf(x[i]));
      }
      const float size = sizes[0] + sizes[1];  // NaN or infinite where an element is
      if (!(size <= 1e17f && (size >= 1e-14f || size == 0))) return false;
      addSums(first, distances[0] + distances[1], squared[0] + squared[1], size);
      least = fminf(least, low);
      greatest = fmaxf(greatest, high);
      if (small == 0 || small < Element::smallestNormal) {
#pragma unroll
        for (int i = 0; i < chunk<Element>; ++i) countSmall(x[i]);
      }
      return true;
    }
  }

  RETROGRAD_BOTH Summary summary() const {
    Summary result{};
    result.zeros = zeros;
    result.subnormal = subnormal;
    result.infinite = infinite;
    result.nan = nan;
    result.finite = finite;
    if (finite == 0) return result;
    const double mean = sum / finite, squared = fma(-sum, mean, squares);
    result.mean = shift + mean;
    result.squares = squared > 0 ? squared : 0;
    result.norm = norm;
    result.absolutes = absolutes;
    result.least = least;
    result.greatest = greatest;
    return result;
  }

 private:
  RETROGRAD_BOTH void countSmall(Number x) {
    const Number size = magnitudeOf(x);
    zeros += size == 0;
    subnormal += size != 0 && size < Element::smallestNormal;
  }

  /// A chunk whose elements are `first` + d, by the sums of d, of d squared and of absolute values.
  RETROGRAD_BOTH void addSums(double first, double distances, double squared, double sizes) {
    constexpr double n = chunk<Element>;
    if (finite == 0) shift = first;
    finite += chunk<Element>;
    const double away = first - shift;  // x - shift = away + d
    sum += fma(n, away, distances);
    squares += fma(away, fma(n, away, 2 * distances), squared);
    norm += fma(first, fma(n, first, 2 * distances), squared);
    absolutes += sizes;
  }
};

/// `most`: the most blocks; as many as run at once are fastest.
template <class Element>
Layout layoutOf(const Tensor& tensor, int most) {
  constexpr std::int64_t item = sizeof(typename Element::Bits);
  Layout layout{};
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data);
  if (!tensor.contiguous || address % item != 0) {
    layout.tail = tensor.elements;  // one by one
  } else {
    const auto before = static_cast<std::int64_t>((vectorBytes - address % vectorBytes) % vectorBytes) / item;
    layout.head = before < tensor.elements ? before : tensor.elements;
    layout.vectors = (tensor.elements - layout.head) / perVector<Element>;
    layout.tail = tensor.elements - layout.head - layout.vectors * perVector<Element>;
  }
  const auto byChunks = layout.vectors / (loads<Element> * threads), byOnes = layout.tail / (4 * threads);
  const auto wanted = byChunks > byOnes ? byChunks : byOnes;
  layout.blocks = static_cast<std::int32_t>(wanted < 1 ? 1 : wanted > most ? most : wanted);
  return layout;
}

/// Where element `i`, in row-major order, of a strided tensor lies.
RETROGRAD_BOTH std::int64_t placeOf(const Tensor& tensor, std::int64_t i) {
  if (tensor.contiguous) return i;
  std::int64_t place = 0;
  for (int d = tensor.dims - 1; d >= 0; --d) {
    place += i % tensor.sizes[d] * tensor.strides[d];
    i /= tensor.sizes[d];
  }
  return place;
}

/// What one load brings.
struct alignas(vectorBytes) Vector {
  std::uint32_t words[vectorBytes / 4];
};

/// The elements of a vector as numbers, from `to` on.
template <class Element>
RETROGRAD_BOTH void takeApart(const Vector& vector, typename Element::Number* to) {
  typename Element::Bits elements[perVector<Element>];
  memcpy(elements, &vector, sizeof elements);
#pragma unroll
  for (int k = 0; k < perVector<Element>; ++k) to[k] = Element::number(elements[k]);
}

/// The elements of thread `index` of `stride`: `visitChunk` gets those of whole chunks, an array of numbers at a time,
/// and says whether it took them; `visit` gets the others one by one.
template <class Element, class Visit, class VisitChunk>
RETROGRAD_BOTH void forEachOf(const Tensor& tensor, const Layout& layout, std::int64_t index, std::int64_t stride,
                              Visit&& visit, VisitChunk&& visitChunk) {
  using Number = typename Element::Number;
  const auto* data = static_cast<const typename Element::Bits*>(tensor.data);
  for (std::int64_t i = index; i < layout.head; i += stride) visit(Element::number(data[i]));
  const auto* vectors = reinterpret_cast<const Vector*>(data + layout.head);
  const auto visitVector = [&](const Vector& vector) {
    Number numbers[perVector<Element>];
    takeApart<Element>(vector, numbers);
#pragma unroll
    for (int k = 0; k < perVector<Element>; ++k) visit(numbers[k]);
  };
  std::int64_t v = index;
  for (; v + (loads<Element> - 1) * stride < layout.vectors; v += loads<Element> * stride) {
    Vector some[loads<Element>];
#pragma unroll
    for (int u = 0; u < loads<Element>; ++u) some[u] = vectors[v + u * stride];
    Number numbers[chunk<Element>];
#pragma unroll
    for (int u = 0; u < loads<Element>; ++u) takeApart<Element>(some[u], numbers + u * perVector<Element>);
    if (visitChunk(numbers)) continue;
#pragma unroll 1
    for (int u = 0; u < loads<Element>; ++u) visitVector(vectors[v + u * stride]);
  }
#pragma unroll 1
  for (; v < layout.vectors; v += stride) visitVector(vectors[v]);
  const std::int64_t rest = layout.head + layout.vectors * perVector<Element>;
  for (std::int64_t i = index; i < layout.tail; i += stride) visit(Element::number(data[placeOf(tensor, rest + i)]));
}

/// The same, all of them one by one.
template <class Element, class Visit>
RETROGRAD_BOTH void forEachOf(const Tensor& tensor, const Layout& layout, std::int64_t index, std::int64_t stride,
                              Visit&& visit) {
  forEachOf<Element>(tensor, layout, index, stride, visit,
                     [&](const typename Element::Number(&numbers)[chunk<Element>]) {
#pragma unroll
                       for (int i = 0; i < chunk<Element>; ++i) visit(numbers[i]);
                       return true;
                     });
}

template <class Element>
RETROGRAD_BOTH Summary summaryOfThread(const Tensor& tensor, const Layout& layout, std::int64_t index,
                                       std::int64_t stride) {
  Accumulator<Element> accumulator;
  forEachOf<Element>(
      tensor, layout, index, stride, [&](typename Element::Number x) { accumulator.add(x); },
      [&](const typename Element::Number(&numbers)[chunk<Element>]) { return accumulator.addChunk(numbers); });
  return accumulator.summary();
}

}  // namespace retrograd::cuda
