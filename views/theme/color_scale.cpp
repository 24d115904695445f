#include "views/theme/color_scale.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace retrograd::views {
namespace {

struct Stop {
  double red, green, blue;
};

/// Evenly spaced along the scale; lightness grows from one to the next, or towards the middle.
constexpr std::array<Stop, 5> ascending{{{25, 20, 60}, {60, 55, 140}, {35, 125, 140}, {95, 190, 95}, {250, 235, 90}}};
constexpr std::array<Stop, 5> diverging{
    {{15, 45, 120}, {105, 150, 210}, {247, 247, 247}, {225, 130, 105}, {125, 20, 30}}};

QRgb between(std::span<const Stop> stops, double at) {
  const double place = std::clamp(at, 0.0, 1.0) * static_cast<double>(stops.size() - 1);
  const auto i = std::min(static_cast<std::size_t>(place), stops.size() - 2);
  const double part = place - static_cast<double>(i);
  const auto mix = [&](double a, double b) { return static_cast<int>(std::lround(a + (b - a) * part)); };
  return qRgb(mix(stops[i].red, stops[i + 1].red), mix(stops[i].green, stops[i + 1].green),
              mix(stops[i].blue, stops[i + 1].blue));
}

}  // namespace

ColorScale::ColorScale(double least, double greatest) : least_(least), greatest_(greatest) {}

QRgb ColorScale::color(double number) const {
  if (std::isnan(number)) return qRgb(0, 0, 0);
  if (hasZero()) {
    const double most = std::max(-least_, greatest_);
    return between(diverging, 0.5 + 0.5 * number / most);
  }
  if (greatest_ <= least_) return between(ascending, 0.5);
  return between(ascending, (number - least_) / (greatest_ - least_));
}

}  // namespace retrograd::views
