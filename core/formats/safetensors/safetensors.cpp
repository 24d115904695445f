#include "core/formats/safetensors/safetensors.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/memory_account.h"
#include "core/formats/files/mapping_watch.h"
#include "core/formats/json/json_tree.h"

namespace retrograd {
namespace {

constexpr std::size_t lengthBytes = 8;
constexpr std::uint64_t maxHeader = 100'000'000;  // the reference implementation's own limit

struct DTypeName {
  std::string_view name;
  DType dtype;
};
constexpr std::array<DTypeName, 19> dtypeNames{{{"F64", DType::f64},
                                                {"F32", DType::f32},
                                                {"F16", DType::f16},
                                                {"BF16", DType::bf16},
                                                {"I64", DType::i64},
                                                {"I32", DType::i32},
                                                {"I16", DType::i16},
                                                {"I8", DType::i8},
                                                {"U8", DType::u8},
                                                {"BOOL", DType::b8},
                                                {"U16", DType::u16},
                                                {"U32", DType::u32},
                                                {"U64", DType::u64},
                                                {"C64", DType::c64},
                                                {"F8_E4M3", DType::f8e4m3fn},
                                                {"F8_E5M2", DType::f8e5m2},
                                                {"F8_E4M3FNUZ", DType::f8e4m3fnuz},
                                                {"F8_E5M2FNUZ", DType::f8e5m2fnuz},
                                                {"F8_E8M0", DType::f8e8m0fnu}}};

DType dtypeNamed(std::string_view name) {
  for (const auto& entry : dtypeNames)
    if (entry.name == name) return entry.dtype;
  badInput("unknown dtype '" + std::string(name) + "'");
}

std::uint64_t littleEndian64(const std::byte* bytes) {
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < lengthBytes; ++i) n |= std::uint64_t{static_cast<std::uint8_t>(bytes[i])} << (8 * i);
  return n;
}

/// Bytes of a contiguous tensor of that shape; an overflow or a negative size is an error.
std::int64_t bytesOf(const TensorMeta& meta) {
  std::int64_t bytes = itemSize(meta.dtype), steps = 1;
  for (const auto size : meta.sizes) {
    if (size < 0) badInput("a negative size");
    if (__builtin_mul_overflow(bytes, size, &bytes) ||
        __builtin_mul_overflow(steps, std::max<std::int64_t>(size, 1), &steps))
      badInput("a shape too large");
  }
  return bytes;
}

/// A place in the data part.
struct Extent {
  std::int64_t begin = 0, end = 0;
};

Extent readExtent(const Json& value, std::size_t available) {
  const auto offsets = value.items();
  if (offsets.size() != 2) badInput("data_offsets are not two numbers");
  const Extent extent{offsets[0].integer(), offsets[1].integer()};
  if (extent.begin < 0 || extent.end < extent.begin || static_cast<std::uint64_t>(extent.end) > available)
    badInput("data_offsets lie outside of the file");
  return extent;
}

TensorData readTensor(const Json& entry, const ByteRegion& file, std::size_t dataBegin, std::vector<Extent>& extents) {
  TensorData tensor;
  tensor.meta.dtype = dtypeNamed(entry.at("dtype").text());
  for (const auto& size : entry.at("shape").items()) tensor.meta.sizes.push_back(size.integer());
  if (tensor.meta.sizes.size() > 64) badInput("a tensor of more than 64 dimensions");
  const Extent extent = readExtent(entry.at("data_offsets"), file.size - dataBegin);
  const auto bytes = bytesOf(tensor.meta);
  if (bytes != extent.end - extent.begin)
    badInput("its shape needs " + std::to_string(bytes) + " bytes, its data_offsets span " +
             std::to_string(extent.end - extent.begin));
  extents.push_back(extent);
  tensor.meta.strides = contiguousStrides(tensor.meta.sizes);
  tensor.data = file.data + dataBegin + extent.begin;
  tensor.bytes = bytes;
  tensor.owner = file.owner;
  const std::size_t alignment = itemSize(tensor.meta.dtype);
  if (bytes > 0 && reinterpret_cast<std::uintptr_t>(tensor.data) % alignment != 0) {
    auto copy = std::make_shared<std::vector<std::byte>>(tensor.data, tensor.data + bytes);
    tensor.data = copy->data();
    tensor.owner = std::move(copy);
  }
  return tensor;
}

/// The format allows neither overlaps nor holes, so that a file has no second reading.
void checkCovered(std::vector<Extent> extents, std::size_t available) {
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return a.begin < b.begin || (a.begin == b.begin && a.end < b.end);
  });
  std::int64_t at = 0;
  for (const auto& extent : extents) {
    if (extent.begin < at) badInput("two tensors overlap");
    if (extent.begin > at) badInput("bytes that belong to no tensor");
    at = extent.end;
  }
  if (static_cast<std::uint64_t>(at) != available) badInput("bytes behind the last tensor");
}

SafetensorsFile readMapped(const ByteRegion& file) {
  if (file.size < lengthBytes) badInput("too short for a safetensors file");
  const auto length = littleEndian64(file.data);
  if (length > maxHeader || length > file.size - lengthBytes)
    badInput("the header does not fit into the file; is it a safetensors file?");
  const JsonTree tree(file.text().substr(lengthBytes, length));
  const std::size_t dataBegin = lengthBytes + length;
  SafetensorsFile result;
  std::vector<Extent> extents;
  for (const auto& [name, entry] : tree.root().members()) {
    try {
      if (name == "__metadata__") {
        for (const auto& [key, value] : entry.members()) result.metadata[std::string(key)] = std::string(value.text());
        continue;
      }
      if (!result.tensors.emplace(name, readTensor(entry, file, dataBegin, extents)).second) badInput("is there twice");
    } catch (const Error& e) {
      throw e.at("'" + std::string(name) + "'");
    }
  }
  checkCovered(std::move(extents), file.size - dataBegin);
  return result;
}

}  // namespace

SafetensorsFile readSafetensors(const ByteRegion& bytes, const std::string& place) {
  return readingFile(place, [&] { return readMapped(bytes); });
}

SafetensorsFile readSafetensors(const std::string& path) {
  const auto bytes = mapFile(path);
  const ReadingScope scope(bytes.size);
  return readUnchanged(bytes.data, [&] { return readSafetensors(bytes, path); });
}

std::string_view safetensorsName(DType dtype) {
  for (const auto& entry : dtypeNames)
    if (entry.dtype == dtype) return entry.name;
  return {};
}

}  // namespace retrograd
