#include "views/text/line_pattern.h"

#include "views/text/format.h"

namespace retrograd::views {

std::optional<LinePattern> LinePattern::expression(const QString& text, QString& problem) {
  LinePattern pattern(text);
  const auto bytes = text.toUtf8();
  TextPattern::Problem wrong;
  pattern.expression_ = TextPattern::regularExpression(
      std::string_view(bytes.constData(), static_cast<std::size_t>(bytes.size())), wrong);
  if (pattern.expression_) return pattern;
  const auto column = QString::fromUtf8(bytes.left(static_cast<qsizetype>(wrong.position))).size() + 1;
  problem = tr("Column %1: %2").arg(column).arg(toQt(wrong.message));
  return std::nullopt;
}

bool LinePattern::matches(const QString& line) const {
  if (!expression_) return line.contains(text_, Qt::CaseInsensitive);
  const auto bytes = line.toUtf8();
  return expression_->matches(std::string_view(bytes.constData(), static_cast<std::size_t>(bytes.size())));
}

}  // namespace retrograd::views
