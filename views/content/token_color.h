#pragma once
#include "views/text/line_text.h"
#include "views/theme/theme.h"

namespace retrograd::views {

/// The colour of a stretch of a line, in listings and wherever else lines are shown.
QColor colorOf(const Colors& colors, TokenKind kind);

}  // namespace retrograd::views
