#include "views/theme/graph_style.h"

#include <QObject>

namespace retrograd::views {

GraphColors graphColors(bool dark, bool highContrast) {
  GraphColors c;
  if (dark) {
    c.canvas = 0x191b1f;
    c.text = 0xe2e6eb;
    c.faint = 0x98a1ac;
    c.frame = QColor(255, 255, 255, 9);
    c.frameLine = 0x3d444d;
    c.frameText = 0xb9c1cb;
    c.shadow = QColor(0, 0, 0, 90);
    c.forward = {0x1f3047, 0x3d6697, 0x5a9cf0};
    c.backward = {0x3f2f1a, 0x8a6527, 0xf0a040};
    c.accumulation = {0x35263f, 0x7d5896, 0xc58ae6};
    c.recompute = {0x173a34, 0x2f7c6c, 0x35c598};
    c.edge = {0x8091a7, 0x4f9fe0, 0xd08a35, 0xb47ed6, 0x6a727d};
    c.lit = 0xf3d250;
    c.selected = 0x7ab0ff;
    c.badge = QColor(255, 255, 255, 20);
    c.badgeText = 0xb4bdc8;
  } else {
    c.canvas = 0xfafbfc;
    c.text = 0x1f2328;
    c.faint = 0x66707b;
    c.frame = QColor(31, 60, 100, 9);
    c.frameLine = 0xc9d1da;
    c.frameText = 0x4a535e;
    c.shadow = QColor(30, 45, 70, 26);
    c.forward = {0xeaf2fc, 0x9fc0e6, 0x1f6fc4};
    c.backward = {0xfdf3e3, 0xe3bd84, 0xc47700};
    c.accumulation = {0xf6eefb, 0xc9a9de, 0x8a45b5};
    c.recompute = {0xe4f6f0, 0x8fcdb9, 0x00855f};
    c.edge = {0x8795a6, 0x2a7ab8, 0xcf8a1f, 0x8a45b5, 0x9aa3ad};
    c.lit = 0xd0342c;
    c.selected = 0x1f5fbf;
    c.badge = QColor(31, 60, 100, 18);
    c.badgeText = 0x47515c;
  }
  if (!highContrast) return c;
  const QColor paper = dark ? 0x000000 : 0xffffff, ink = dark ? 0xffffff : 0x000000;
  c.canvas = paper;
  c.text = c.faint = c.frameText = c.frameLine = c.badgeText = ink;
  for (auto* fill : {&c.forward, &c.backward, &c.accumulation, &c.recompute}) {
    fill->fill = paper;
    fill->line = fill->accent = dark ? fill->accent.lighter(135) : fill->accent.darker(155);
  }
  for (auto& edge : c.edge) edge = dark ? edge.lighter(150) : edge.darker(170);
  c.lit = dark ? 0xffe14d : 0xa30d00;
  c.selected = dark ? 0x1aebff : 0x00328f;
  return c;
}

const GraphColors::Fill& fillOf(const GraphColors& colors, Role role, layout::Lane lane) {
  if (role == Role::accumulation) return colors.accumulation;
  if (role == Role::recompute) return colors.recompute;
  return lane == layout::Lane::backward ? colors.backward : colors.forward;
}

QPen edgePen(const GraphColors& colors, layout::EdgeKind kind, qreal width) {
  QPen pen(colors.edge[static_cast<std::size_t>(kind)], width);
  pen.setCapStyle(Qt::FlatCap);
  pen.setCosmetic(true);
  switch (kind) {
    case layout::EdgeKind::saved: pen.setDashPattern({5, 3}); break;
    case layout::EdgeKind::accumulation: pen.setDashPattern({9, 2, 2, 2}); break;
    case layout::EdgeKind::origin: pen.setDashPattern({1, 3}); break;
    case layout::EdgeKind::data:
    case layout::EdgeKind::gradient: break;
  }
  return pen;
}

QString titleText(layout::EdgeKind kind) {
  switch (kind) {
    case layout::EdgeKind::data: return QObject::tr("Data");
    case layout::EdgeKind::saved: return QObject::tr("Saved");
    case layout::EdgeKind::gradient: return QObject::tr("Gradients");
    case layout::EdgeKind::accumulation: return QObject::tr("Gradient Sums");
    case layout::EdgeKind::origin: return QObject::tr("Origins");
  }
  return {};
}

}  // namespace retrograd::views
