// The types of tensors.
#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/tensor_meta.h"
#include "core/formats/text/text_cursor.h"

namespace retrograd::text {
namespace {

std::optional<DType> dtypeNamed(std::string_view name) {
  const auto dtype = dtypeFromShortName(name);
  return dtype ? dtype : dtypeFromTorchName(name);
}

std::optional<Device> deviceNamed(std::string_view name) {
  static constexpr std::array<std::string_view, 4> types{"cpu", "cuda", "meta", "other"};
  return std::find(types.begin(), types.end(), name) == types.end() ? std::nullopt
                                                                    : std::optional(deviceFromString(name));
}

/// One size: "4", or "s0*2=4" with its expression.
void readSize(Cursor& cursor, TensorMeta& meta) {
  const auto rest = cursor.rest();
  std::size_t end = 0, equals = std::string_view::npos;
  for (int depth = 0; end < rest.size() && !(depth == 0 && (rest[end] == ',' || rest[end] == ']')); ++end) {
    depth += rest[end] == '(' ? 1 : rest[end] == ')' ? -1 : 0;
    if (rest[end] == '=' && depth == 0) equals = end;
  }
  std::string symbol;
  if (equals < end) {
    symbol = rest.substr(0, equals);
    if (symbol.empty()) cursor.expected("the expression of a size");
    cursor.skip(equals + 1);
  }
  const auto size = cursor.integer();
  if (!size || *size < 0)
    cursor.expected(symbol.empty() ? "a size, or an expression and its value such as s0=4" : "the value of this size");
  meta.sizes.push_back(*size);
  meta.symbols.push_back(std::move(symbol));
}

void readSizes(Cursor& cursor, TensorMeta& meta) {
  cursor.expect("[");
  while (!cursor.take("]")) {
    if (meta.sizes.size() == maxRank) cursor.expected("at most " + std::to_string(maxRank) + " sizes");
    readSize(cursor, meta);
    if (!cursor.take(", ") && !cursor.take(",") && !cursor.rest().starts_with(']')) cursor.expected("',' or ']'");
  }
  if (std::all_of(meta.symbols.begin(), meta.symbols.end(), [](const std::string& s) { return s.empty(); }))
    meta.symbols.clear();
}

void readStrides(Cursor& cursor, TensorMeta& meta) {
  meta.strides.clear();
  cursor.expect("[");
  while (!cursor.take("]")) {
    const auto stride = cursor.integer();
    if (!stride || *stride < 0 || meta.strides.size() == meta.sizes.size()) cursor.expected("a stride for each size");
    meta.strides.push_back(*stride);
    if (!cursor.take(", ") && !cursor.take(",") && !cursor.rest().starts_with(']')) cursor.expected("',' or ']'");
  }
  if (meta.strides.size() != meta.sizes.size()) cursor.expected("a stride for each size");
}

bool takeLayout(Cursor& cursor, TensorMeta& meta) {
  static constexpr std::array<std::string_view, 7> layouts{"strided",    "sparse_coo", "sparse_csr", "sparse_csc",
                                                           "sparse_bsr", "sparse_bsc", "mkldnn"};
  for (std::size_t i = 0; i < layouts.size(); ++i)
    if (cursor.take(layouts[i])) {
      meta.layout = static_cast<Layout>(i);
      return true;
    }
  return false;
}

}  // namespace

TensorMeta readType(const Source& source, Cursor& cursor) {
  const auto begin = cursor.place();
  const auto check = [&](const TensorMeta& meta) {
    try {
      checkExtent(meta);
    } catch (const Error& e) {
      fail(source, begin, e.message());
    }
  };
  TensorMeta meta;
  auto name = std::string(cursor.plainWord());
  if (deviceNamed(name)) {
    cursor.skip(name.size());
    if (cursor.take(":")) {
      const auto index = cursor.expectInteger("the number of a device");
      if (index < 0 || index > 127) cursor.expected("a device below 128");
      name += ":" + std::to_string(index);
    }
    meta.device = deviceFromString(name);
    cursor.expect(" ");
  }
  const auto dtype = dtypeNamed(cursor.plainWord());
  if (!dtype) cursor.expected("a type such as f32[2, 3]");
  meta.dtype = *dtype;
  cursor.skip(cursor.plainWord().size());
  readSizes(cursor, meta);
  meta.strides.assign(meta.sizes.size(), 0);
  check(meta);  // before strides are made of sizes that overflow
  meta.strides = contiguousStrides(meta.sizes);
  while (!cursor.atEnd()) {
    cursor.expect(" ");
    if (cursor.take("strides ")) {
      readStrides(cursor, meta);
    } else if (cursor.take("offset ")) {
      meta.offset = cursor.expectInteger("an offset");
      if (meta.offset < 0) cursor.expected("an offset of 0 or more");
    } else if (cursor.take("conj")) {
      meta.conjugate = true;
    } else if (cursor.take("neg")) {
      meta.negative = true;
    } else if (cursor.take("number")) {
      meta.wrappedNumber = true;
    } else if (!takeLayout(cursor, meta)) {
      cursor.expected("strides, offset, a layout, conj, neg or number");
    }
  }
  check(meta);
  return meta;
}

}  // namespace retrograd::text
