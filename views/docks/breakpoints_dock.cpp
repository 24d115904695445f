#include "views/docks/breakpoints_dock.h"

#include <QAction>
#include <QKeyEvent>
#include <QPointer>
#include <QToolButton>
#include <QVBoxLayout>

#include "views/widgets/controls.h"
#include "views/widgets/elided_label.h"
#include "views/widgets/sorted_rows.h"

namespace retrograd::views {
namespace {

constexpr int widestWhere = 30;  ///< digits: a module's path would else leave no room for the op

}  // namespace

BreakpointsDock::BreakpointsDock(ViewContext context, QWidget* parent)
    : Panel(context, "breakpoints", parent), model_(new BreakpointsModel(this)), table_(new QTreeView(this)) {
  model_->followNotes(context_.notes);
  prepareTree(*table_, model_, "breakpoints", tr("Breakpoints"), {.isFlat = true, .isSorted = true});
  columns_ = new ColumnFitter(table_);
  columns_->limit(BreakpointsModel::where, widestWhere);
  table_->installEventFilter(this);
  addListAction(table_, tr("Edit the Condition"), Qt::Key_F2, [this] { editCurrent(); });
  addListAction(table_, tr("Remove"), QKeySequence::Delete, [this] { removeCurrent(); });
  table_->setEditTriggers(QAbstractItemView::DoubleClicked);
  auto* layout = withMargins(new QVBoxLayout(this), {}, 0);
  layout->addWidget(table_, 1);
  layout->addWidget(makeLine());
  setList(table_);
  words_->setEnabled(false);
  connect(context_.controller, &DocumentController::documentChanged, this,
          [this] { words_->setEnabled(context_.controller->document() != nullptr); });
  connect(context_.execution, &ExecutionState::breakpointsChanged, this, &BreakpointsDock::invalidate);
  connect(context_.execution, &ExecutionState::changed, this, [this] {
    if (inSight()) model_->setHits(context_.execution->now().hits);
  });
  connect(model_, &BreakpointsModel::enableRequested, this, [this](int row, bool on) {
    context_.controller->marks().enableBreakpoint(static_cast<std::size_t>(row), on);
  });
  connect(model_, &BreakpointsModel::conditionRequested, this, [this](int row, const QString& words) {
    tell(context_.controller->marks().setCondition(static_cast<std::size_t>(row), words));
  });
}

QWidget* BreakpointsDock::makeLine() {
  auto* line = new QWidget(this);
  words_ = named(new QLineEdit(line), "breakpoint-words", tr("New breakpoint"));
  words_->setPlaceholderText(
      tr("Add: kind mm if nan   ·   module layers.0   ·   value t12 if norm > 10   ·   any if inf after 2"));
  words_->setToolTip(
      tr("#12 or a value's name, kind OP, module PATH, value NAME or any;\n"
         "then if nan, if inf, if norm > X, if max > X or if meta; then after N to let N hits pass"));
  words_->setClearButtonEnabled(true);
  auto* add = new QToolButton(line);
  add->setText(tr("Add"));
  add->setAccessibleName(tr("Add the breakpoint"));
  problem_ = named(new WrappedLabel(line), "breakpoint-problem");
  problem_->hide();
  auto* row = new QHBoxLayout;
  row->addWidget(words_, 1);
  row->addWidget(add);
  auto* layout = withMargins(new QVBoxLayout(line), {4, 3, 4, 3}, 2);
  layout->addWidget(problem_);
  layout->addLayout(row);
  connect(words_, &QLineEdit::returnPressed, this, &BreakpointsDock::add);
  connect(add, &QToolButton::clicked, this, &BreakpointsDock::add);
  connect(words_, &QLineEdit::textEdited, problem_, &QLabel::hide);
  return line;
}

void BreakpointsDock::refresh() {
  model_->set(context_.controller->document(), context_.execution->breakpoints());
  model_->setHits(context_.execution->now().hits);
  if (model_->rowCount() > 0) columns_->fit();
}

void BreakpointsDock::activate(const QModelIndex& row) {
  if (const auto op = model_->placeOf(ofModel(row).row())) Q_EMIT jumpRequested(op);
}

void BreakpointsDock::add() {
  const auto words = words_->text().trimmed();
  if (words.isEmpty()) return;
  const auto added = [panel = QPointer(this), words](const QString& problem) {
    if (!panel) return;
    panel->tell(problem);
    if (problem.isEmpty() && panel->words_->text().trimmed() == words) panel->words_->clear();
  };
  context_.controller->marks().addBreakpoint(words, added);
}

void BreakpointsDock::tell(const QString& problem) {
  problem_->setText(QStringLiteral("! ") + problem);
  problem_->setVisible(!problem.isEmpty());
}

void BreakpointsDock::removeCurrent() {
  const int row = ofModel(table_->currentIndex()).row();
  if (row < 0) return;
  context_.controller->marks().removeBreakpoint(static_cast<std::size_t>(row));
  table_->setCurrentIndex(shownIn(*table_, model_->index(std::min(row, model_->rowCount() - 1), 0)));
}

void BreakpointsDock::editCurrent() {
  const auto row = table_->currentIndex();
  if (row.isValid()) table_->edit(row.siblingAtColumn(BreakpointsModel::condition));
}

bool BreakpointsDock::eventFilter(QObject* watched, QEvent* event) {
  // F2 edits here, also where it is the key of a command of the window.
  const bool isKey = event->type() == QEvent::KeyPress || event->type() == QEvent::ShortcutOverride;
  if (watched == table_ && isKey && static_cast<QKeyEvent*>(event)->key() == Qt::Key_F2) {
    event->accept();
    if (event->type() == QEvent::KeyPress) editCurrent();
    return true;
  }
  // Space switches the row, whatever column the cursor is in.
  if (watched == table_ && event->type() == QEvent::KeyPress &&
      static_cast<QKeyEvent*>(event)->key() == Qt::Key_Space) {
    const auto box = ofModel(table_->currentIndex()).siblingAtColumn(BreakpointsModel::where);
    const bool on = box.data(Qt::CheckStateRole).toInt() == Qt::Checked;
    if (box.isValid()) model_->setData(box, on ? Qt::Unchecked : Qt::Checked, Qt::CheckStateRole);
    return true;
  }
  return Panel::eventFilter(watched, event);
}

}  // namespace retrograd::views
