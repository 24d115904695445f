#include "core/formats/pt2/pt2_values.h"

#include <array>

#include "core/base/error.h"

namespace retrograd::pt2 {
namespace {

std::int64_t nonNegative(std::int64_t n, const char* what) {
  if (n < 0) badInput(std::string("negative ") + what + " " + std::to_string(n));
  return n;
}

void readList(const Json& list, const char* what, std::vector<std::int64_t>& values,
              std::vector<std::string>& symbols) {
  const auto items = list.items();
  if (items.size() > maxRank) badInput("a tensor of " + std::to_string(items.size()) + " dimensions");
  values.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    auto n = readSymbolicInt(items[i]);
    values.push_back(nonNegative(n.value, what));
    if (n.expression.empty()) continue;
    symbols.resize(items.size());
    symbols[i] = std::move(n.expression);
  }
}

}  // namespace

DType dtypeOf(std::int64_t code) {
  static constexpr std::array<DType, 13> first{DType::u8,   DType::i8,  DType::i16, DType::i32, DType::i64,
                                               DType::f16,  DType::f32, DType::f64, DType::c32, DType::c64,
                                               DType::c128, DType::b8,  DType::bf16};
  static constexpr std::array<DType, 8> second{DType::u16,        DType::f8e4m3fn,  DType::f8e5m2, DType::f8e4m3fnuz,
                                               DType::f8e5m2fnuz, DType::f8e8m0fnu, DType::u32,    DType::u64};
  if (code >= 1 && code <= 13) return first[code - 1];
  if (code >= 28 && code <= 35) return second[code - 28];
  badInput("unknown dtype code " + std::to_string(code));
}

Layout layoutOf(std::int64_t code) {
  static constexpr std::array<Layout, 8> layouts{Layout::strided,   Layout::sparse,    Layout::sparseCsr,
                                                 Layout::sparseCsc, Layout::sparseBsr, Layout::sparseBsc,
                                                 Layout::mkldnn,    Layout::strided};
  if (code < 0 || code > 7) badInput("unknown layout code " + std::to_string(code));
  return layouts[code];
}

std::int64_t memoryFormatOf(std::int64_t code) {
  static constexpr std::array<std::int64_t, 5> formats{1, 0, 2, 3, 1};  // unknown is preserved
  if (code < 0 || code > 4) badInput("unknown memory format code " + std::to_string(code));
  return formats[code];
}

std::string deviceOf(const Json& device) {
  std::string name(device.at("type").text());
  const Json* index = device.find("index");
  if (index && !index->isNull()) {
    const auto i = index->integer();
    if (i < 0 || i > 127) badInput("device index " + std::to_string(i));
    name += ':';
    name += std::to_string(i);
  }
  return name;
}

SymbolicInt readSymbolicInt(const Json& value) {
  const auto& [key, inner] = value.only();
  if (key == "as_int") return {inner.integer(), {}};
  if (key != "as_expr") badInput("expected a size, found '" + std::string(key) + "'");
  SymbolicInt n{1, shortExpression(inner.at("expr_str").text())};
  if (n.expression.empty()) n.expression.push_back('?');
  if (const Json* hint = inner.find("hint"); hint && !hint->isNull()) n.value = hint->at("as_int").integer();
  return n;
}

TensorMeta readMeta(const Json& meta) {
  TensorMeta result;
  result.dtype = dtypeOf(meta.at("dtype").integer());
  if (const Json* device = meta.find("device"); device && !device->isNull())
    result.device = deviceFromString(deviceOf(*device));
  if (const Json* layout = meta.find("layout")) result.layout = layoutOf(layout->integer());
  readList(meta.at("sizes"), "size", result.sizes, result.symbols);
  readList(meta.at("strides"), "stride", result.strides, result.strideSymbols);
  if (result.layout == Layout::strided && result.strides.size() != result.sizes.size())
    badInput(std::to_string(result.sizes.size()) + " sizes but " + std::to_string(result.strides.size()) + " strides");
  result.strides.resize(result.sizes.size(), 0);
  if (const Json* offset = meta.find("storage_offset")) {
    auto n = readSymbolicInt(*offset);
    result.offset = nonNegative(n.value, "offset");
    result.offsetSymbol = std::move(n.expression);
  }
  checkExtent(result);
  return result;
}

}  // namespace retrograd::pt2
