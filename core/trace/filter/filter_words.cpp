#include "core/trace/filter/filter_words.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace retrograd {
namespace {

/// In the order of Filter::Field, `any` left out.
constexpr std::array<std::string_view, 10> fields{"op",   "module", "dtype", "shape",      "bytes",
                                                  "role", "origin", "saved", "recomputed", "name"};
constexpr std::array<std::string_view, 8> roles{"computation",  "forward",   "backward", "gradient",
                                                "accumulation", "recompute", "zero",     "cotangent"};

std::string joined(std::span<const std::string_view> words) {
  std::string text;
  for (auto word : words) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

}  // namespace

std::optional<Filter::Field> filterField(std::string_view name) {
  const auto found = std::find(fields.begin(), fields.end(), name);
  return found == fields.end() ? std::nullopt : std::optional(static_cast<Filter::Field>(found - fields.begin() + 1));
}

std::span<const std::string_view> filterFields() { return fields; }
std::string filterFieldNames() { return joined(fields); }

std::span<const std::string_view> filterRoles() { return roles; }
bool isFilterRole(std::string_view name) { return std::find(roles.begin(), roles.end(), name) != roles.end(); }
std::string filterRoleNames() { return joined(roles); }

std::optional<std::vector<std::int64_t>> parseShapePattern(std::string_view text) {
  std::string compact;
  for (const char c : text)
    if (c != ' ') compact += c;
  if (compact.size() >= 2 && compact.front() == '[' && compact.back() == ']')
    compact = compact.substr(1, compact.size() - 2);
  else if (compact.empty()) return std::nullopt;
  std::vector<std::int64_t> pattern;
  std::string_view rest = compact;
  while (!rest.empty()) {
    const auto end = std::min(rest.find_first_of("x,"), rest.size());
    const auto part = rest.substr(0, end);
    std::int64_t size = 0;
    if (part == "*") size = -1;
    else if (part == "...") size = -2;
    else if (const auto [last, error] = std::from_chars(part.data(), part.data() + part.size(), size);
             error != std::errc() || last != part.data() + part.size() || size < 0)
      return std::nullopt;
    pattern.push_back(size);
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
    if (rest.empty()) return std::nullopt;
  }
  // One "..." is enough to match in one pass.
  return std::count(pattern.begin(), pattern.end(), -2) > 1 ? std::nullopt : std::optional(std::move(pattern));
}

bool matchesShape(std::span<const std::int64_t> pattern, std::span<const std::int64_t> sizes) {
  const auto same = [](std::int64_t wanted, std::int64_t size) { return wanted == -1 || wanted == size; };
  const auto rest = std::find(pattern.begin(), pattern.end(), -2);
  if (rest == pattern.end())
    return pattern.size() == sizes.size() && std::equal(pattern.begin(), pattern.end(), sizes.begin(), same);
  const std::size_t before = rest - pattern.begin(), after = pattern.size() - before - 1;
  return sizes.size() >= before + after && std::equal(pattern.begin(), rest, sizes.begin(), same) &&
         std::equal(pattern.end() - after, pattern.end(), sizes.end() - after, same);
}

}  // namespace retrograd
