#include "views/theme/graph_style.h"

#include "views/text/format.h"

namespace retrograd::views {

GraphColors graphColors(bool dark, bool highContrast) {
  using Fill = GraphColors::Fill;
  using Edges = decltype(GraphColors::edge);
  const auto pick = [dark](const auto& onLight, const auto& onDark) { return dark ? onDark : onLight; };
  GraphColors c;
  c.canvas = pick(0xfafbfc, 0x191b1f);
  c.text = pick(0x1f2328, 0xe2e6eb);
  c.faint = pick(0x66707b, 0x98a1ac);
  c.frame = pick(QColor(31, 60, 100, 9), QColor(255, 255, 255, 9));
  c.frameLine = pick(0xc9d1da, 0x3d444d);
  c.frameText = pick(0x4a535e, 0xb9c1cb);
  c.shadow = pick(QColor(30, 45, 70, 26), QColor(0, 0, 0, 90));
  c.forward = pick(Fill{0xeaf2fc, 0x9fc0e6, 0x1f6fc4}, Fill{0x1f3047, 0x3d6697, 0x5a9cf0});
  c.backward = pick(Fill{0xfdf3e3, 0xe3bd84, 0xc47700}, Fill{0x3f2f1a, 0x8a6527, 0xf0a040});
  c.accumulation = pick(Fill{0xf6eefb, 0xc9a9de, 0x8a45b5}, Fill{0x35263f, 0x7d5896, 0xc58ae6});
  c.recompute = pick(Fill{0xe4f6f0, 0x8fcdb9, 0x00855f}, Fill{0x173a34, 0x2f7c6c, 0x35c598});
  c.edge = pick(Edges{0x8795a6, 0x2a7ab8, 0xcf8a1f, 0x8a45b5, 0x9aa3ad},
                Edges{0x8091a7, 0x4f9fe0, 0xd08a35, 0xb47ed6, 0x6a727d});
  c.lit = pick(0xd0342c, 0xf3d250);
  c.selected = pick(0x1f5fbf, 0x7ab0ff);
  c.badge = pick(QColor(31, 60, 100, 18), QColor(255, 255, 255, 20));
  c.badgeText = pick(0x47515c, 0xb4bdc8);
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
  QPen pen(colors.edge[kind], width);
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
    case layout::EdgeKind::data: return tr("Data");
    case layout::EdgeKind::saved: return tr("Saved");
    case layout::EdgeKind::gradient: return tr("Gradients");
    case layout::EdgeKind::accumulation: return tr("Gradient Sums");
    case layout::EdgeKind::origin: return tr("Origins");
  }
  return {};
}

}  // namespace retrograd::views
