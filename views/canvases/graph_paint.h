#pragma once
#include <QColor>
#include <QFontMetricsF>
#include <QImage>
#include <QRectF>
#include <QString>

// What the units that paint the graph share.
namespace retrograd::views {

constexpr double corner = 6;        ///< radius of boxes, pixels
constexpr double lanesHeight = 28;  ///< of the strip that names the lanes, pixels

/// The colour with `share` of its opacity.
QColor faded(QColor color, double share);

/// Between two colours: `share` of the first.
QColor mixed(const QColor& a, const QColor& b, double share);

/// Of a run of equal modules that has no room for its title: `0…10 ×11`, else how many there are.
inline QString briefWithin(const QString& brief, const QFontMetricsF& metrics, double width) {
  return metrics.horizontalAdvance(brief) <= width ? brief : brief.section(QLatin1Char(' '), -1);
}

/// Fills a rectangle of an RGB image without a painter: the fastest there is for boxes of a few pixels.
void fillPixels(QImage& image, const QRectF& rect, QRgb color);

}  // namespace retrograd::views
