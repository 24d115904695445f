// The whole of a comparison as text and as JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/enum_array.h"
#include "core/trace/diff/diff_text.h"
#include "core/trace/python_text.h"

namespace retrograd {
namespace {

using Kind = DiffRow::Kind;
using Part = DiffRow::Part;

std::string_view nameOf(Part part) {
  constexpr EnumArray<Part, std::string_view, 3> names{"input", "op", "result"};
  return names[part];
}

std::string_view nameOf(Kind kind) {
  constexpr EnumArray<Kind, std::string_view, 6> names{"same",   "changed",    "only_a",
                                                       "only_b", "moved_away", "moved_here"};
  return names[kind];
}

std::string header(const TraceDiff& diff, Side side, const std::string& label) {
  const auto& trace = *diff.side(side).trace;
  return fmt::format("{}\t{}, {} ops", label, name(trace.kind), diff.lines(side).ops.size());
}

std::string indented(const TraceDiff& diff, const DiffRow& row, Side side, bool comment) {
  const auto line = side == Side::left ? row.left : row.right;
  const auto text = diffLine(diff, row, side, comment);
  if (row.part != Part::op) return fmt::format("{}{}", row.part == Part::input ? "input " : "", text);
  return fmt::format("{:{}}{}", "", 2 * diff.lines(side).depth[line], text);
}

/// "-12,5": first line and count of a side's ops in a hunk; before the first line where there are none.
std::string range(const TraceDiff& diff, const std::pair<std::size_t, std::size_t>& hunk, Side side) {
  std::int32_t first = -1;
  std::size_t count = 0;
  for (auto i = hunk.first; i < hunk.second; ++i) {
    const auto& row = diff.rows[i];
    if (row.part != Part::op || !(side == Side::left ? row.showsLeft() : row.showsRight())) continue;
    if (first < 0) first = side == Side::left ? row.left : row.right;
    ++count;
  }
  if (first >= 0) return fmt::format("{},{}", first + 1, count);
  for (auto i = hunk.first; i-- > 0;) {
    const auto& row = diff.rows[i];
    if (row.part == Part::op && (side == Side::left ? row.showsLeft() : row.showsRight()))
      return fmt::format("{},0", (side == Side::left ? row.left : row.right) + 1);
  }
  return "0,0";
}

/// The module that a hunk begins in.
std::string moduleOf(const TraceDiff& diff, const std::pair<std::size_t, std::size_t>& hunk) {
  for (auto i = hunk.first; i < hunk.second; ++i)
    for (auto side : bothSides)
      if (const auto op = diff.op(diff.rows[i], side)) {
        const auto& document = *diff.side(side).document;
        const auto module = document.text(document.boundSymbol(op).module);
        return module.empty() ? std::string() : fmt::format(" {}", oneLine(module));
      }
  return {};
}

/// The first `width` characters, padded; what is cut off shows as "..".
std::string column(const std::string& text, std::size_t width) {
  std::size_t bytes = 0, characters = 0, before = 0;
  while (bytes < text.size()) {
    if (characters == width) return text.substr(0, before) + "..";
    if (characters + 2 == width) before = bytes;
    bytes += std::max<std::size_t>(1, utf8Length(std::string_view(text).substr(bytes)));
    ++characters;
  }
  return text + std::string(width - characters, ' ');
}

const char* signOf(Kind kind) {
  constexpr EnumArray<Kind, const char*, 6> signs{"  ", "| ", "< ", " >", "<~", "~>"};
  return signs[kind];
}

}  // namespace

std::string unifiedText(const TraceDiff& diff, const DiffTextOptions& options) {
  if (diff.equal()) return {};
  std::string text =
      fmt::format("--- {}\n+++ {}\n", header(diff, Side::left, options.left), header(diff, Side::right, options.right));
  for (const auto& hunk : hunksOf(diff, options.context)) {
    text += fmt::format("@@ -{} +{} @@{}\n", range(diff, hunk, Side::left), range(diff, hunk, Side::right),
                        moduleOf(diff, hunk));
    for (auto i = hunk.first; i < hunk.second; ++i) {
      const auto& row = diff.rows[i];
      if (row.kind == Kind::same) {
        text += fmt::format(" {}\n", indented(diff, row, Side::left, true));
        continue;
      }
      if (row.showsLeft()) text += fmt::format("-{}\n", indented(diff, row, Side::left, true));
      if (row.showsRight()) text += fmt::format("+{}\n", indented(diff, row, Side::right, true));
      if (const auto changes = describeChanges(diff, row); !changes.empty())
        text += fmt::format("~  {}\n", fmt::join(changes, "; "));
    }
  }
  return text;
}

std::string sideBySideText(const TraceDiff& diff, const DiffTextOptions& options) {
  if (diff.equal()) return {};
  const auto width = std::max<std::size_t>(20, (std::max<std::size_t>(options.width, 46) - 4) / 2);
  std::string text = fmt::format("{}    {}\n", column(header(diff, Side::left, options.left), width),
                                 header(diff, Side::right, options.right));
  for (const auto& hunk : hunksOf(diff, options.context)) {
    text += fmt::format("@@ -{} +{} @@{}\n", range(diff, hunk, Side::left), range(diff, hunk, Side::right),
                        moduleOf(diff, hunk));
    for (auto i = hunk.first; i < hunk.second; ++i) {
      const auto& row = diff.rows[i];
      const auto left = row.showsLeft() ? indented(diff, row, Side::left, false) : std::string();
      const auto right = row.showsRight() ? indented(diff, row, Side::right, false) : std::string();
      auto line = fmt::format("{} {} {}", column(left, width), signOf(row.kind), column(right, width));
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
      if (const auto changes = describeChanges(diff, row); !changes.empty())
        text += fmt::format("{}~  {}\n", std::string(width + 1, ' '), fmt::join(changes, "; "));
    }
  }
  return text;
}

nlohmann::ordered_json diffJson(const TraceDiff& diff, const DiffTextOptions& options) {
  using Json = nlohmann::ordered_json;
  const auto sideJson = [&](Side side, const std::string& label) {
    return Json{{"name", label}, {"trace", name(diff.side(side).trace->kind)}, {"ops", diff.lines(side).ops.size()}};
  };
  const auto& c = diff.counts;
  Json json{
      {"a", sideJson(Side::left, options.left)},
      {"b", sideJson(Side::right, options.right)},
      {"equal", diff.equal()},
      {"counts",
       {{"same", c.same}, {"changed", c.changed}, {"only_a", c.onlyLeft}, {"only_b", c.onlyRight}, {"moved", c.moved}}},
      {"rows", Json::array()}};
  for (const auto& row : diff.rows) {
    if (row.kind == Kind::same) continue;
    Json entry{{"part", nameOf(row.part)},
               {"kind", nameOf(row.kind)},
               {"a", nullptr},
               {"b", nullptr},
               {"changes", Json::array()},
               {"details", describeChanges(diff, row)}};
    for (auto side : bothSides) {
      const auto place = side == Side::left ? row.left : row.right;
      if (place < 0) continue;
      Json one{{"line", place + 1}, {"text", diffLine(diff, row, side)}};
      if (const auto op = diff.op(row, side)) {
        one["id"] = op.index;
        one["source"] = codeLine(*diff.side(side).document, op);
      }
      entry[side == Side::left ? "a" : "b"] = std::move(one);
    }
    for (auto name : changeNames(row.changes)) entry["changes"].push_back(name);
    json["rows"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace retrograd
