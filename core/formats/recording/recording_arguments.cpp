#include "core/formats/recording/recording_arguments.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/error.h"
#include "core/base/memory_account.h"

namespace retrograd::recording {
namespace {

std::optional<std::int64_t> memoryFormatNamed(std::string_view name) {
  constexpr std::array<std::string_view, 4> names{"contiguous_format", "preserve_format", "channels_last",
                                                  "channels_last_3d"};
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? std::nullopt : std::optional<std::int64_t>(found - names.begin());
}

}  // namespace

std::optional<Layout> layoutNamed(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Layout>, 7> names{{{"strided", Layout::strided},
                                                                      {"sparse_coo", Layout::sparse},
                                                                      {"sparse_csr", Layout::sparseCsr},
                                                                      {"sparse_csc", Layout::sparseCsc},
                                                                      {"sparse_bsr", Layout::sparseBsr},
                                                                      {"sparse_bsc", Layout::sparseBsc},
                                                                      {"_mkldnn", Layout::mkldnn}}};
  for (const auto& [text, layout] : names)
    if (text == name) return layout;
  return std::nullopt;
}

double realOf(const Json& value) {
  if (const Json* special = value.find("float")) return special->number();
  return value.number();
}

Argument ArgumentReader::unmakeable(std::string text) {
  metUnmakeable_ = true;
  return Argument::ofString(std::move(text));
}

Argument ArgumentReader::readTagged(const Json& value) {
  const auto& [tag, inner] = value.only();
  if (tag == "t") {
    constexpr std::size_t most = 65535;
    if (operands_.size() >= most) badInput("more than 65535 operands");
    operands_.push_back(use_(inner.integer()));
    return Argument::ofOperand(std::ssize(operands_) - 1);
  }
  if (tag == "float") return Argument::ofReal(inner.number());
  if (tag == "complex") {
    const auto parts = inner.items();
    if (parts.size() != 2) badInput("a complex number has two parts");
    return Argument::ofComplex(realOf(parts[0]), realOf(parts[1]));
  }
  if (tag == "dtype") {
    const auto dtype = dtypeFromTorchName(inner.text());
    return dtype ? Argument::ofDType(*dtype) : unmakeable("dtype " + std::string(inner.text()));
  }
  if (tag == "device") return Argument::ofDevice(std::string(inner.text()));
  if (tag == "layout") {
    const auto layout = layoutNamed(inner.text());
    return layout ? Argument::ofLayout(*layout) : unmakeable("layout " + std::string(inner.text()));
  }
  if (tag == "memory_format") {
    const auto format = memoryFormatNamed(inner.text());
    return format ? Argument::ofMemoryFormat(*format) : unmakeable("memory format " + std::string(inner.text()));
  }
  if (tag == "generator") return Argument::ofNone();  // the op's state is put into the default one
  if (tag == "group") {
    std::string ranks;
    for (const auto& rank : inner.items()) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank.integer());
    return unmakeable("group [" + ranks + "]");
  }
  if (tag == "reduce" || tag == "opaque") return unmakeable(std::string(inner.text()));
  return unmakeable("a value of kind '" + std::string(tag) + "'");
}

Argument ArgumentReader::read(const Json& value) {
  switch (value.kind()) {
    case Json::Kind::null: return Argument::ofNone();
    case Json::Kind::boolean: return Argument::ofBool(value.boolean());
    case Json::Kind::integer: return Argument::ofInt(value.integer());
    case Json::Kind::real: return Argument::ofReal(value.number());
    case Json::Kind::string: return Argument::ofString(std::string(value.text()));
    case Json::Kind::object: return readTagged(value);
    case Json::Kind::array: break;
  }
  std::vector<Argument> items;
  chargeReading(2 * value.items().size() * sizeof(Argument));
  items.reserve(value.items().size());
  for (const auto& item : value.items()) items.push_back(read(item));
  return Argument::ofList(std::move(items));
}

}  // namespace retrograd::recording
