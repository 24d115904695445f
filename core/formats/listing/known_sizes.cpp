#include "core/formats/listing/known_sizes.h"

#include <fmt/format.h>

#include "core/base/number_text.h"
#include "core/trace/python_text.h"

namespace retrograd::jobs {

/// What a symbol, or an expression that cannot be worked out, is taken for.
std::int64_t KnownSizes::assume(const std::string& text) {
  const auto [taken, isNew] = assumed_.try_emplace(text, static_cast<std::int64_t>(2 + assumed_.size()));
  if (isNew)
    notes_.push_back(fmt::format("the log does not say what {} was; {} is taken for it", oneLine(text), taken->second));
  return taken->second;
}

Number KnownSizes::number(const std::string& text) {
  if (const auto plain = numberIn<std::int64_t>(text)) return Number::ofInt(*plain);
  const auto expression = SizeExpression::parse(text);
  if (!expression) return Number::ofInt(assume(text));
  auto bindings = sizes_;
  for (const auto& symbol : expression->symbols())
    if (!bindings.contains(symbol)) bindings[symbol] = assume(symbol);
  const auto value = evaluateNumber(*expression, bindings);
  return value ? *value : Number::ofInt(assume(text));
}

std::int64_t KnownSizes::size(const std::string& text) {
  const auto value = number(text);
  if (!value.isReal()) return value.integer;
  const auto whole = evaluateSize(pythonReal(value.real), {});
  return whole ? *whole : assume(text);
}

TensorMeta KnownSizes::meta(const fx::Type& type) {
  TensorMeta meta;
  meta.dtype = type.dtype;
  meta.device = deviceFromString(type.device.empty() ? "cpu" : type.device);
  for (const auto& text : type.sizes) meta.sizes.push_back(size(text));
  if (type.hasStrides) {
    for (const auto& text : type.strides) meta.strides.push_back(size(text));
    return meta;
  }
  meta.strides.assign(meta.sizes.size(), 0);
  checkExtent(meta);  // before strides are made of sizes that overflow
  meta.strides = contiguousStrides(meta.sizes);
  return meta;
}

}  // namespace retrograd::jobs
