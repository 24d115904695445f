#include "views/widgets/name_giver.h"

#include <QAbstractItemView>
#include <QApplication>
#include <QComboBox>
#include <QLineEdit>
#include <QPointer>
#include <QSizeGrip>
#include <QSplitter>
#include <QTabBar>
#include <QToolButton>

#include "views/text/format.h"

namespace retrograd::views {
namespace {

/// The nearest widget around this one that is a T.
template <class T>
const T* around(const QWidget* widget) {
  for (auto* above = widget->parentWidget(); above; above = above->parentWidget())
    if (const auto* found = qobject_cast<const T*>(above)) return found;
  return nullptr;
}

QString nameFor(const QWidget* widget) {
  if (qobject_cast<const QTabBar*>(widget)) return tr("Panels that share this place");
  if (qobject_cast<const QSplitterHandle*>(widget)) return tr("Divider");
  if (qobject_cast<const QSplitter*>(widget)) return tr("Views side by side");
  if (qobject_cast<const QSizeGrip*>(widget)) return tr("Corner to resize the window");
  if (qobject_cast<const QAbstractItemView*>(widget))
    if (const auto* box = around<QComboBox>(widget)) return tr("Choices of %1").arg(box->accessibleName());
  if (const auto* button = qobject_cast<const QAbstractButton*>(widget); button && button->text().isEmpty()) {
    if (const auto* field = qobject_cast<const QLineEdit*>(widget->parentWidget()))
      return tr("Clear %1").arg(field->accessibleName());
    if (widget->parentWidget() && widget->parentWidget()->inherits("QTabBar"))
      return static_cast<const QToolButton*>(widget)->arrowType() == Qt::LeftArrow ? tr("Panels before")
                                                                                   : tr("Panels after");
    if (widget->parentWidget() && widget->parentWidget()->inherits("QTableView")) return tr("Select all cells");
    if (widget->inherits("QToolBarExtension")) return tr("More commands");
    return button->toolTip().section(QLatin1Char('\n'), 0, 0);
  }
  return {};
}

/// Qt makes these widgets when they are needed: each gets its name when it is polished, before it shows.
class NameGiver : public QObject {
 public:
  using QObject::QObject;

  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() != QEvent::Polish || !watched->isWidgetType()) return false;
    auto* widget = static_cast<QWidget*>(watched);
    if (widget->accessibleName().isEmpty())
      if (const auto name = nameFor(widget); !name.isEmpty()) widget->setAccessibleName(name);
    return false;
  }
};

}  // namespace

void nameOwnControlsOfQt() {
  static QPointer<NameGiver> giver;
  if (giver) return;
  giver = new NameGiver(qApp);
  qApp->installEventFilter(giver);
}

}  // namespace retrograd::views
