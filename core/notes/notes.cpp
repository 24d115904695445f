#include "core/notes/notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/formats/files/atomic_file.h"
#include "core/formats/files/mapped_file.h"
#include "core/formats/json/json_tree.h"
#include "core/trace/print/json.h"

namespace fs = std::filesystem;

namespace retrograd {
namespace {

constexpr std::int64_t notesFormat = 1;
constexpr std::array roles{Role::none,      Role::forward, Role::gradient, Role::accumulation,
                           Role::recompute, Role::zero,    Role::cotangent};

bool sharesPlace(const Note& a, const Note& b) { return a.value == b.value && (a.value || a.op == b.op); }

nlohmann::ordered_json placeJson(const OpKey& key) {
  nlohmann::ordered_json json{{"operation", key.operation}, {"occurrence", key.operationOrdinal}};
  if (key.role == Role::none) return json;
  json["role"] = name(key.role);
  if (key.operand >= 0) json["operand"] = key.operand;
  if (key.output >= 0) json["output"] = key.output;
  json["ordinal"] = key.ordinal;
  return json;
}

/// A member that is an int, with a default for where it is missing.
int integer(const Json& json, std::string_view key, int otherwise) {
  const auto* member = json.find(key);
  if (!member) return otherwise;
  const auto number = member->integer();
  if (number < -1 || number > std::numeric_limits<int>::max()) badInput(fmt::format("'{}' is out of range", key));
  return static_cast<int>(number);
}

std::string text(const Json& json, std::string_view key) {
  const auto* member = json.find(key);
  return member ? std::string(member->text()) : std::string();
}

OpKey opKey(const Json& json) {
  OpKey key;
  key.operation = text(json, "operation");
  key.operationOrdinal = integer(json, "occurrence", 0);
  key.operand = integer(json, "operand", -1);
  key.output = integer(json, "output", -1);
  key.ordinal = integer(json, "ordinal", 0);
  if (const auto* role = json.find("role")) {
    const auto found = std::find_if(roles.begin(), roles.end(), [&](Role r) { return name(r) == role->text(); });
    if (found == roles.end()) badInput(fmt::format("no role '{}'", role->text()));
    key.role = *found;
  }
  return key;
}

Note note(const Json& json) {
  Note result;
  const auto& place = json.at("at");
  if (const auto* input = place.find("input")) {
    result.value.emplace();
    result.value->input = input->text();
  } else if (place.find("value")) {
    result.value.emplace();
    result.value->maker = opKey(place);
    const int output = integer(place, "value", 0);
    if (output < 0) badInput("'value' is the number of an output");
    result.value->output = output;
  } else {
    result.op = opKey(place);
  }
  if (const auto* bookmark = json.find("bookmark")) result.bookmark = bookmark->boolean();
  result.name = text(json, "name");
  result.comment = text(json, "comment");
  return result;
}

}  // namespace

const Note* Notes::at(const OpKey& op) const {
  const auto it = std::find_if(notes_.begin(), notes_.end(), [&](const Note& n) { return !n.value && n.op == op; });
  return it == notes_.end() ? nullptr : &*it;
}

const Note* Notes::at(const ValueKey& value) const {
  const auto it = std::find_if(notes_.begin(), notes_.end(), [&](const Note& n) { return n.value == value; });
  return it == notes_.end() ? nullptr : &*it;
}

void Notes::set(Note note) {
  if (note.value) note.op = {};
  const auto it = std::find_if(notes_.begin(), notes_.end(), [&](const Note& n) { return sharesPlace(n, note); });
  if (note.isEmpty()) {
    if (it != notes_.end()) notes_.erase(it);
  } else if (it != notes_.end()) {
    *it = std::move(note);
  } else {
    notes_.push_back(std::move(note));
  }
}

PlacedNotes placeNotes(const Analysis& analysis, const Notes& notes) {
  std::vector<OpKey> opKeys;
  std::vector<ValueKey> valueKeys;
  for (const auto& one : notes.all())
    if (one.value) valueKeys.push_back(*one.value);
    else opKeys.push_back(one.op);
  const auto ops = findKeys(analysis, opKeys);
  const auto values = findKeys(analysis, valueKeys);
  PlacedNotes placed;
  std::size_t op = 0, value = 0;
  for (std::size_t i = 0; i < notes.all().size(); ++i) {
    const bool isThere = notes.all()[i].value ? placed.values.try_emplace(values[value], i).second && values[value]
                                              : placed.ops.try_emplace(ops[op], i).second && ops[op];
    ++(notes.all()[i].value ? value : op);
    if (!isThere) placed.lost.push_back(i);
  }
  placed.ops.erase(BoundSymbolId());
  placed.values.erase(ValueId());
  return placed;
}

std::map<std::string, std::string> marksWith(const Analysis& analysis, const Notes& notes) {
  auto marks = analysis.marks;
  marks.erase(notesMark);
  if (!notes.all().empty()) marks[notesMark] = notesText(notes);
  return marks;
}

std::string notesText(const Notes& notes) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& one : notes.all()) {
    nlohmann::ordered_json place;
    if (!one.value) place = placeJson(one.op);
    else if (!one.value->input.empty()) place = {{"input", one.value->input}};
    else {
      place = placeJson(one.value->maker);
      place["value"] = one.value->output;
    }
    nlohmann::ordered_json json{{"at", std::move(place)}};
    if (one.bookmark) json["bookmark"] = true;
    if (!one.name.empty()) json["name"] = one.name;
    if (!one.comment.empty()) json["comment"] = one.comment;
    list.push_back(std::move(json));
  }
  return dumpJson({{"format", notesFormat}, {"notes", std::move(list)}}, 1) + "\n";
}

Notes parseNotes(std::string_view json, const std::string& place) {
  std::size_t number = 0;
  try {
    const JsonTree tree(json);
    if (const auto format = tree.root().at("format").integer(); format != notesFormat)
      badInput(fmt::format("notes of format {}, this program reads format {}", format, notesFormat));
    Notes notes;
    for (const auto& item : tree.root().at("notes").items()) {
      constexpr std::size_t most = 10'000;
      if (++number > most) badInput(fmt::format("more than {} notes", most));
      notes.set(note(item));
    }
    return notes;
  } catch (const Error& error) {
    throw number == 0 ? error.at(place) : error.at(fmt::format("{}: note {}", place, number));
  }
}

std::string notesPath(const std::string& modelPath) { return modelPath + ".notes.json"; }

Notes readNotes(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return {};
  return parseNotes(mapFile(path).text(), path);
}

void writeNotes(const std::string& path, const Notes& notes) {
  if (notes.all().empty()) {
    std::error_code error;
    fs::remove(path, error);
    if (error) throw Error(ErrorCode::io, "cannot remove: " + error.message(), path);
    return;
  }
  writeNotesFile(path, notes);
}

void writeNotesFile(const std::string& path, const Notes& notes) { writeWholeFile(path, notesText(notes)); }

Notes notesOf(const Analysis& analysis) {
  if (const auto own = analysis.marks.find(notesMark); own != analysis.marks.end())
    return parseNotes(own->second, analysis.sessionPath + ": notes");
  return analysis.file.path.empty() ? Notes() : readNotes(notesPath(analysis.file.path));
}

}  // namespace retrograd
