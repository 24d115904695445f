#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace retrograd {

// clang-format off: many on a line
/// Element types of ATen, in our own numbering; printed as `torch.float32` or, short, `f32`.
enum class DType : std::uint8_t {
  u8, i8, i16, i32, i64, f16, f32, f64, c32, c64, c128, b8, bf16, u16, u32, u64,
  f8e4m3fn, f8e5m2, f8e4m3fnuz, f8e5m2fnuz, f8e8m0fnu
};
// clang-format on
inline constexpr int dtypeCount = 21;

std::int64_t itemSize(DType);       ///< bytes of one element
std::string_view shortName(DType);  ///< "f32", "i64", "b8"
std::string_view torchName(DType);  ///< "float32", without "torch."
std::optional<DType> dtypeFromTorchName(std::string_view);
std::optional<DType> dtypeFromShortName(std::string_view);
bool isFloating(DType);
bool isComplex(DType);
/// Can carry a gradient: floating or complex (PyTorch's is_differentiable_type).
inline bool isDifferentiable(DType d) { return isFloating(d) || isComplex(d); }

/// Where a tensor lives. index -1: the current device of that type.
struct Device {
  enum class Type : std::uint8_t { cpu, cuda, meta, other };
  Type type = Type::cpu;
  std::int8_t index = -1;
  auto operator<=>(const Device&) const = default;
};
std::string toString(Device);               ///< "cpu", "cuda:0"
Device deviceFromString(std::string_view);  ///< anything unknown is Type::other

enum class Layout : std::uint8_t { strided, sparse, sparseCsr, sparseCsc, sparseBsr, sparseBsc, mkldnn };

/// Shape, strides (in elements) and dtype of a tensor; no data. `symbols[i]` is the expression of a dynamic size
/// ("s0", "2*s0"), empty where the size is fixed; the vector is empty when all are. Likewise for strides and offset.
struct TensorMeta {
  DType dtype = DType::f32;
  Device device;
  Layout layout = Layout::strided;
  bool conjugate = false;      ///< lazy conjugation bit
  bool negative = false;       ///< lazy negation bit
  bool wrappedNumber = false;  ///< a Python number as 0-dim tensor: takes part in type promotion as a number does
  std::int64_t offset = 0;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  std::vector<std::string> symbols, strideSymbols;
  std::string offsetSymbol;

  bool operator==(const TensorMeta&) const = default;
  bool isSymbolic() const { return !symbols.empty() || !strideSymbols.empty() || !offsetSymbol.empty(); }
  std::int64_t elements() const;
  /// Elements times item size: what the value holds, not the storage under it.
  std::int64_t bytes() const { return elements() * itemSize(dtype); }
  /// Bytes from the storage's start to the last element reached.
  std::int64_t storageBytes() const;
};

std::vector<std::int64_t> contiguousStrides(const std::vector<std::int64_t>& sizes);
/// "cpu f32[2, 3]" as in the type comments of a printed trace.
std::string typeComment(const TensorMeta&);

inline constexpr std::size_t maxRank = 64;  ///< PyTorch's own limit for many kernels

/// Throws Error(badInput) for a tensor of more than 2^63 bytes or whose last element lies beyond them. Sizes, strides
/// and offset must not be negative.
void checkExtent(const TensorMeta& meta);

}  // namespace retrograd
