#include <fmt/format.h>

#include <memory>

#include "app/cli/parsing/command.h"
#include "app/cli/parsing/options.h"
#include "core/notes/note_file.h"
#include "core/notes/note_words.h"
#include "core/trace/print/json.h"

namespace retrograd::cli {
namespace {

struct NotesArguments {
  std::string file, place, format = "text";
  std::optional<std::string> comment, name;
  bool bookmark = false, noBookmark = false, remove = false;
  InputOptions input;

  bool changes() const { return comment || name || bookmark || noBookmark || remove; }
};

/// What is asked for at the place: its comment and bookmark are the op's, its name the value's.
std::vector<Note> changed(const Analysis& analysis, const Notes& notes, const NotesArguments& arguments) {
  const auto place = parseNotePlace(analysis, arguments.place);
  auto own = noteAt(analysis, notes, place);
  std::vector<Note> result;
  if (arguments.remove) {
    Note empty;
    empty.op = own.op;
    empty.value = own.value;
    result.push_back(empty);
    if (place.op && place.value) {
      Note ofValue;
      ofValue.value = keyOf(analysis, place.value);
      result.push_back(ofValue);
    }
    return result;
  }
  if (arguments.comment) own.comment = *arguments.comment;
  if (arguments.bookmark || arguments.noBookmark) own.bookmark = arguments.bookmark;
  if (own.value && arguments.name) own.name = *arguments.name;
  result.push_back(own);
  if (!own.value && arguments.name) {
    auto named = valueNoteAt(analysis, notes, place);
    named.name = *arguments.name;
    result.push_back(named);
  }
  return result;
}

int runNotes(const NotesArguments& arguments, const Progress& progress) {
  if (arguments.changes() == arguments.place.empty())
    badUse(arguments.place.empty() ? "name the place of the note with --at"
                                   : "--at needs one of --comment, --name, --bookmark, --no-bookmark and --remove");
  const auto analysis = open(arguments.file, arguments.input, progress);
  const NoteFile file(arguments.file);
  auto notes = file.read(*analysis);
  if (arguments.changes()) {
    const auto kept = file.change(*analysis, changed(*analysis, notes, arguments));
    notes = kept.notes;
    if (!kept.problem.empty()) fmt::print(stderr, "retrograd: {}; the notes are kept in {}\n", kept.problem, kept.path);
  }
  if (arguments.format == "json") fmt::print("{}\n", dumpJson(notesJson(*analysis, notes), 1));
  else fmt::print("{}\n", notes.all().empty() ? "no notes" : describe(*analysis, notes));
  return allWell;
}

Run setUpNotes(Parser parser) {
  auto arguments = std::make_shared<NotesArguments>();
  parser.add("file", arguments->file, "a model (.pt2, TorchScript, printed traces) or a .retrograd session").required();
  parser.add("--at", arguments->place, "the op or value of the note: #12, or the name of a value");
  parser.add("--comment", arguments->comment, "a comment for the op; empty: remove it");
  parser.add("--name", arguments->name, "a name of your own for the value; empty: remove it");
  const auto set = parser.flag("--bookmark", arguments->bookmark, "set a bookmark at the op");
  parser.flag("--no-bookmark", arguments->noBookmark, "remove the bookmark at the op").excludes(set);
  parser.flag("--remove", arguments->remove, "remove all notes at the place");
  addFormat(parser, arguments->format);
  arguments->input.addTo(parser);
  return [arguments](const Progress& progress) { return runNotes(*arguments, progress); };
}

const Registration registrationNotes("notes", "list bookmarks, comments and names of your own, or add some",
                                     setUpNotes);

}  // namespace
}  // namespace retrograd::cli
