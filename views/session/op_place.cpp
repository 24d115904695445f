#include "views/session/op_place.h"

#include <QObject>

namespace retrograd::views {

QString placeText(const OpenDocument& document, BoundSymbolId op) {
  if (document.analysis->document->boundSymbol(op).origin.role == Role::none) return QObject::tr("#%1 computation").arg(op.index);
  const auto position = document.program.positionOf(op);
  if (!position) return QObject::tr("#%1 joint").arg(op.index);
  return *position < document.program.forwardSize() ? QObject::tr("#%1 forward").arg(op.index) : QObject::tr("#%1 backward").arg(op.index);
}

}  // namespace retrograd::views
