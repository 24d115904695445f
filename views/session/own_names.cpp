#include "views/session/own_names.h"

#include "views/session/note_book.h"
#include "views/session/open_document.h"
#include "views/text/format.h"
#include "views/text/line_text.h"

namespace retrograd::views {

QString nameOf(const Document& document, ValueId value, const NoteBook* notes) {
  const auto own = notes ? notes->nameOf(value) : QString();
  return own.isEmpty() ? QString::fromStdString(document.displayName(value)) : own;
}

QString fullNameOf(const Document& document, ValueId value, const NoteBook* notes) {
  const auto given = QString::fromStdString(document.displayName(value));
  const auto own = notes ? notes->nameOf(value) : QString();
  return own.isEmpty() ? given : QStringLiteral("%1 (%2)").arg(own, given);
}

QString callOf(const Document& document, BoundSymbolId op, const NoteBook* notes) {
  const auto line = lineOf(document, op, nullptr, true, false);
  if (!notes || notes->notes().empty()) return line.text;
  QString text;
  for (const auto& token : line.tokens)
    text += token.value ? nameOf(document, token.value, notes) : line.text.mid(token.begin, token.length);
  return text;
}

QString numberedCallOf(const Document& document, BoundSymbolId op, const NoteBook* notes) {
  return QStringLiteral("#%1  %2").arg(QString::number(op.index), callOf(document, op, notes));
}

QString placeText(const OpenDocument& document, BoundSymbolId op) {
  if (document.analysis->document->boundSymbol(op).origin.role == Role::none)
    return tr("#%1 computation").arg(op.index);
  const auto position = document.program.positionOf(op);
  if (!position) return tr("#%1 joint").arg(op.index);
  return *position < document.program.forwardSize() ? tr("#%1 forward").arg(op.index)
                                                    : tr("#%1 backward").arg(op.index);
}

}  // namespace retrograd::views
