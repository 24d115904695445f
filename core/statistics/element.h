#pragma once
// Elements of a tensor as numbers. Compiled by nvcc for the GPU and by the C++ compiler for the CPU, so that the tests
// that run without a GPU cover it.
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/base/tensor_meta.h"

#ifdef __CUDACC__
#include <cuda_fp16.h>
#define RETROGRAD_BOTH __host__ __device__ inline
#else
#define RETROGRAD_BOTH inline
#endif

namespace retrograd::numbers {

template <class To, class From>
RETROGRAD_BOTH To reinterpretBits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

/// What says NaN and infinity in a small float: IEEE's exponent of all ones; only mantissa of all ones as well is NaN
/// (fn); the number minus zero is NaN (fnuz).
enum class Specials { ieee, fn, fnuz };

/// A float of `exponentBits` and `mantissaBits`, exactly.
template <int exponentBits, int mantissaBits, int bias, Specials specials>
RETROGRAD_BOTH float smallFloat(std::uint32_t bits) {
  constexpr std::uint32_t mantissaMask = (1u << mantissaBits) - 1, exponentMask = (1u << exponentBits) - 1;
  const std::uint32_t sign = bits >> (exponentBits + mantissaBits) << 31,
                      exponent = bits >> mantissaBits & exponentMask, mantissa = bits & mantissaMask;
  constexpr std::uint32_t nan = 0x7fc00000u;
  if (specials == Specials::fnuz && sign && exponent == 0 && mantissa == 0) return reinterpretBits<float>(nan);
  if (specials == Specials::fn && exponent == exponentMask && mantissa == mantissaMask)
    return reinterpretBits<float>(nan);
  if (specials == Specials::ieee && exponent == exponentMask)
    return reinterpretBits<float>(mantissa ? nan : sign | 0x7f800000u);
  if (exponent == 0) {
    const float unit = reinterpretBits<float>(static_cast<std::uint32_t>(1 - bias - mantissaBits + 127) << 23);
    return (sign ? -1.0f : 1.0f) * static_cast<float>(mantissa) * unit;
  }
  return reinterpretBits<float>(sign | (exponent - bias + 127) << 23 | mantissa << (23 - mantissaBits));
}

RETROGRAD_BOTH float halfToFloat(std::uint16_t bits) {
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(bits));
#else
  return smallFloat<5, 10, 15, Specials::ieee>(bits);
#endif
}

/// A power of two: eight exponent bits, no mantissa, no sign, no zero.
RETROGRAD_BOTH float exponentToFloat(std::uint8_t bits) {
  if (bits == 0xff) return reinterpretBits<float>(0x7fc00000u);
  return reinterpretBits<float>(bits ? static_cast<std::uint32_t>(bits) << 23 : 0x00400000u);
}

template <class Part>
struct Pair {
  Part real, imaginary;
};

/// The absolute value, in double precision; infinite where either part is.
RETROGRAD_BOTH double absolute(double real, double imaginary) {
  if (std::isinf(real) || std::isinf(imaginary)) return INFINITY;
  return hypot(real, imaginary);
}

/// For each dtype: how it lies in memory, what its number is, in float where that holds it exactly, and its smallest
/// normal number. Complex numbers count by absolute value, rounded to the precision of their parts; the eight-bit
/// floats as the floats that they are turned into.
template <DType>
struct Element;

#define RETROGRAD_ELEMENT(dtype, Memory, Real, normal, expression)                         \
  template <>                                                                              \
  struct Element<DType::dtype> {                                                           \
    using Bits = Memory;                                                                   \
    using Number = Real;                                                                   \
    static constexpr Real smallestNormal = normal;                                         \
    static RETROGRAD_BOTH Real number(Bits bits) { return static_cast<Real>(expression); } \
  };

RETROGRAD_ELEMENT(f32, float, float, FLT_MIN, bits)
RETROGRAD_ELEMENT(f64, double, double, DBL_MIN, bits)
RETROGRAD_ELEMENT(f16, std::uint16_t, float, 6.103515625e-05f, halfToFloat(bits))
RETROGRAD_ELEMENT(bf16, std::uint16_t, float, FLT_MIN, reinterpretBits<float>(static_cast<std::uint32_t>(bits) << 16))
RETROGRAD_ELEMENT(i8, std::int8_t, float, 0, bits)
RETROGRAD_ELEMENT(i16, std::int16_t, float, 0, bits)
RETROGRAD_ELEMENT(i32, std::int32_t, double, 0, bits)
RETROGRAD_ELEMENT(i64, std::int64_t, double, 0, bits)
RETROGRAD_ELEMENT(u8, std::uint8_t, float, 0, bits)
RETROGRAD_ELEMENT(u16, std::uint16_t, float, 0, bits)
RETROGRAD_ELEMENT(u32, std::uint32_t, double, 0, bits)
RETROGRAD_ELEMENT(u64, std::uint64_t, double, 0, bits)
RETROGRAD_ELEMENT(b8, std::uint8_t, float, 0, bits != 0)
RETROGRAD_ELEMENT(c32, Pair<std::uint16_t>, float, FLT_MIN,
                  absolute(halfToFloat(bits.real), halfToFloat(bits.imaginary)))
RETROGRAD_ELEMENT(c64, Pair<float>, float, FLT_MIN, absolute(bits.real, bits.imaginary))
RETROGRAD_ELEMENT(c128, Pair<double>, double, DBL_MIN, absolute(bits.real, bits.imaginary))
RETROGRAD_ELEMENT(f8e4m3fn, std::uint8_t, float, FLT_MIN, (smallFloat<4, 3, 7, Specials::fn>(bits)))
RETROGRAD_ELEMENT(f8e5m2, std::uint8_t, float, FLT_MIN, (smallFloat<5, 2, 15, Specials::ieee>(bits)))
RETROGRAD_ELEMENT(f8e4m3fnuz, std::uint8_t, float, FLT_MIN, (smallFloat<4, 3, 8, Specials::fnuz>(bits)))
RETROGRAD_ELEMENT(f8e5m2fnuz, std::uint8_t, float, FLT_MIN, (smallFloat<5, 2, 16, Specials::fnuz>(bits)))
RETROGRAD_ELEMENT(f8e8m0fnu, std::uint8_t, float, FLT_MIN, exponentToFloat(bits))
#undef RETROGRAD_ELEMENT

/// Whole numbers and booleans.
template <class Element>
constexpr bool isInteger = std::is_integral_v<typename Element::Bits> && Element::smallestNormal == 0;

// clang-format off
/// X(dtype) for each of them.
#define RETROGRAD_EACH_DTYPE(X)                                                                          \
  X(f32) X(f64) X(f16) X(bf16) X(i8) X(i16) X(i32) X(i64) X(u8) X(u16) X(u32) X(u64) X(b8) X(c32) X(c64) \
  X(c128) X(f8e4m3fn) X(f8e5m2) X(f8e4m3fnuz) X(f8e5m2fnuz) X(f8e8m0fnu)
// clang-format on

/// Calls `visit` with the Element of a dtype; false for a dtype there is none of.
template <class Visit>
bool withElement(DType dtype, Visit&& visit) {
  switch (dtype) {
#define RETROGRAD_CASE(name) \
  case DType::name: visit(Element<DType::name>()); return true;
    RETROGRAD_EACH_DTYPE(RETROGRAD_CASE)
#undef RETROGRAD_CASE
  }
  return false;
}

}  // namespace retrograd::numbers
