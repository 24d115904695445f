#pragma once
#include <QString>

#include "core/trace/document.h"

namespace retrograd::views {

class NoteBook;
struct OpenDocument;

/// What a value is called: the name that someone gave it, else that of the trace. Without `notes` always the latter.
QString nameOf(const Document& document, ValueId value, const NoteBook* notes);

/// Both names where there are two: "logits (t12)".
QString fullNameOf(const Document& document, ValueId value, const NoteBook* notes);

/// The call of an op in short, its values called as by nameOf().
QString callOf(const Document& document, BoundSymbolId op, const NoteBook* notes);

/// The same behind the op's number, by which all places know it: "#12  t5 = aten.t(t4)".
QString numberedCallOf(const Document& document, BoundSymbolId op, const NoteBook* notes);

/// Where an op is: its number and the trace that it is of: "#12 forward", "#3 computation".
QString placeText(const OpenDocument& document, BoundSymbolId op);

}  // namespace retrograd::views
