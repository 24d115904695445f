#include "views/docks/pin_button.h"

#include <QEvent>
#include <QStyle>

#include "views/session/own_names.h"
#include "views/theme/style.h"

namespace retrograd::views {

PinButton::PinButton(QDockWidget* dock, PinnedSelection* selection, QAction* pin, const ViewContext& context)
    : QToolButton(dock),
      dock_(dock),
      selection_(selection),
      theme_(context.theme),
      notes_(context.notes),
      shown_(new ElidedLabel(dock)),
      title_(dock->windowTitle()) {
  setObjectName(QStringLiteral("pin"));
  shown_->setObjectName(QStringLiteral("shown"));
  shown_->setAttribute(Qt::WA_TransparentForMouseEvents);  // the title bar below is dragged
  setDefaultAction(pin);
  setToolButtonStyle(Qt::ToolButtonIconOnly);
  setAutoRaise(true);
  setFocusPolicy(Qt::NoFocus);  // as Qt's own next to it; the command is in the menu and has a key
  setAccessibleName(tr("Pin %1").arg(title_));
  const auto showIcon = [this, pin] { pin->setIcon(theme_->icon(QStringLiteral("pin"))); };
  connect(theme_, &Theme::changed, this, showIcon);
  connect(selection_, &PinnedSelection::pinnedChanged, this, &PinButton::showState);
  connect(selection_, &Selection::changed, this, &PinButton::showState);
  connect(notes_, &NoteBook::changed, this, &PinButton::showState);
  dock_->installEventFilter(this);
  showIcon();
  showState();
}

bool PinButton::eventFilter(QObject* watched, QEvent* event) {
  switch (event->type()) {
    case QEvent::Resize:
    case QEvent::Show:
    case QEvent::LayoutRequest:
    case QEvent::StyleChange: place(); break;
    default: break;
  }
  return QToolButton::eventFilter(watched, event);
}

void PinButton::place() {
  const auto* neighbour =
      dock_->findChild<QWidget*>(QStringLiteral("qt_dockwidget_floatbutton"), Qt::FindDirectChildrenOnly);
  if (!neighbour) return;
  const int icon = style()->pixelMetric(QStyle::PM_SmallIconSize, nullptr, this);
  const int side = std::max(neighbour->height(), icon + 2);
  setIconSize({icon - 2, icon - 2});
  setGeometry(neighbour->x() - side - 2, neighbour->geometry().center().y() - side / 2 + 1, side, side);
  raise();
  const int margin = style()->pixelMetric(QStyle::PM_DockWidgetTitleMargin, nullptr, dock_);
  const int name = isNamedByTab(dock_) ? 0 : fontMetrics().horizontalAdvance(title_ + QStringLiteral("  "));
  const int left = name + 2 * margin;
  shown_->setGeometry(left, y(), std::max(0, x() - left - 2), side);
}

QString PinButton::shownText() const {
  if (!selection_->analysis()) return {};
  const auto& document = *selection_->analysis()->document;
  if (!selection_->op()) return selection_->value() ? nameOf(document, selection_->value(), notes_) : QString();
  for (auto output : document.outputs(selection_->op()))
    if (output) return nameOf(document, output, notes_);
  return QString::fromStdString(document.opName(selection_->op()));
}

void PinButton::showState() {
  const bool on = selection_->isPinned();
  defaultAction()->setChecked(on);
  dock_->setWindowTitle(on ? tr("%1 (pinned: %2)").arg(title_, shownText()) : title_);
  shown_->setText(on ? QString() : shownText());
  shown_->setHidden(shown_->text().isEmpty());
  place();
}

}  // namespace retrograd::views
