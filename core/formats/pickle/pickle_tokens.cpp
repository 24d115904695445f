#include "core/formats/pickle/pickle_tokens.h"

#include <bit>
#include <cstring>

namespace retrograd {
namespace {

constexpr std::size_t windowBytes = std::size_t{1} << 20, longestText = std::size_t{64} << 20;

[[noreturn]] void cutOff() { badInput("pickle: cut off"); }

}  // namespace

void PickleTokens::readLong(std::uint64_t width) {
  const auto* raw = reinterpret_cast<const std::uint8_t*>(bytes(width));
  text_ = {};
  integer_ = 0;
  if (width > 8) {
    text_ = {reinterpret_cast<const char*>(raw), width};  // more than a number of 64 bits
    return;
  }
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < width; ++i) n |= std::uint64_t{raw[i]} << (8 * i);
  if (width > 0 && width < 8 && (n >> (8 * width - 1) & 1) != 0) n |= ~std::uint64_t{0} << (8 * width);
  integer_ = static_cast<std::int64_t>(n);
}

void PickleTokens::readReal() {
  const auto* raw = reinterpret_cast<const std::uint8_t*>(bytes(8));
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < 8; ++i) bits = bits << 8 | raw[i];  // the one big-endian number in the format
  real_ = std::bit_cast<double>(bits);
}

void PickleTokens::readGlobal() {
  const auto line = [this] {
    std::string text;
    constexpr std::size_t longest = 4096;
    for (auto c = *bytes(1); c != '\n'; c = *bytes(1)) {
      if (text.size() == longest) badInput("pickle: the name of a class is longer than 4096 characters");
      text += c;
    }
    return text;
  };
  module_ = line();
  const auto length = module_.size();
  module_ += line();
  text_ = std::string_view(module_).substr(0, length);
  name_ = std::string_view(module_).substr(length);
}

void PickleTokens::refill(std::uint64_t count) {
  if (!stream_) cutOff();
  if (count > longestText) badInput("pickle: a text of more than 64 MiB");
  auto kept = static_cast<std::size_t>(end_ - at_);
  if (window_.empty()) window_.resize(windowBytes);
  if (kept > 0) std::memmove(window_.data(), at_, kept);
  while (kept < count) {
    if (kept == window_.size()) window_.resize(2 * kept);
    const auto more = stream_->read(window_.data() + kept, window_.size() - kept);
    if (more == 0) cutOff();
    kept += more;
  }
  at_ = window_.data();
  end_ = at_ + kept;
}

}  // namespace retrograd
