#pragma once
#include <QStringList>
#include <vector>

#include "views/text/line_text.h"

namespace retrograd::views {

/// A part of a line of Python that has a colour of its own.
struct PythonSpan {
  int begin = 0, length = 0;
  TokenKind kind =
      TokenKind::plain;  ///< op: a keyword; literal: a number or string; comment; header: a name that is defined
};

/// The coloured parts of each line, from left to right, by the words and quotes that can be seen: a file need not be
/// whole, or even Python. Strings in triple quotes go over lines. Linear.
std::vector<std::vector<PythonSpan>> pythonSpans(const QStringList& lines);

}  // namespace retrograd::views
