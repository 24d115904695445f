#pragma once
#include "views/session/note_book.h"
#include "views/text/line_text.h"

namespace retrograd::views {

/// A line of a listing, or the header of an operation, with what a person noted there: own names instead of those of
/// values, the comment behind the call.
LineText withNotes(LineText line, BoundSymbolId op, const Document& document, const NoteBook& notes);

/// A comment in one line.
QString oneLine(const std::string& comment);

}  // namespace retrograd::views
