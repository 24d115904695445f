#include "views/canvases/code_view.h"

#include <QAccessible>
#include <QAccessibleWidget>
#include <QHash>
#include <QPointer>
#include <QScrollBar>
#include <algorithm>
#include <cmath>

namespace retrograd::views {
namespace {

/// A row, known by its place: a reader hears whatever is there when rows come or go.
class RowAccessible : public QAccessibleInterface, public QAccessibleActionInterface {
 public:
  RowAccessible(CodeView* view, int row) : view_(view), row_(row) {}

  bool isValid() const override { return view_ && row_ < view_->rowCount(); }
  QObject* object() const override { return nullptr; }
  QWindow* window() const override { return view_ ? view_->window()->windowHandle() : nullptr; }
  QAccessible::Role role() const override { return QAccessible::ListItem; }
  QAccessibleInterface* parent() const override { return QAccessible::queryAccessibleInterface(view_); }
  QAccessibleInterface* child(int) const override { return nullptr; }
  QAccessibleInterface* childAt(int, int) const override { return nullptr; }
  int childCount() const override { return 0; }
  int indexOfChild(const QAccessibleInterface*) const override { return -1; }
  void setText(QAccessible::Text, const QString&) override {}
  QString text(QAccessible::Text what) const override {
    return isValid() && what == QAccessible::Name ? view_->spokenAt(row_) : QString();
  }
  QRect rect() const override {
    if (!isValid()) return {};
    const auto rect = view_->rowRect(row_);
    return {view_->viewport()->mapToGlobal(rect.topLeft()), rect.size()};
  }
  QAccessible::State state() const override {
    QAccessible::State state;
    state.invalid = !isValid();
    if (state.invalid) return state;
    state.focusable = state.selectable = true;
    state.selected = row_ == view_->cursorRow();
    state.focused = state.selected && view_->hasFocus();
    state.offscreen = state.invisible = !view_->isRowVisible(row_);
    return state;
  }

  int row() const { return row_; }

  // What a mouse does in the row.
  void* interface_cast(QAccessible::InterfaceType type) override {
    return type == QAccessible::ActionInterface ? static_cast<QAccessibleActionInterface*>(this) : nullptr;
  }
  QStringList actionNames() const override { return {pressAction(), toggleAction()}; }
  QString localizedActionName(const QString& name) const override {
    return name == pressAction() ? CodeView::tr("Select") : CodeView::tr("Go to the origin, or fold");
  }
  QString localizedActionDescription(const QString& name) const override { return localizedActionName(name); }
  QStringList keyBindingsForAction(const QString&) const override { return {}; }
  void doAction(const QString& name) override {
    if (!isValid()) return;
    view_->setFocus();
    name == pressAction() ? view_->chooseRow(row_) : view_->activateRow(row_);
  }

 private:
  QPointer<CodeView> view_;
  int row_;
};

/// The canvas: a list of its rows, with the one under the cursor as its value. Rows are made when they are asked for.
class CodeAccessible : public QAccessibleWidget {
 public:
  explicit CodeAccessible(CodeView* view) : QAccessibleWidget(view, QAccessible::List) {}
  ~CodeAccessible() override {
    for (auto id : rows_) QAccessible::deleteAccessibleInterface(id);
  }

  QString text(QAccessible::Text what) const override {
    if (what != QAccessible::Value && what != QAccessible::Description) return QAccessibleWidget::text(what);
    return view()->rowCount() > 0 ? view()->spokenAt(view()->cursorRow()) : view()->emptyText();
  }
  int childCount() const override { return view()->rowCount(); }
  QAccessibleInterface* child(int row) const override {
    if (row < 0 || row >= view()->rowCount()) return nullptr;
    auto& id = rows_[row];
    if (!id) id = QAccessible::registerAccessibleInterface(new RowAccessible(view(), row));
    return QAccessible::accessibleInterface(id);
  }
  QAccessibleInterface* childAt(int x, int y) const override {
    return child(view()->rowAtY(view()->viewport()->mapFromGlobal(QPoint(x, y)).y()));
  }
  QAccessibleInterface* focusChild() const override {
    return view()->hasFocus() ? child(view()->cursorRow()) : nullptr;
  }
  int indexOfChild(const QAccessibleInterface* child) const override {
    const auto* row = dynamic_cast<const RowAccessible*>(child);
    return row ? row->row() : -1;
  }

