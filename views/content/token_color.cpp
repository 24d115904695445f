#include "views/content/token_color.h"

namespace retrograd::views {

QColor colorOf(const Colors& colors, TokenKind kind) {
  switch (kind) {
    case TokenKind::op: return colors.op;
    case TokenKind::value: return colors.value;
    case TokenKind::literal: return colors.literal;
    case TokenKind::comment: return colors.comment;
    case TokenKind::header: return colors.header;
    case TokenKind::ownName:
    case TokenKind::note: return colors.ownWords;
    case TokenKind::plain: break;
  }
  return colors.text;
}

}  // namespace retrograd::views
