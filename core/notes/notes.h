#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/derivation/op_key.h"

namespace retrograd {

/// What a person wrote at an op or a value: a bookmark, a comment, a name of one's own. Kept by key, so that it
/// survives a new derivation.
struct Note {
  OpKey op;  ///< where it is, unless `value` says
  std::optional<ValueKey> value;
  bool bookmark = false;
  std::string name;     ///< shown instead of the op's or value's; empty: none
  std::string comment;  ///< may have several lines

  bool isEmpty() const { return !bookmark && name.empty() && comment.empty(); }
  bool operator==(const Note&) const = default;
};

/// The notes of a document, at most one at an op or value, in the order in which they were made.
class Notes {
 public:
  const std::vector<Note>& all() const { return notes_; }
  /// The note at an op or value; null where there is none.
  const Note* at(const OpKey& op) const;
  const Note* at(const ValueKey& value) const;
  /// Puts the note in the place of the one that is there; an empty one takes it away.
  void set(Note note);
  bool operator==(const Notes&) const = default;

 private:
  std::vector<Note> notes_;
};

/// Notes as the ops and values of an analysis; those whose place is gone are in `lost`, by position in Notes::all().
struct PlacedNotes {
  std::map<BoundSymbolId, std::size_t> ops;
  std::map<ValueId, std::size_t> values;
  std::vector<std::size_t> lost;
};
PlacedNotes placeNotes(const Analysis& analysis, const Notes& notes);

/// The JSON of docs/notes.schema.json, for a file next to the model and for the marks of a session file (`notesMark`).
std::string notesText(const Notes& notes);
/// Throws Error(badInput) naming `place` and what is wrong.
Notes parseNotes(std::string_view json, const std::string& place);

inline constexpr const char* notesMark = "notes";
/// The marks of a session file that is written now: those that the analysis brought along, with these notes instead of
/// its own.
std::map<std::string, std::string> marksWith(const Analysis& analysis, const Notes& notes);
/// "model.pt2.notes.json"
std::string notesPath(const std::string& modelPath);
/// Of the file next to the model; none where there is no such file. Throws Error(badInput, io).
Notes readNotes(const std::string& path);
/// Writes the file whole or not at all; without notes it is removed. Throws Error(io).
void writeNotes(const std::string& path, const Notes& notes);
/// The same, but for notes that are none: the file is there then, and empty of notes.
void writeNotesFile(const std::string& path, const Notes& notes);

/// A session's own notes, else those next to its model. Throws as readNotes. NoteFile reads what was changed since.
Notes notesOf(const Analysis& analysis);

}  // namespace retrograd
