#include "views/widgets/item_view.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QHeaderView>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPlainTextEdit>
#include <QTableView>
#include <QTreeView>

#include "views/widgets/controls.h"

namespace retrograd::views {
namespace {

const QHeaderView* columnsOf(const QAbstractItemView& view) {
  if (const auto* tree = qobject_cast<const QTreeView*>(&view)) return tree->header();
  const auto* table = qobject_cast<const QTableView*>(&view);
  return table ? table->horizontalHeader() : nullptr;
}

/// By where they show. A tree's rows are known by their place on the screen, as those of different parents have the
/// same numbers.
std::vector<QModelIndex> selectedCells(const QAbstractItemView& view, int column) {
  const auto* columns = columnsOf(view);
  const bool isTree = qobject_cast<const QTreeView*>(&view);
  std::vector<std::pair<std::pair<int, int>, QModelIndex>> cells;
  for (const auto& cell : view.selectionModel()->selectedIndexes()) {
    if (column >= 0 ? cell.column() != column : columns && columns->isSectionHidden(cell.column())) continue;
    cells.push_back({{isTree ? view.visualRect(cell).top() : cell.row(),
                      columns ? columns->visualIndex(cell.column()) : cell.column()},
                     cell});
  }
  std::ranges::sort(cells, [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<QModelIndex> sorted;
  for (const auto& cell : cells) sorted.push_back(cell.second);
  return sorted;
}

QString textOf(const QAbstractItemView& view, int column) {
  QString text;
  QModelIndex before;
  for (const auto& cell : selectedCells(view, column)) {
    if (before.isValid())
      text += cell.row() == before.row() && cell.parent() == before.parent() ? QLatin1Char('\t') : QLatin1Char('\n');
    text += cell.data().toString();
    before = cell;
  }
  return text;
}

/// Qt's own, as a popup, would stay at Esc, and swallow each click elsewhere.
class WholeText : public QPlainTextEdit {
 public:
  using QPlainTextEdit::QPlainTextEdit;

 protected:
  bool event(QEvent* event) override {
    const bool isPress = event->type() == QEvent::MouseButtonPress || event->type() == QEvent::MouseButtonDblClick;
    if (isPress && !rect().contains(static_cast<QMouseEvent*>(event)->position().toPoint())) return close();
    return QPlainTextEdit::event(event);
  }
  void keyPressEvent(QKeyEvent* event) override {
    if (event->matches(QKeySequence::Cancel)) close();
    else QPlainTextEdit::keyPressEvent(event);
  }
};

class TypeAhead : public QObject {
 public:
  using QObject::QObject;

  bool eventFilter(QObject*, QEvent* event) override {
    if (event->type() != QEvent::ShortcutOverride) return false;
    const auto* key = static_cast<QKeyEvent*>(event);
    // Searching minds no case, so a letter with Shift is still a command's: Shift+P pins the dock that has the focus.
    const bool isChord = key->modifiers() & ~Qt::KeypadModifier;
    const auto text = key->text();
    if (isChord || text.isEmpty() || !text[0].isPrint() || text[0].isSpace()) return false;
    event->accept();
    return true;
  }
};

}  // namespace

void addCopy(QAbstractItemView& view, int column) {
  const auto copy = [&view, column] { QApplication::clipboard()->setText(textOf(view, column)); };
  named(addListAction(&view, tr("Copy"), QKeySequence::Copy, copy), "copy");
  view.setContextMenuPolicy(Qt::ActionsContextMenu);
}

void showWholeText(QAbstractItemView& view, const QModelIndex& row) {
  if (!row.isValid()) return;
  QStringList cells;
  const auto* model = row.model();
  const bool isTable = model->columnCount(row.parent()) > 2;  // numbers say nothing without their titles
  for (int column = 0; column < model->columnCount(row.parent()); ++column) {
    const auto cell = row.siblingAtColumn(column);
    const auto tip = cell.data(Qt::ToolTipRole).toString(), text = cell.data().toString();
    const auto whole = tip.size() > text.size() ? tip : text;
    const auto title = model->headerData(column, Qt::Horizontal).toString();
    cells << (isTable && !whole.isEmpty() && !title.isEmpty() ? title + QStringLiteral(": ") + whole : whole);
  }
  cells.removeDuplicates();
  cells.removeAll(QString());
  auto* popup = named(new WholeText(cells.join(QLatin1Char('\n')), view.window()), "whole-text",
                      tr("Whole text of %1").arg(row.siblingAtColumn(0).data().toString()));
  popup->setWindowFlags(Qt::Popup);
  popup->setAttribute(Qt::WA_DeleteOnClose);
  popup->setReadOnly(true);
  popup->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  const auto lines = QFontMetrics(popup->font());
  popup->resize(
      std::max(360, view.viewport()->width()),
      lines.height() * std::clamp(static_cast<int>(cells.join(QLatin1Char(' ')).size()) / 40 + 2, 3, 12) + 12);
  const auto room = view.screen()->availableGeometry();
  const auto below = view.viewport()->mapToGlobal(view.visualRect(row).bottomLeft());
  popup->move(std::max(room.left(), std::min(below.x(), room.right() - popup->width())),
              std::max(room.top(), std::min(below.y(), room.bottom() - popup->height())));
  popup->show();
  popup->setFocus();
}

void letTypeAhead(QWidget& widget) { widget.installEventFilter(new TypeAhead(&widget)); }

}  // namespace retrograd::views
