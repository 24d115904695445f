#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "core/notes/notes.h"

namespace retrograd {

/// The op that makes a value: that of the joint, where it runs, else that of the computation. Invalid for an input.
BoundSymbolId makerOf(const Analysis& analysis, ValueId value);

/// What a note is at: an op, or a value that no op makes.
struct NotePlace {
  BoundSymbolId op;
  ValueId value;  ///< that the words named, also where an op makes it
};
/// "#12" is an op, another word a value's name: the op that makes it is meant. Throws Error(badUse) where there is no
/// such thing.
NotePlace parseNotePlace(const Analysis& analysis, const std::string& words);

/// The notes of an op, of an input, or empty ones with its key: to be changed and set.
Note noteAt(const Analysis& analysis, const Notes& notes, const NotePlace& place);
/// The same of a value, for names: of the one that was named, or the first that the op makes. Throws Error(badUse)
/// where it makes none.
Note valueNoteAt(const Analysis& analysis, const Notes& notes, const NotePlace& place);

/// One paragraph a note, those whose place is gone at the end; empty without notes.
std::string describe(const Analysis& analysis, const Notes& notes);
nlohmann::ordered_json notesJson(const Analysis& analysis, const Notes& notes);

}  // namespace retrograd
