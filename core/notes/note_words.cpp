#include "core/notes/note_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/near_names.h"
#include "core/base/op_name.h"
#include "core/questions/why.h"
#include "core/trace/print/printer.h"

namespace retrograd {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string keyText(const OpKey& key) {
  auto text = key.operation.empty() ? "an op without an operation" : key.operation;
  if (key.role != Role::none) text += fmt::format(", {}", name(key.role));
  if (key.operand >= 0) text += fmt::format(" of operand {}", key.operand);
  return text;
}

/// A note with the place it has in the analysis.
struct Line {
  const Note& note;
  BoundSymbolId op;
  ValueId value;
};

std::vector<Line> lines(const Analysis& analysis, const Notes& notes) {
  const auto placed = placeNotes(analysis, notes);
  std::vector<Line> all;
  for (const auto& [value, i] : placed.values)
    if (!makerOf(analysis, value)) all.push_back({notes.all()[i], {}, value});
  std::map<std::pair<BoundSymbolId, ValueId>, std::size_t> byOp;  // an op's own note before those of what it makes
  for (const auto& [op, i] : placed.ops) byOp[{op, {}}] = i;
  for (const auto& [value, i] : placed.values)
    if (const auto op = makerOf(analysis, value)) byOp[{op, value}] = i;
  for (const auto& [place, i] : byOp)
    all.push_back({notes.all()[i], place.second ? BoundSymbolId() : place.first, place.second});
  for (auto i : placed.lost) all.push_back({notes.all()[i], {}, {}});
  return all;
}

std::string placeText(const Analysis& analysis, const Line& line) {
  const auto& document = *analysis.document;
  if (line.op) return fmt::format("#{} {}", line.op.index, printCall(document, line.op));
  if (line.value) {
    const auto& value = document.value(line.value);
    const auto type = value.meta ? ": " + typeComment(document.meta(value.meta)) : std::string();
    const auto maker = makerOf(analysis, line.value);
    return document.displayName(line.value) + type + (maker ? fmt::format(", made by #{}", maker.index) : ", an input");
  }
  if (!line.note.value) return "gone: " + keyText(line.note.op);
  return "gone: " + (line.note.value->input.empty()
                         ? fmt::format("output {} of {}", line.note.value->output, keyText(line.note.value->maker))
                         : "input " + line.note.value->input);
}

}  // namespace

BoundSymbolId makerOf(const Analysis& analysis, ValueId value) {
  const auto& document = *analysis.document;
  const auto producer = document.value(value).producer;
  if (!producer) return producer;
  for (auto op : analysis.links.derived(producer)) {
    const auto outputs = document.outputs(op);
    if (std::find(outputs.begin(), outputs.end(), value) != outputs.end()) return op;
  }
  return producer;
}

NotePlace parseNotePlace(const Analysis& analysis, const std::string& words) {
  const auto& document = *analysis.document;
  if (words.starts_with('#')) {
    const auto number = opNumber(words);
    const auto op = number ? BoundSymbolId(*number) : BoundSymbolId();
    if (!document.contains(op)) badUse(fmt::format("there is no op {}", words));
    return {op, {}};
  }
  const auto value = findValue(analysis, words);
  if (!value)
    badUse(fmt::format("there is no value '{}'{} (an op is written #12: `retrograd trace --numbers` shows the ids)",
                       words, didYouMean(words, valueNames(analysis))));
  return {makerOf(analysis, *value), *value};
}

Note noteAt(const Analysis& analysis, const Notes& notes, const NotePlace& place) {
  Note note;
  if (place.op) {
    note.op = keyOf(analysis, place.op);
    if (const auto* known = notes.at(note.op)) return *known;
    return note;
  }
  return valueNoteAt(analysis, notes, place);
}

Note valueNoteAt(const Analysis& analysis, const Notes& notes, const NotePlace& place) {
  auto value = place.value;
  if (!value)
    for (auto output : analysis.document->outputs(place.op))
      if (!value) value = output;
  if (!value) badUse(fmt::format("op #{} makes no value that could have a name", place.op.index));
  Note note;
  note.value = keyOf(analysis, value);
  if (const auto* known = notes.at(*note.value)) return *known;
  return note;
}

std::string describe(const Analysis& analysis, const Notes& notes) {
  std::string text;
  for (const auto& line : lines(analysis, notes)) {
    if (!text.empty()) text += '\n';
    text += placeText(analysis, line);
    if (line.note.bookmark) text += "\n    bookmark";
    if (!line.note.name.empty()) text += "\n    name: " + line.note.name;
    if (line.note.comment.empty()) continue;
    text += "\n    ; ";
    for (const char c : line.note.comment) text += c == '\n' ? std::string("\n    ; ") : std::string(1, c);
  }
  return text;
}

nlohmann::ordered_json notesJson(const Analysis& analysis, const Notes& notes) {
  auto list = OrderedJson::array();
  for (const auto& line : lines(analysis, notes)) {
    OrderedJson json{{"place", placeText(analysis, line)},
                     {"op", line.op ? OrderedJson(line.op.index) : OrderedJson(nullptr)},
                     {"value", nullptr},
                     {"lost", !line.op && !line.value}};
    if (line.value) json["value"] = analysis.document->displayName(line.value);
    json["bookmark"] = line.note.bookmark;
    json["name"] = line.note.name;
    json["comment"] = line.note.comment;
    list.push_back(std::move(json));
  }
  return {{"notes", std::move(list)}};
}

}  // namespace retrograd
