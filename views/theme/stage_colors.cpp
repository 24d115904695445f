#include "views/theme/stage_colors.h"

#include <array>

namespace retrograd::views {
namespace {

// After Okabe and Ito, in an order in which light follows dark.
constexpr std::array<QRgb, 8> onLight{0x1f6fb5, 0xe8a33d, 0x0c7d5d, 0xd58fb8, 0xb4511a, 0x74bde8, 0x7a4fa3, 0xb7b14a};
constexpr std::array<QRgb, 8> onDark{0x4d94d6, 0xe0a548, 0x2fae88, 0xd894bd, 0xcf6a33, 0x7cc4ec, 0x9c77c7, 0xbdb756};

std::size_t place(int stage) { return static_cast<std::size_t>(stage < 0 ? 0 : stage) % onLight.size(); }

}  // namespace

QColor stageColor(int stage, bool dark) { return QColor((dark ? onDark : onLight)[place(stage)]); }

QColor stageFill(int stage, bool dark) {
  const auto color = stageColor(stage, dark), ground = dark ? QColor(0x1b1d21) : QColor(0xffffff);
  const double share = dark ? 0.30 : 0.24;
  const auto mix = [&](int a, int b) { return static_cast<int>(a * share + b * (1 - share)); };
  return {mix(color.red(), ground.red()), mix(color.green(), ground.green()), mix(color.blue(), ground.blue())};
}

}  // namespace retrograd::views
