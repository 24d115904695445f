#include "core/formats/safetensors/npy.h"

#include <span>

#include "core/base/error.h"
#include "core/formats/files/atomic_file.h"
#include "core/formats/files/deferred_check.h"

namespace retrograd {
namespace {

/// NumPy's type string: byte order, kind, bytes an element; empty where it has none.
std::string_view npyType(DType dtype) {
  switch (dtype) {
    case DType::b8: return "|b1";
    case DType::u8: return "|u1";
    case DType::i8: return "|i1";
    case DType::u16: return "<u2";
    case DType::i16: return "<i2";
    case DType::u32: return "<u4";
    case DType::i32: return "<i4";
    case DType::u64: return "<u8";
    case DType::i64: return "<i8";
    case DType::f16: return "<f2";
    case DType::f32: return "<f4";
    case DType::f64: return "<f8";
    case DType::c64: return "<c8";
    case DType::c128: return "<c16";
    default: return {};
  }
}

std::string headerOf(const TensorMeta& meta, std::string_view type) {
  std::string shape;
  for (auto size : meta.sizes) shape += std::to_string(size) + ", ";
  if (meta.sizes.size() > 1) shape.resize(shape.size() - 2);
  else if (!shape.empty()) shape.pop_back();  // "(3,)"
  auto text = "{'descr': '" + std::string(type) + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  constexpr std::size_t before = 10, alignment = 64;  // magic, version and length; where the data begin
  text.append((alignment - (before + text.size() + 1) % alignment) % alignment, ' ');
  return text + '\n';
}

}  // namespace

void writeNpy(const std::string& path, const TensorData& tensor) {
  const auto& meta = tensor.meta;
  const auto type = npyType(meta.dtype);
  if (type.empty()) badUse("NumPy has no " + std::string(torchName(meta.dtype)) + ": save it as .safetensors", path);
  const auto wanted = contiguousStrides(meta.sizes);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (meta.sizes[i] > 1 && meta.elements() > 0 && meta.strides.at(i) != wanted[i])
      badUse("the tensor is not contiguous", path);
  const auto header = headerOf(meta, type);
  if (header.size() > 0xffff) badUse("it has too many dimensions for the format", path);
  AtomicFile file(path);
  file.write(std::string_view("\x93NUMPY\x01\x00", 8));
  const char length[2] = {static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  file.write(std::string_view(length, 2));
  file.write(header);
  requireVerified(tensor.data);
  if (meta.bytes() > 0)
    file.write(std::span(tensor.data + meta.offset * itemSize(meta.dtype), static_cast<std::size_t>(meta.bytes())));
  file.commit();
}

}  // namespace retrograd
