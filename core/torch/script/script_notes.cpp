// Commands that note something at an op or a value; kept next to the model, where the window finds it.
#include <fmt/format.h>

#include "core/notes/note_file.h"
#include "core/notes/note_words.h"
#include "core/torch/script/script_state.h"

namespace retrograd {
namespace {

NoteFile noteFile(const ScriptState& s) {
  return NoteFile(s.analysis->sessionPath.empty() ? s.analysis->file.path : s.analysis->sessionPath);
}

CommandAnswer told(const ScriptState& s, const Notes& notes) {
  return {notes.all().empty() ? "no notes" : describe(*s.analysis, notes), notesJson(*s.analysis, notes)};
}

CommandAnswer list(ScriptState& s, const Words&, const Progress&) { return told(s, noteFile(s).read(*s.analysis)); }

/// Changes the note at the place that the first word names, with what is behind it.
template <class Find, class Change>
CommandAnswer noted(ScriptState& s, const Words& words, Find find, Change change) {
  const auto file = noteFile(s);
  const auto place = parseNotePlace(*s.analysis, words.at(0, "an op: #12, or a value it makes"));
  auto note = find(*s.analysis, file.read(*s.analysis), place);
  const auto behind = words.rest.find_first_of(" \t");
  const auto begin = behind == std::string::npos ? behind : words.rest.find_first_not_of(" \t", behind);
  change(note, begin == std::string::npos ? std::string() : words.rest.substr(begin));
  const auto kept = file.change(*s.analysis, {note});
  auto answer = told(s, kept.notes);
  answer.json["file"] = kept.path;
  if (!kept.problem.empty())
    answer.text = fmt::format("{}; the notes are kept in {}\n{}", kept.problem, kept.path, answer.text);
  return answer;
}

CommandAnswer comment(ScriptState& s, const Words& words, const Progress&) {
  return noted(s, words, noteAt, [](Note& note, const std::string& text) { note.comment = text; });
}

CommandAnswer rename(ScriptState& s, const Words& words, const Progress&) {
  return noted(s, words, valueNoteAt, [](Note& note, const std::string& text) { note.name = text; });
}

CommandAnswer bookmark(ScriptState& s, const Words& words, const Progress&) {
  return noted(s, words, noteAt, [](Note& note, const std::string&) { note.bookmark = !note.bookmark; });
}

}  // namespace

std::vector<ScriptCommand> noteCommands() {
  return {{"notes", "list bookmarks, comments and names of your own", list},
          {"comment OP [TEXT]",
           "write a comment at an op (#12, or a value that it makes); without a text, remove it",
           comment,
           {";"}},
          {"name VALUE [NAME]", "give a value a name of your own; without one, remove it", rename},
          {"bookmark OP", "set or remove a bookmark at an op", bookmark}};
}

}  // namespace retrograd
