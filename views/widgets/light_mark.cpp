#include "views/widgets/light_mark.h"

namespace retrograd::views {

QColor markColor(Light light, const Colors& colors) {
  switch (light) {
    case Light::fault: return colors.bad;
    case Light::suspicion: return colors.originMark;
    case Light::good: return colors.derivedMark;
    case Light::unknown: break;
  }
  return colors.gutterText;
}

QColor groundColor(Light light, const Colors& colors) {
  switch (light) {
    case Light::fault: return colors.error;
    case Light::suspicion: return colors.warning;
    case Light::good: return colors.derived;
    case Light::unknown: break;
  }
  return colors.gutter;
}

void paintLight(QPainter& painter, const QRectF& area, Light light, const Colors& colors) {
  const auto mark = markColor(light, colors);
  const QPointF middle = area.center();
  const double r = area.width() / 2, thick = area.width() / 7;
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.setPen(Qt::NoPen);
  painter.setBrush(mark);
  const QPen line(groundColor(Light::unknown, colors), thick, Qt::SolidLine, Qt::RoundCap);
  switch (light) {
    case Light::fault:
      painter.drawEllipse(middle, r, r);
      painter.setPen(line);
      painter.drawLine(middle - QPointF(r / 2.4, r / 2.4), middle + QPointF(r / 2.4, r / 2.4));
      painter.drawLine(middle + QPointF(-r / 2.4, r / 2.4), middle + QPointF(r / 2.4, -r / 2.4));
      break;
    case Light::suspicion:
      painter.drawPolygon(QPolygonF{{QPointF(middle.x(), area.top()), QPointF(area.right(), area.bottom()),
                                     QPointF(area.left(), area.bottom())}});
      painter.setPen(line);
      painter.drawLine(middle - QPointF(0, r / 3), middle + QPointF(0, r / 4));
      painter.drawPoint(middle + QPointF(0, r / 1.5));
      break;
    case Light::good:
      painter.drawEllipse(middle, r, r);
      painter.setPen(line);
      painter.drawPolyline(QPolygonF{
          {middle + QPointF(-r / 2, 0), middle + QPointF(-r / 8, r / 2.5), middle + QPointF(r / 2, -r / 2.5)}});
      break;
    case Light::unknown:
      painter.setBrush(Qt::NoBrush);
      painter.setPen(QPen(mark, thick));
      painter.drawEllipse(middle, r - thick / 2, r - thick / 2);
      break;
  }
  painter.restore();
}

}  // namespace retrograd::views
