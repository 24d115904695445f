#pragma once
#include <QString>
#include <optional>

#include "core/base/text_pattern.h"

namespace retrograd::views {

/// What to find in lines: a text, without regard to case, or a regular expression, in which case matters. Matching
/// takes time in proportion to the line, whatever the expression.
class LinePattern {
 public:
  explicit LinePattern(const QString& text = {}) : text_(text) {}
  /// nullopt, and the fault, for a text that is not a regular expression.
  static std::optional<LinePattern> expression(const QString& text, QString& problem);

  bool isEmpty() const { return text_.isEmpty(); }
  /// Equal for patterns that match the same lines; empty for an empty one.
  QString key() const {
    return text_.isEmpty() ? QString() : (expression_ ? QStringLiteral("/") : QStringLiteral("=")) + text_;
  }
  bool matches(const QString& line) const;

 private:
  QString text_;
  std::optional<TextPattern> expression_;
};

}  // namespace retrograd::views