 private:
  CodeView* view() const { return static_cast<CodeView*>(widget()); }

  mutable QHash<int, QAccessible::Id> rows_;
};

QAccessibleInterface* makeAccessible(const QString& className, QObject* object) {
  // A window that is a plain widget would be a nameless filler between the program and its list.
  const auto* kind = object ? object->metaObject() : nullptr;
  if (kind && kind->superClass() == &QWidget::staticMetaObject && className == QLatin1String(kind->className()))
    if (auto* window = static_cast<QWidget*>(object); window->isWindow() && window->windowType() == Qt::Window)
      return new QAccessibleWidget(window, QAccessible::Window, window->windowTitle());
  auto* view = qobject_cast<CodeView*>(object);
  return view ? new CodeAccessible(view) : nullptr;
}

}  // namespace

void installCodeAccessibility() { QAccessible::installFactory(makeAccessible); }

CodeView::CodeView(Theme* theme, QWidget* parent) : ScrolledCanvas(theme, parent) {
  viewport()->setAttribute(Qt::WA_OpaquePaintEvent);
  updateMetrics();
  connect(theme_, &Theme::changed, this, [this] {
    updateMetrics();
    metricsChanged();
    colorsChanged();
  });
}

void CodeView::updateMetrics() {
  const auto font = Theme::codeFont();
  viewport()->setFont(font);
  const QFontMetricsF metrics(font);
  rowHeight_ = static_cast<int>(std::ceil(metrics.height())) + 3;
  ascent_ = static_cast<int>(std::ceil(metrics.ascent())) + 1;
  charWidth_ = std::max(1.0, metrics.horizontalAdvance(QLatin1Char('m')));
}

void CodeView::changeEvent(QEvent* event) {
  ScrolledCanvas::changeEvent(event);
  if (event->type() != QEvent::ApplicationFontChange && event->type() != QEvent::FontChange) return;
  updateMetrics();
  metricsChanged();
  viewport()->update();
}

int CodeView::rowTop(int visible) const {
  const int first = verticalScrollBar()->value(), last = std::min({visible, first + visibleRows() + 1, rowCount() - 1});
  int top = (visible - first) * rowHeight_;
  for (int row = first; row <= last; ++row) top += roomAbove(row) + (row < visible ? heightOf(row) - rowHeight_ : 0);
  return top;
}

int CodeView::rowsThatFit(int from, int step) const {
  int row = from;
  for (int room = viewport()->height(); row >= 0 && row < rowCount(); row += step) {
    room -= heightOf(row) + roomAbove(row);
    if (room < 0) break;
  }
  return std::max(1, std::abs(row - from));
}

bool CodeView::isRowVisible(int visible) const {
  const auto first = verticalScrollBar()->value();
  if (visible <= first) return visible == first;
  const int top = rowTop(visible), room = viewport()->height();
  return top < room && top + heightOf(visible) <= room;
}

int CodeView::rowAtY(int y) const {
  if (y < 0) return -1;
  int row = verticalScrollBar()->value();
  for (int below = 0; row < rowCount(); ++row) {
    below += roomAbove(row) + heightOf(row);
    if (y < below) return row;
  }
  return -1;
}

void CodeView::announce() {
  if (!QAccessible::isActive()) return;
  QAccessibleValueChangeEvent value(this, spokenAt(cursor_));
  QAccessible::updateAccessibility(&value);
  if (!hasFocus() || cursor_ < 0) return;
  QAccessibleEvent focus(this, QAccessible::Focus);
  focus.setChild(cursor_);
  QAccessible::updateAccessibility(&focus);
}

}  // namespace retrograd::views
