#include "views/theme/overlay_colors.h"

#include <algorithm>
#include <array>

#include "views/theme/stage_colors.h"

namespace retrograd::views {

QColor OverlayColors::ramp(int step) const {
  constexpr std::array<QRgb, steps> light{0xfff7ec, 0xfee8c8, 0xfdd49e, 0xfdbb84, 0xfc9d6a};
  constexpr std::array<QRgb, steps> deep{0x2a2622, 0x452f22, 0x623823, 0x804224, 0xa04c24};
  return QColor((dark_ ? deep : light)[std::clamp(step, 0, steps - 1)]);
}

QColor OverlayColors::dtype(DType dtype) const {
  if (isComplex(dtype)) return dark_ ? 0x55304a : 0xfbe3f3;
  switch (dtype) {
    case DType::f32: return dark_ ? 0x1f3047 : 0xeaf2fc;
    case DType::f64: return dark_ ? 0x12443c : 0xd8f3ea;
    case DType::f16:
    case DType::bf16: return dark_ ? 0x3f2a5c : 0xeadcf9;
    case DType::b8: return dark_ ? 0x3a3d42 : 0xe1e4e8;
    default: return isFloating(dtype) ? (dark_ ? 0x5a3a14 : 0xfde6c8) : (dark_ ? 0x3f4418 : 0xf3f5cf);
  }
}

QColor OverlayColors::stage(int number) const { return stageFill(number, dark_); }

}  // namespace retrograd::views
