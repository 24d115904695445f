#include "views/theme/text_size.h"

#include <QApplication>
#include <QHash>
#include <QWidget>

namespace retrograd::views {
namespace {

const char* const systemSize = "retrograd-system-points";

}  // namespace

double textSize() { return QApplication::font().pointSizeF(); }

void setTextSize(double points) {
  const double before = textSize();
  if (before <= 0) return;  // a font in pixels: the system's business
  if (!qApp->property(systemSize).isValid()) qApp->setProperty(systemSize, before);
  if (points <= 0) points = qApp->property(systemSize).toDouble();
  if (points == before) return;
  QHash<QWidget*, double> own;
  for (auto* widget : QApplication::allWidgets())
    if (widget->testAttribute(Qt::WA_SetFont) && widget->font().pointSizeF() > 0)
      own[widget] = widget->font().pointSizeF();
  auto font = QApplication::font();
  font.setPointSizeF(points);
  QApplication::setFont(font);
  for (auto widget = own.begin(); widget != own.end(); ++widget) {
    if (widget.key()->font().pointSizeF() != widget.value()) continue;  // it has followed by itself
    auto scaled = widget.key()->font();
    scaled.setPointSizeF(widget.value() * points / before);
    widget.key()->setFont(scaled);
  }
}

}  // namespace retrograd::views
