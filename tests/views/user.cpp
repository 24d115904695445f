#include "tests/views/user.h"

#include <QAccessible>
#include <QApplication>
#include <QComboBox>
#include <QDropEvent>
#include <QLabel>
#include <QMenuBar>
#include <QMimeData>
#include <QPushButton>
#include <QScrollBar>
#include <QStatusBar>
#include <QTabBar>
#include <QToolButton>
#include <QWheelEvent>
#include <QWindow>

namespace retrograd::views {
namespace {

bool says(const QString& text, const QStringList& words) {
  return !text.isEmpty() &&
         std::all_of(words.begin(), words.end(), [&](const QString& word) { return text.contains(word); });
}

QString plain(QString text) { return text.remove(QLatin1Char('&')); }

QAction* entry(const QWidget& menu, const QString& text) {
  for (auto* action : menu.actions())
    if (action->isVisible() && plain(action->text()) == text) return action;
  return nullptr;
}

/// A dock behind another counts as visible to Qt, and has no place on the screen.
bool isSeen(const QWidget& widget) { return widget.isVisible() && !widget.visibleRegion().isEmpty(); }

void addRows(const QTreeView& tree, const QModelIndex& parent, QStringList& rows) {
  const auto* model = tree.model();
  for (int row = 0; row < model->rowCount(parent); ++row) {
    const auto first = model->index(row, 0, parent);
    QStringList cells;
    for (int column = 0; column < model->columnCount(parent); ++column)
      if (!tree.isColumnHidden(column)) cells << model->index(row, column, parent).data().toString();
    rows << cells.join(QStringLiteral("  "));
    if (tree.isExpanded(first)) addRows(tree, first, rows);
  }
}

}  // namespace

QWidget* User::front() {
  auto* found = QApplication::activeModalWidget();
  if (!found) found = QApplication::activeWindow();
  if (!found || !found->isVisible()) found = &window_;
  for (auto* widget : QApplication::topLevelWidgets())  // one that has just opened comes to the front
    if (widget->isVisible() && widget->isWindow() && widget->parentWidget() == &window_ &&
        (widget->windowFlags() & Qt::Dialog) == Qt::Dialog && widget->inherits("QDialog"))
      found = widget;
  if (QApplication::activeWindow() != found) QApplication::setActiveWindow(found);
  return found;
}

void User::drop(const QString& path, const QWidget* onto) {
  QMimeData data;
  data.setUrls({QUrl::fromLocalFile(path)});
  const auto& under = onto ? *onto : window_;
  const auto at = under.mapTo(&window_, under.rect().center());
  QDragEnterEvent enter(at, Qt::CopyAction | Qt::MoveAction, &data, Qt::LeftButton, Qt::NoModifier);
  QCoreApplication::sendEvent(window_.windowHandle(), &enter);
  QVERIFY(enter.isAccepted());
  QDropEvent dropped(at, Qt::CopyAction | Qt::MoveAction, &data, Qt::LeftButton, Qt::NoModifier);
  QCoreApplication::sendEvent(window_.windowHandle(), &dropped);
  QVERIFY(dropped.isAccepted());
}

void User::press(int key, Qt::KeyboardModifiers modifiers) {
  auto* window = front();
  auto* popup = QApplication::activePopupWidget();
  auto* focus = popup ? popup : QApplication::focusWidget();
  QTest::keyClick(focus ? focus : window, static_cast<Qt::Key>(key), modifiers);
}

void User::type(const QString& text) {
  front();
  QTest::keyClicks(QApplication::focusWidget(), text);
}

bool User::pressUntil(int key, const QStringList& words, Qt::KeyboardModifiers modifiers) {
  for (int times = 0; times < 400; ++times) {
    press(key, modifiers);
    if (says(line(), words)) return true;
  }
  return false;
}

void User::click(QWidget* widget, QPoint at) { QTest::mouseClick(widget, Qt::LeftButton, Qt::NoModifier, at); }

void User::clickButton(QWidget& root, const QString& text) {
  for (auto* button : root.findChildren<QAbstractButton*>())
    if (isSeen(*button) && plain(button->text()) == text) {
      QVERIFY2(button->isEnabled(), qPrintable(text));
      return click(button, button->inherits("QCheckBox") ? QPoint(8, button->height() / 2) : QPoint());
    }
  QFAIL(qPrintable(QStringLiteral("no button ") + text));
}

void User::clickMenu(const QStringList& path) {
  auto* bar = window_.menuBar();
  auto* action = entry(*bar, path.first());
  QVERIFY2(action, qPrintable(path.first()));
  click(bar, bar->actionGeometry(action).center());
  auto* menu = action->menu();
  for (const auto& text : path.mid(1)) {
    QTRY_VERIFY(menu->isVisible());
    action = entry(*menu, text);
    QVERIFY2(action && action->isEnabled(), qPrintable(text));
    const auto at = menu->actionGeometry(action).center();
    QTest::mouseMove(menu, at);
    click(menu, at);
    if (action->menu()) menu = action->menu();
  }
}

void User::clickTool(const QString& tip) {
  for (auto* button : window_.findChildren<QToolButton*>())
    if (isSeen(*button) && button->toolTip().startsWith(tip)) {
      QVERIFY2(button->isEnabled(), qPrintable(button->toolTip()));
      return click(button);
    }
  QFAIL(qPrintable(QStringLiteral("no button ") + tip));
}

void User::clickTab(const QString& title) {
  for (auto* tabs : window_.findChildren<QTabBar*>())
    for (int i = 0; i < tabs->count(); ++i)
      if (isSeen(*tabs) && tabs->tabText(i) == title) return click(tabs, tabs->tabRect(i).center());
  QFAIL(qPrintable(QStringLiteral("no tab ") + title));
}

void User::choose(QComboBox* box, const QString& text) {
  click(box);
  auto* list = box->view();
  QTRY_VERIFY(list->isVisible());
  const auto index = list->model()->index(box->findText(text), 0);
  QVERIFY2(index.isValid(), qPrintable(text));
  list->scrollTo(index);
  // A release soon after the click that opened the list counts as its end, and chooses nothing: then once more.
  const auto at = list->visualRect(index).center();
  QTRY_VERIFY2((QTest::mouseMove(list->viewport(), at), list->isVisible() ? click(list->viewport(), at) : void(),
                box->currentText() == text),
               qPrintable(text));
}

bool User::clickLine(TraceKind kind, const QStringList& words, const QString& word) {
  auto& view = f_.listing(kind);
  for (int row = 0; row < view.rowCount(); ++row) {
    const auto text = view.textAt(row);
    if (!says(text, words)) continue;
    for (int turns = 0; !view.isRowVisible(row) && turns < 2000; ++turns) {
      const QPoint delta(0, view.rowRect(row).top() < 0 ? 120 : -120);
      const QPointF at(view.viewport()->rect().center());
      QWheelEvent wheel(at, view.viewport()->mapToGlobal(at), {}, delta, Qt::NoButton, Qt::NoModifier,
                        Qt::NoScrollPhase, false);
      QApplication::sendEvent(view.viewport(), &wheel);
    }
    const auto rect = view.rowRect(row);
    // Along the line until the word is met: how wide the gutter and the letters are is the view's business.
    const auto wanted =
        word.isEmpty() ? ValueId() : f_.controller().document()->analysis->document->outputs(view.opAt(row))[0];
    for (int x = rect.height() + 48; x < view.viewport()->width(); x += 6) {
      click(view.viewport(), QPoint(x, rect.center().y()));
      if (!wanted || f_.selection().value() == wanted) return f_.selection().op() == view.opAt(row);
    }
    return false;
  }
  return false;
}

void User::doubleClickRow(QTreeView& tree, const QString& text) {
  for (auto index = tree.model()->index(0, 0); index.isValid(); index = tree.indexBelow(index)) {
    if (!index.data().toString().startsWith(text)) continue;
    tree.scrollTo(index);
    const auto at = tree.visualRect(index).center();
    click(tree.viewport(), at);
    QTest::mouseDClick(tree.viewport(), Qt::LeftButton, Qt::NoModifier, at);
    return;
  }
  QFAIL(qPrintable(QStringLiteral("no row ") + text));
}

QString User::line() const {
  const auto* view = qobject_cast<ListingView*>(QApplication::focusWidget());
  return view && view->isRowVisible(view->cursorRow()) ? view->spokenAt(view->cursorRow()) : QString();
}

QString User::focus() const {
  auto* widget = QApplication::focusWidget();
  if (widget && !widget->accessibleName().isEmpty()) return widget->accessibleName();
  auto* interface = widget ? QAccessible::queryAccessibleInterface(widget) : nullptr;
  return interface ? interface->text(QAccessible::Name) : QString();
}

QStringList User::lines(TraceKind kind, const QStringList& words) const {
  const auto& view = f_.listing(kind);
  QStringList found;
  for (int row = 0; row < view.rowCount() && view.isVisible(); ++row)
    if (view.isRowVisible(row) && says(view.spokenAt(row), words)) found << view.spokenAt(row);
  return found;
}

QString User::title(TraceKind kind) const {
  for (const auto* title : window_.listings().findChildren<QLabel*>())
    if (isSeen(*title) && title->text().startsWith(titleText(kind) + QStringLiteral("  \u00b7"))) return title->text();
  return {};
}

QString User::label(const QString& name) const {
  for (const auto* root : QApplication::topLevelWidgets())
    for (const auto* label : root->findChildren<QLabel*>(name))
      if (isSeen(*label)) return label->text();
  return {};
}

QString User::status() const { return window_.statusBar()->currentMessage(); }

QStringList User::rows(const QString& name) const {
  QStringList rows;
  for (const auto* tree : window_.findChildren<QTreeView*>(name))
    if (isSeen(*tree->viewport())) addRows(*tree, {}, rows);
  return rows;
}

}  // namespace retrograd::views
