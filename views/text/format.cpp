#include "views/text/format.h"

#include <array>
#include <cmath>
#include <limits>

namespace retrograd::views {

QString toQt(std::string_view text) { return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())); }

QString bytesText(std::int64_t bytes) {
  static constexpr std::array<const char*, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return QStringLiteral("%1 B").arg(bytes);
  double amount = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < units.size(); ++unit) amount /= 1024;
  return QStringLiteral("%1 %2").arg(amount, 0, 'f', amount < 10 ? 1 : 0).arg(QLatin1String(units[unit]));
}

QString opsText(std::size_t ops) { return ops == 1 ? tr("1 op") : tr("%1 ops").arg(ops); }

QString secondsText(double seconds) {
  if (seconds >= 1) return QStringLiteral("%1 s").arg(seconds, 0, 'f', seconds >= 100 ? 0 : seconds >= 10 ? 1 : 2);
  if (seconds >= 1e-3)
    return QStringLiteral("%1 ms").arg(seconds * 1e3, 0, 'f', seconds >= 0.1 ? 0 : seconds >= 1e-2 ? 1 : 2);
  return QStringLiteral("%1 \u00b5s").arg(seconds * 1e6, 0, 'f', seconds >= 1e-5 ? 0 : 1);
}

QString numberText(double number) {
  if (std::isnan(number)) return QStringLiteral("nan");
  if (std::isinf(number)) return number > 0 ? QStringLiteral("inf") : QStringLiteral("-inf");
  return QString::number(number, 'g', 5);
}

QString briefNumber(double number) {
  const double size = std::abs(number);
  if (!std::isfinite(number)) return numberText(number);
  if (size >= 999.5 && size < 99999.5) return QString::number(number, 'f', 0);
  if (size == 0 || (size >= 0.01 && size < 999.5)) return QString::number(number, 'g', 3);
  return QString::number(number, 'e', 1)
      .replace(QLatin1String("e-0"), QLatin1String("e-"))
      .replace(QLatin1String("e+0"), QLatin1String("e"))
      .replace(QLatin1String("e+"), QLatin1String("e"));
}

std::optional<std::uint64_t> seedFromText(const QString& text) {
  bool isNumber = false;
  const auto seed = text.trimmed().toULongLong(&isNumber);
  return isNumber ? std::optional<std::uint64_t>(seed) : std::nullopt;
}

QString noSeedText(const QString& text) {
  return tr("'%1' is not a seed: give a whole number from 0 to %2")
      .arg(text.trimmed())
      .arg(std::numeric_limits<std::uint64_t>::max());
}

QString shapeText(const TensorMeta& meta) {
  QString text = QStringLiteral("[");
  for (std::size_t i = 0; i < meta.sizes.size(); ++i) {
    if (i) text += QStringLiteral(", ");
    if (i < meta.symbols.size() && !meta.symbols[i].empty()) text += toQt(meta.symbols[i]) + QLatin1Char('=');
    text += QString::number(meta.sizes[i]);
  }
  return text + QLatin1Char(']');
}

QString typeText(const TensorMeta& meta) { return toQt(shortName(meta.dtype)) + shapeText(meta); }

}  // namespace retrograd::views
