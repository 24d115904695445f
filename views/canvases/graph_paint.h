#pragma once
#include <QColor>
#include <QImage>
#include <QRectF>

// What the units that paint the graph share.
namespace retrograd::views {

constexpr double corner = 6;        ///< radius of boxes, pixels
constexpr double lanesHeight = 28;  ///< of the strip that names the lanes, pixels

/// The colour with `share` of its opacity.
QColor faded(QColor color, double share);

/// Between two colours: `share` of the first.
QColor mixed(const QColor& a, const QColor& b, double share);

/// Fills a rectangle of an RGB image without a painter: the fastest there is for boxes of a few pixels.
void fillPixels(QImage& image, const QRectF& rect, QRgb color);

}  // namespace retrograd::views
