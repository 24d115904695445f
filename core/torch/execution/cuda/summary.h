#pragma once
// What one thread of the statistics kernel does to its elements, and how its results are merged with those of others.
// Compiled for the GPU and, for the CPU twin (twin.h), by the C++ compiler: the same operations in the same order give
// the same bits on both.
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

/// The cell of Summary::magnitudes that `x` belongs to. `normal`: the smallest normal number of its dtype, 0 for
/// integers.
template <class Number>
RETROGRAD_BOTH int magnitudeCell(Number x, Number normal) {
  const Number size = magnitudeOf(x);
  if (!isFinite(x)) return x == x ? infinityCell : nanCell;
  if (size == 0) return zeroCell;
  if (size < normal) return subnormalCell;
  const int octave = exponentOf(x) - leastExponent;
  return firstOctaveCell + (octave < 0 ? 0 : octave >= octaves ? octaves - 1 : octave);
}

/// Cells per unit of a linear histogram from `least` to `greatest`; 0 where all elements are equal.
RETROGRAD_BOTH double linearScale(double least, double greatest, int cells) {
  return greatest > least ? cells / (greatest - least) : 0;
}

/// The cell of a linear histogram that a finite `x` belongs to.
RETROGRAD_BOTH int linearCell(double x, double least, double scale, int cells) {
  const double cell = (x - least) * scale;
  return cell >= cells ? cells - 1 : static_cast<int>(cell);
}

/// Moments of some elements, mergeable.
struct Moments {
  double mean = 0, squares = 0, norm = 0, absolutes = 0, least = 0, greatest = 0;
  std::int64_t finite = 0;
};

/// Chan, Golub and LeVeque's update of two sets' moments.
RETROGRAD_BOTH Moments merged(const Moments& a, const Moments& b) {
  if (b.finite == 0) return a;
  if (a.finite == 0) return b;
  Moments both;
  both.finite = a.finite + b.finite;
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

/// One thread's elements, one after the other. Distances are taken from its first finite element, so that nothing
/// cancels; least and greatest stay in the elements' precision, which saves the GPU's few double units.
template <class Element>
struct Accumulator {
  using Number = typename Element::Number;
  double shift = 0, sum = 0, squares = 0, norm = 0, absolutes = 0;
  Number least = 0, greatest = 0;
  std::uint32_t finite = 0;

  RETROGRAD_BOTH void add(Number x) {
    if (!isFinite(x)) return;
    const double value = x;
    if (finite++ == 0) {
      shift = value;
      least = greatest = x;
    }
    const double distance = value - shift;
    sum += distance;
    squares = fma(distance, distance, squares);
    norm = fma(value, value, norm);
    absolutes += isInteger<Element> ? static_cast<double>(magnitudeOf(static_cast<float>(x)))
                                    : static_cast<double>(magnitudeOf(x));
    least = x < least ? x : least;
    greatest = x > greatest ? x : greatest;
  }

  RETROGRAD_BOTH Moments moments() const {
    Moments result;
    if (finite == 0) return result;
    result.finite = finite;
    const double mean = sum / finite, squared = fma(-sum, mean, squares);
    result.mean = shift + mean;
    result.squares = squared > 0 ? squared : 0;
    result.norm = norm;
    result.absolutes = absolutes;
    result.least = least;
    result.greatest = greatest;
    return result;
  }
};

/// How the work is laid out: `blocks` of `threads`, each thread takes vectors of 16 bytes in strides of the whole grid.
/// The same for every GPU, so that results do not depend on it. What lies before the first and behind the last whole
/// vector goes one by one to the first threads.
inline constexpr int threads = 256, warp = 32, mostBlocks = 1024, vectorBytes = 16;

struct Layout {
  std::int64_t head = 0, vectors = 0, tail = 0;  ///< elements, vectors, elements
  int blocks = 1;
};

inline Layout layoutOf(const Tensor& tensor, std::int64_t itemBytes) {
  Layout layout;
  const std::int64_t perVector = vectorBytes / itemBytes;
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data);
  if (!tensor.contiguous || perVector < 1 || address % static_cast<std::uintptr_t>(itemBytes) != 0) {
    layout.tail = tensor.elements;  // one by one
  } else {
    const auto before = static_cast<std::int64_t>((vectorBytes - address % vectorBytes) % vectorBytes) / itemBytes;
    layout.head = before < tensor.elements ? before : tensor.elements;
    layout.vectors = (tensor.elements - layout.head) / perVector;
    layout.tail = tensor.elements - layout.head - layout.vectors * perVector;
  }
  const auto work = layout.vectors > layout.tail ? layout.vectors : layout.tail;
  const auto wanted = (work + 4 * threads - 1) / (4 * threads);
  layout.blocks = static_cast<int>(wanted < 1 ? 1 : wanted > mostBlocks ? mostBlocks : wanted);
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

/// Elements `index`, `index + stride`, ... of thread `index` of `stride`; `visit` gets each as a number.
template <class Element, class Visit>
RETROGRAD_BOTH void forEachOf(const Tensor& tensor, const Layout& layout, std::int64_t index, std::int64_t stride,
                              Visit&& visit) {
  using Bits = typename Element::Bits;
  const auto* data = static_cast<const Bits*>(tensor.data);
  constexpr int perVector = vectorBytes / sizeof(Bits) > 0 ? vectorBytes / sizeof(Bits) : 1;
  const auto visitVector = [&](const Vector& vector) {
    Bits elements[perVector];
    memcpy(elements, &vector, sizeof elements);
    for (int k = 0; k < perVector; ++k) visit(Element::number(elements[k]));
  };
  for (std::int64_t i = index; i < layout.head; i += stride) visit(Element::number(data[i]));
  const auto* vectors = reinterpret_cast<const Vector*>(data + layout.head);
  std::int64_t v = index;
  for (; v + stride < layout.vectors; v += 2 * stride) {  // two on their way at a time
    const Vector first = vectors[v], second = vectors[v + stride];
    visitVector(first);
    visitVector(second);
  }
  if (v < layout.vectors) visitVector(vectors[v]);
  const std::int64_t rest = layout.head + layout.vectors * perVector;
  for (std::int64_t i = index; i < layout.tail; i += stride) visit(Element::number(data[placeOf(tensor, rest + i)]));
}

}  // namespace retrograd::cuda
