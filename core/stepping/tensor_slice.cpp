#include "core/stepping/tensor_slice.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "core/base/error.h"
#include "core/base/number_text.h"

namespace retrograd {
namespace {

/// One dimension of a slice: an index (count 1, taken away), or begin, count and step.
struct Range {
  std::int64_t begin = 0, count = 0, step = 1;
  bool index = false;
};

[[noreturn]] void refuse(const std::string& message, std::string_view slice) {
  badUse(message, "[" + std::string(slice) + "]");
}

std::vector<std::string_view> split(std::string_view text, char mark) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto at = text.find(mark);
    parts.push_back(trimmed(text.substr(0, at)));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::optional<std::int64_t> number(std::string_view text, std::string_view slice) {
  if (text.empty()) return std::nullopt;
  const auto value = numberIn<std::int64_t>(text);
  if (!value) refuse("'" + std::string(text) + "' is not an index", slice);
  return value;
}

Range rangeOf(std::string_view part, std::int64_t size, std::size_t dim, std::string_view slice) {
  const auto bounds = split(part, ':');
  if (bounds.size() > 3) refuse("expected an index or begin:end:step, not '" + std::string(part) + "'", slice);
  const auto first = number(bounds[0], slice);
  if (bounds.size() == 1) {
    if (!first) refuse("expected an index or a slice between the commas", slice);
    if (*first < -size || *first >= size)
      refuse("index " + std::to_string(*first) + " is outside of dimension " + std::to_string(dim) + ", which has " +
                 std::to_string(size) + " elements",
             slice);
    return {*first < 0 ? *first + size : *first, 1, 1, true};
  }
  const auto step = bounds.size() == 3 ? number(bounds[2], slice).value_or(1) : 1;
  if (step < 1) refuse("steps are positive", slice);
  const auto bound = [&](std::optional<std::int64_t> at, std::int64_t otherwise) {
    if (!at) return otherwise;
    return std::clamp<std::int64_t>(*at < 0 ? *at + size : *at, 0, size);
  };
  const auto begin = bound(first, 0), end = std::max(begin, bound(number(bounds[1], slice), size));
  const auto span = end - begin;
  return {begin, span / step + (span % step != 0), step, false};
}

std::vector<Range> rangesOf(std::string_view slice, const std::vector<std::int64_t>& sizes) {
  auto parts = split(slice, ',');
  if (parts.size() > 1 && parts.back().empty()) parts.pop_back();  // "1," as in Python
  const auto dots = std::count(parts.begin(), parts.end(), "...");
  if (dots > 1) refuse("'...' may be used once", slice);
  const auto named = parts.size() - dots;
  if (named > sizes.size())
    refuse("it names " + std::to_string(named) + " dimensions, the tensor has " + std::to_string(sizes.size()), slice);
  if (dots == 0) parts.push_back("...");
  std::vector<Range> ranges;
  for (const auto part : parts) {
    if (part != "...") {
      ranges.push_back(rangeOf(part, sizes[ranges.size()], ranges.size(), slice));
      continue;
    }
    for (auto whole = sizes.size() - named; whole > 0; --whole) ranges.push_back({0, sizes[ranges.size()], 1, false});
  }
  return ranges;
}

}  // namespace

TensorData sliced(const TensorData& tensor, std::string_view slice) {
  slice = trimmed(slice);
  const auto ranges = slice.empty() ? rangesOf("...", tensor.meta.sizes) : rangesOf(slice, tensor.meta.sizes);
  TensorData result;
  result.meta.dtype = tensor.meta.dtype;
  result.meta.device = tensor.meta.device;
  for (const auto& range : ranges)
    if (!range.index) result.meta.sizes.push_back(range.count);
  result.meta.strides = contiguousStrides(result.meta.sizes);
  const std::size_t item = itemSize(tensor.meta.dtype);
  result.bytes = result.meta.bytes();
  const auto bytes = std::make_shared<std::vector<std::byte>>(result.bytes);
  auto* to = bytes->data();
  std::vector<std::int64_t> at(ranges.size(), 0);  // counts up like an odometer, the last dimension fastest
  for (auto left = result.meta.elements(); left > 0; --left) {
    auto from = tensor.meta.offset;
    for (std::size_t d = 0; d < ranges.size(); ++d)
      from += (ranges[d].begin + at[d] * ranges[d].step) * tensor.meta.strides[d];
    std::memcpy(to, tensor.data + from * item, item);
    to += item;
    for (auto d = ranges.size(); d-- > 0;) {
      if (++at[d] < ranges[d].count) break;
      at[d] = 0;
    }
  }
  result.data = bytes->data();
  result.owner = bytes;
  return result;
}

std::pair<std::string, std::string> splitSlice(std::string_view text) {
  text = trimmed(text);
  const auto open = text.find('[');
  if (open == std::string_view::npos) return {std::string(text), ""};
  if (text.back() != ']') badUse("the bracket does not close", std::string(text));
  const auto slice = trimmed(text.substr(open + 1, text.size() - open - 2));
  return {std::string(trimmed(text.substr(0, open))), slice.empty() ? "..." : std::string(slice)};
}

}  // namespace retrograd
