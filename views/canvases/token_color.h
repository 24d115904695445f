#pragma once
#include "views/models/line_text.h"
#include "views/theme.h"

namespace retrograd::views {

/// The colour of a stretch of a line, in listings and wherever else lines are shown.
QColor colorOf(const Colors& colors, TokenKind kind);

}  // namespace retrograd::views
