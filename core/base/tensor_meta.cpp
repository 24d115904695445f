#include "core/base/tensor_meta.h"

#include <algorithm>

#include "core/base/enum_array.h"
#include "core/base/error.h"
#include "core/base/number_text.h"

namespace retrograd {
namespace {

struct DTypeInfo {
  std::string_view shortName, torchName;
  std::int64_t bytes;
};
constexpr EnumArray<DType, DTypeInfo, dtypeCount> infos{{{"u8", "uint8", 1},
                                                         {"i8", "int8", 1},
                                                         {"i16", "int16", 2},
                                                         {"i32", "int32", 4},
                                                         {"i64", "int64", 8},
                                                         {"f16", "float16", 2},
                                                         {"f32", "float32", 4},
                                                         {"f64", "float64", 8},
                                                         {"c32", "complex32", 4},
                                                         {"c64", "complex64", 8},
                                                         {"c128", "complex128", 16},
                                                         {"b8", "bool", 1},
                                                         {"bf16", "bfloat16", 2},
                                                         {"u16", "uint16", 2},
                                                         {"u32", "uint32", 4},
                                                         {"u64", "uint64", 8},
                                                         {"f8e4m3fn", "float8_e4m3fn", 1},
                                                         {"f8e5m2", "float8_e5m2", 1},
                                                         {"f8e4m3fnuz", "float8_e4m3fnuz", 1},
                                                         {"f8e5m2fnuz", "float8_e5m2fnuz", 1},
                                                         {"f8e8m0fnu", "float8_e8m0fnu", 1}}};
const DTypeInfo& info(DType d) { return infos[d]; }

}  // namespace

std::int64_t itemSize(DType d) { return info(d).bytes; }
std::string_view shortName(DType d) { return info(d).shortName; }
std::string_view torchName(DType d) { return info(d).torchName; }

std::optional<DType> dtypeFromTorchName(std::string_view name) {
  if (name.starts_with("torch.")) name.remove_prefix(6);
  for (int i = 0; i < dtypeCount; ++i)
    if (const auto d = static_cast<DType>(i); infos[d].torchName == name) return d;
  return std::nullopt;
}

std::optional<DType> dtypeFromShortName(std::string_view name) {
  for (int i = 0; i < dtypeCount; ++i)
    if (const auto d = static_cast<DType>(i); infos[d].shortName == name) return d;
  return std::nullopt;
}

bool isComplex(DType d) { return d == DType::c32 || d == DType::c64 || d == DType::c128; }
bool isFloating(DType d) {
  return d == DType::f16 || d == DType::f32 || d == DType::f64 || d == DType::bf16 || d >= DType::f8e4m3fn;
}

std::string toString(Device device) {
  static constexpr EnumArray<Device::Type, const char*, 4> names{"cpu", "cuda", "meta", "other"};
  std::string text = names[device.type];
  if (device.index >= 0) text += ":" + std::to_string(device.index);
  return text;
}

Device deviceFromString(std::string_view text) {
  Device device;
  const auto colon = text.find(':');
  const auto type = text.substr(0, colon);
  device.type = type == "cpu"    ? Device::Type::cpu
                : type == "cuda" ? Device::Type::cuda
                : type == "meta" ? Device::Type::meta
                                 : Device::Type::other;
  if (colon != std::string_view::npos) {
    const auto index = numberIn<std::int8_t>(text.substr(colon + 1));
    if (!index || *index < 0) return {Device::Type::other, -1};
    device.index = *index;
  }
  return device;
}

std::int64_t TensorMeta::elements() const {
  std::int64_t n = 1;
  for (auto s : sizes) n *= s;
  return n;
}

std::int64_t TensorMeta::storageBytes() const {
  std::int64_t last = offset;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
    if (i < strides.size()) last += (sizes[i] - 1) * strides[i];
  }
  return (last + 1) * itemSize(dtype);
}

std::vector<std::int64_t> contiguousStrides(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> strides(sizes.size());
  std::int64_t step = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<std::int64_t>(sizes[i], 1);
  }
  return strides;
}

std::string typeComment(const TensorMeta& meta) {
  std::string text = toString(meta.device) + " " + std::string(shortName(meta.dtype)) + "[";
  for (std::size_t i = 0; i < meta.sizes.size(); ++i) {
    if (i) text += ", ";
    const bool symbolic = i < meta.symbols.size() && !meta.symbols[i].empty();
    text += symbolic ? meta.symbols[i] + "=" + std::to_string(meta.sizes[i]) : std::to_string(meta.sizes[i]);
  }
  return text + "]";
}

namespace {

/// a * b + c with all of them known to be >= 0.
std::int64_t multiplyAdd(std::int64_t a, std::int64_t b, std::int64_t c) {
  std::int64_t product = 0, sum = 0;
  if (__builtin_mul_overflow(a, b, &product) || __builtin_add_overflow(product, c, &sum))
    badInput("a tensor larger than 2^63 bytes");
  return sum;
}

}  // namespace

void checkExtent(const TensorMeta& meta) {
  std::int64_t elements = 1, last = meta.offset;
  bool empty = false;
  for (std::size_t i = 0; i < meta.sizes.size(); ++i) {
    empty |= meta.sizes[i] == 0;
    elements = multiplyAdd(elements, std::max<std::int64_t>(meta.sizes[i], 1), 0);
    if (meta.sizes[i] > 0) last = multiplyAdd(meta.sizes[i] - 1, meta.strides[i], last);
  }
  multiplyAdd(elements, itemSize(meta.dtype), 0);
  if (!empty) multiplyAdd(multiplyAdd(last, 1, 1), itemSize(meta.dtype), 0);
}

}  // namespace retrograd
