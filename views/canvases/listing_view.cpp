#include "views/canvases/listing_view.h"

#include <QScrollBar>
#include <QTimerEvent>

#include "views/content/line_notes.h"
#include "views/stages/stage_plan.h"
#include "views/text/format.h"
#include "views/widgets/marked_scroll_bar.h"

namespace retrograd::views {
namespace {

/// What the mark next to a line says to those who hear it.
QString relationText(Relation relation) {
  switch (relation) {
    case Relation::origin: return tr("origin of the selected op");
    case Relation::derived: return tr("comes from the selected op");
    case Relation::sibling: return tr("of the same operation");
    case Relation::way: return tr("on the way of a NaN or infinity");
    default: return {};
  }
}

}  // namespace

ListingView::ListingView(ViewContext context, TraceKind kind, QWidget* parent)
    : CodeView(context.theme, parent),
      context_(context),
      board_(FindingBoard::of(*context.controller)),
      kind_(kind),
      marks_(new MarkedScrollBar(this)) {
  setObjectName(QStringLiteral("listing-") + toQt(name(kind)));
  setAccessibleName(tr("%1 listing").arg(titleText(kind)));
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setVerticalScrollBar(marks_);
  // Always: if it came and went with the number of lines, columns would be wider and narrower, and lines fewer and
  // more.
  setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOn);
  viewport()->setMouseTracking(true);
  connect(context_.controller, &DocumentController::documentChanged, this, &ListingView::documentChanged);
  connect(context_.selection, &Selection::changed, this, &ListingView::selectionChanged);
  connect(context_.execution, &ExecutionState::changed, this, &ListingView::executionChanged);
  connect(context_.execution, &ExecutionState::breakpointsChanged, viewport(), qOverload<>(&QWidget::update));
  connect(&context_.controller->ahead().numbers(), &RunNumbers::changed, this, &ListingView::numbersChanged);
  connect(&board_, &FindingBoard::changed, viewport(), qOverload<>(&QWidget::update));
  connect(context_.filter, &OpFilter::changed, this, &ListingView::filterChanged);
  connect(context_.notes, &NoteBook::changed, this, &ListingView::notesChanged);
  if (context_.stages)
    connect(context_.stages, &StagePlan::changed, this, [this] {
      updateScrollBars();
      viewport()->update();
    });
  documentChanged();
}

void ListingView::documentChanged() {
  clearFind();
  document_ = context_.controller->document();
  cursor_ = anchor_ = -1;
  shownExecution_ = {};
  resetRows();
  if (rows_.count() > 0) cursor_ = anchor_ = 0;
}

void ListingView::resetRows() {
  texts_.clear();
  recountFinds();
  sums_ = {};
  widest_ = {};
  rows_ = document() ? FoldRows(&outline()) : FoldRows();
  if (const auto& ops = context_.filter->ops(); ops && document()) rows_.setFilter({ops, &ops->trace(kind_)});
  keepLines();
  verticalScrollBar()->setValue(0);
  updateScrollBars();
  viewport()->update();
}

void ListingView::setGrouping(Grouping grouping) {
  if (grouping == grouping_) return;
  const auto op = opAt(cursor_);
  grouping_ = grouping;
  resetRows();
  cursor_ = anchor_ = rows_.count() > 0 ? 0 : -1;
  const auto row = rowOf(op ? op : context_.selection->op());
  if (row >= 0) {
    setCursor(row, false);
    ensureVisible(row, true);
  }
}

void ListingView::setShortNames(bool on) {
  shortNames_ = on;
  texts_.clear();
  viewport()->update();
}

void ListingView::setAllFolded(bool on) {
  const auto row = cursor_ >= 0 ? rows_.rowAt(cursor_) : -1;
  rows_.setAllFolded(on);
  updateScrollBars();
  if (row >= 0) setCursor(rows_.visibleOf(row), false);
  ensureVisible(cursor_, true);
  viewport()->update();
}

void ListingView::updateScrollBars() {
  auto* vertical = verticalScrollBar();
  vertical->setPageStep(visibleRows());
  vertical->setSingleStep(1);
  vertical->setRange(0, lastTop());
  updateMarks();
}

BoundSymbolId ListingView::opAt(int visible) const {
  if (!document() || visible < 0 || visible >= rows_.count()) return {};
  const auto item = outline().item[rows_.rowAt(visible)];
  return item >= 0 ? index().lines[item] : BoundSymbolId();
}

bool ListingView::isHeader(int visible) const {
  return document() && visible >= 0 && visible < rows_.count() && outline().isHeader(rows_.rowAt(visible));
}

int ListingView::rowOf(BoundSymbolId op) const {
  if (!document()) return -1;
  const auto line = index().line(op);
  return line < 0 ? -1 : rows_.visibleOf(outline().rowOfLine[line]);
}

const LineText& ListingView::lineText(int visible) const {
  const auto row = rows_.rowAt(visible);
  if (const auto* known = texts_.object(row)) return *known;
  auto* made = new LineText(makeLine(row));
  measure(*made, outline().depth[row]);
  texts_.insert(row, made);
  return *made;
}

LineText ListingView::makeLine(std::int32_t row) const {
  const auto item = outline().item[row];
  if (item < 0) {
    const auto& header = outline().header(row);
    auto line = lineOfHeader(index().document(), header, rows_.isFiltered() ? rows_.passingBelow(row) : -1);
    return header.operation ? withNotes(std::move(line), header.operation, index().document(), *context_.notes) : line;
  }
  const auto op = index().lines[item];
  auto line = withNotes(lineOf(index().document(), op, &document()->saved, shortNames_), op, index().document(),
                        *context_.notes);
  // The title of its group says where it comes from.
  const auto parent = outline().parent[row];
  const auto origin = index().document().boundSymbol(op).origin.op;
  if (origin && parent >= 0 && outline().isHeader(parent) && outline().header(parent).operation == origin)
    line.words[TextColumn::origin].clear();
  return line;
}

QString ListingView::textAt(int visible) const {
  return visible >= 0 && visible < rows_.count() ? lineText(visible).text : QString();
}

int ListingView::textLeft(int visible) const {
  const auto depth = outline().depth[rows_.rowAt(visible)];
  return gutterWidth() + rowHeight_ + columnAt(2 * depth);
}

void ListingView::ensureVisible(int visible, bool centre) {
  if (visible < 0 || isRowVisible(visible)) return;
  auto* bar = verticalScrollBar();
  const int rows = visibleRows();
  if (centre) bar->setValue(visible - rows / 2);
  else bar->setValue(visible < bar->value() ? visible : visible - rows + 1);
  while (!isRowVisible(visible) && bar->value() < std::min(visible, bar->maximum()))
    bar->setValue(bar->value() + 1);  // borders of stages have room of their own
}

void ListingView::setCursor(int visible, bool extend) {
  cursor_ = visible;
  if (!extend) anchor_ = visible;
  viewport()->update();
}

void ListingView::moveCursor(int visible, bool extend) {
  if (rows_.count() == 0) return;
  visible = std::clamp(visible, 0, rows_.count() - 1);
  setCursor(visible, extend);
  ensureVisible(visible, false);
  selectCursorOp();
  announce();
}

BoundSymbolId ListingView::opForKey(int visible) const {
  if (const auto op = opAt(visible)) return op;
  return isHeader(visible) ? outline().header(rows_.rowAt(visible)).operation : BoundSymbolId();
}

void ListingView::selectOpOf(int visible, ValueId value) {
  const auto op = opForKey(visible);
  if (!op) return;
  selecting_ = true;
  context_.selection->select(op, value);
  selecting_ = false;
}

void ListingView::reveal(BoundSymbolId op) {
  if (!document()) return;
  const auto line = index().line(op);
  if (line < 0) return;
  const auto row = outline().rowOfLine[line];
  changeRows([this] { return keepLines(); });
  if (rows_.reveal(row)) updateScrollBars();
  const auto visible = rows_.visibleOf(row);
  setCursor(visible, false);
  ensureVisible(visible, true);
}

Relation ListingView::relationOf(int visible) const {
  const auto& selection = *context_.selection;
  const auto op = opAt(visible);
  if (op) return selection.relation(op);
  // A folded header represents what it hides.
  const auto row = rows_.rowAt(visible);
  const auto& header = outline().header(row);
  if (!header.operation || header.operation != selection.origin() || !rows_.folded(row)) return Relation::none;
  if (selection.op() == header.operation) return header.backward ? Relation::derived : Relation::sibling;
  const auto& document = index().document();
  const bool fromBackward = isBackwardRole(document.boundSymbol(selection.op()).origin.role);
  return header.backward == fromBackward ? Relation::sibling : header.backward ? Relation::derived : Relation::origin;
}

void ListingView::selectionChanged() {
  viewport()->update();
  const auto op = context_.selection->op();
  if (!document() || selecting_)
    return;  // lines that come and go under the pointer would make a double click meet another one
  changeRows([this] { return keepLines(); });
  if (!op) return;
  // The listing where the op was chosen shows it already; here its counterpart matters more: the forward origin of a
  // backward op, the first backward op of a forward op. Where this trace has none, the op itself.
  const auto own = rowOf(op);
  const auto counterpart = rowOf(counterpartHere());
  if (own >= 0) setCursor(own, false);
  if (counterpart >= 0) {
    ensureVisible(own, true);
    ensureVisible(counterpart, own < 0 || std::abs(counterpart - own) >= visibleRows());
  } else if (own >= 0) {
    reveal(op);
  }
}

BoundSymbolId ListingView::counterpartHere() const {
  const auto& selection = *context_.selection;
  const auto& document = index().document();
  const auto origin = selection.origin();
  const bool fromBackward = isBackwardRole(document.boundSymbol(selection.op()).origin.role);
  if (!origin) return {};
  if (origin != selection.op() && index().line(origin) >= 0) return origin;
  if (fromBackward)
    if (const auto forward = index().analysis->links.forwardOf(document, selection.op());
        forward && index().line(forward) >= 0)
      return forward;
  for (auto derived : index().analysis->links.derived(origin))
    if (isBackwardRole(document.boundSymbol(derived).origin.role) != fromBackward && index().line(derived) >= 0)
      return derived;
  // A computation op: what represents it here.
  for (auto derived : index().analysis->links.derived(origin))
    if (selection.op() == origin && index().line(derived) >= 0) return derived;
  return {};
}

void ListingView::executionChanged() {
  viewport()->update();
  updateMarks();
  const auto current = context_.execution->now().current;
  if (current == shownExecution_) return;
  const bool first = !shownExecution_;
  shownExecution_ = current;
  changeRows([this] { return keepLines(); });
  if (!first || context_.execution->now().position > 0) ensureVisible(rowOf(current), true);
}

void ListingView::filterChanged() {
  if (!document()) return;
  changeRows([this] {
    const auto& ops = context_.filter->ops();
    const bool isMine = ops && ops->document == document_;
    rows_.setFilter(isMine ? std::shared_ptr<const PassingLines>(ops, &ops->trace(kind_)) : nullptr);
    texts_.clear();  // headers say how many of their ops pass; changeRows() has measured lines of before
    keepLines();
    return true;
  });
  recountFinds();
  const auto own = rowOf(context_.selection->op());
  if (own < 0) return;
  setCursor(own, false);
  ensureVisible(own, true);
}

void ListingView::notesChanged() {
  texts_.clear();
  viewport()->update();
}

bool ListingView::keepLines() {
  if (!rows_.isFiltered()) return false;
  std::vector<std::int32_t> kept;
  const auto keep = [&](BoundSymbolId op) {
    if (const auto line = index().line(op); line >= 0) kept.push_back(line);
  };
  if (context_.selection->op() && context_.selection->analysis() == document()->analysis) {
    keep(context_.selection->op());
    keep(counterpartHere());
  }
  keep(context_.execution->now().current);
  return rows_.keep(std::move(kept));
}

void ListingView::changeRows(const std::function<bool()>& change) {
  auto* bar = verticalScrollBar();
  const auto rowOrNone = [&](int visible) {
    return visible >= 0 && visible < rows_.count() ? rows_.rowAt(visible) : -1;
  };
  const bool holdsCursor = cursor_ >= 0 && isRowVisible(cursor_);
  const int held = holdsCursor ? cursor_ : bar->value(), below = held - bar->value();
  const auto cursorRow = rowOrNone(cursor_), anchorRow = rowOrNone(anchor_), heldRow = rowOrNone(held);
  if (!change()) return;
  updateScrollBars();
  cursor_ = rows_.nearest(std::max(0, cursorRow));
  anchor_ = rows_.nearest(std::max(0, anchorRow));
  if (heldRow >= 0) bar->setValue(rows_.nearest(heldRow) - below);
  viewport()->update();
}

bool ListingView::isKept(int visible) const {
  return document() && visible >= 0 && visible < rows_.count() && !rows_.passes(rows_.rowAt(visible));
}

bool ListingView::isBad(BoundSymbolId op) const {
  return op && (context_.execution->now().bad.contains(op) || context_.controller->ahead().numbers().isBad(op));
}

bool ListingView::takesBad(BoundSymbolId op) const {
  const auto& tables = index().document();
  const auto operands = tables.operands(op);
  return std::ranges::any_of(operands,
                             [&](ValueId operand) { return operand && isBad(tables.value(operand).producer); });
}

QString ListingView::spokenAt(int visible) const {
  if (visible < 0 || visible >= rows_.count()) return {};
  QStringList words{textAt(visible)};
  const auto op = opAt(visible);
  if (const auto relation = relationText(relationOf(visible)); !relation.isEmpty()) words << relation;
  if (const auto* note = context_.notes->at(opForKey(visible)); note && note->bookmark) words << tr("bookmark");
  if (context_.execution->mark(op) != BreakpointMark::none) words << tr("breakpoint");
  const auto& now = context_.execution->now();
  if (op && now.current == op) words << tr("runs next");
  if (const auto number = numberAt(visible); !number.isEmpty())
    words
        << (isOfLastRun(visible) ? tr("%1 %2 of the last run") : QStringLiteral("%1 %2")).arg(titleOf(column_), number);
  if (op && isBad(op)) words << (takesBad(op) ? tr("has NaN or Inf") : tr("made NaN or Inf"));
  if (const auto* finding = board_.at(op)) words << toQt(finding->sentence);
  if (const auto row = rows_.rowAt(visible); outline().foldable(row) && rows_.folded(row))
    words << (badBelow(row) ? tr("folded, NaN or Inf in it") : tr("folded"));
  if (isKept(visible)) words << tr("does not pass the filter");
  return words.join(QStringLiteral(", "));
}

void ListingView::toggleFold(int visible) {
  if (visible < 0 || visible >= rows_.count()) return;
  const auto row = rows_.rowAt(visible);
  if (!outline().foldable(row)) return;
  rows_.setFolded(row, !rows_.folded(row));
  updateScrollBars();
  setCursor(std::min(visible, rows_.count() - 1), false);
  selectCursorOp();
  announce();
}

void ListingView::foldAtCursor(bool fold) {
  if (cursor_ < 0) return;
  auto row = rows_.rowAt(cursor_);
  if (fold && (!outline().foldable(row) || rows_.folded(row))) row = outline().parent[row];
  if (row < 0 || !outline().foldable(row) || rows_.folded(row) == fold) return;
  rows_.setFolded(row, fold);
  updateScrollBars();
  moveCursor(rows_.visibleOf(row));
}

QString ListingView::copyText() const {
  QStringList lines;
  if (!document() || cursor_ < 0) return {};
  for (int visible = std::min(cursor_, anchor_); visible <= std::max(cursor_, anchor_); ++visible) {
    const auto op = opAt(visible);
    if (op) lines << lineOf(index().document(), op, &document()->saved, false).text;
    else lines << QStringLiteral("# ") + textAt(visible);
  }
  return lines.join(QLatin1Char('\n'));
}

bool ListingView::isLit(int visible) const {
  return !finds_.key.isEmpty() && finds_.pattern.matches(lineText(visible).text);
}

void ListingView::clearFind() {
  cancelFind();
  if (finds_.timer) killTimer(finds_.timer);
  finds_ = Finds();
  viewport()->update();
}

void ListingView::recountFinds() {
  finds_.rows.clear();
  finds_.next = 0;
  if (!finds_.key.isEmpty() && document() && !finds_.timer) finds_.timer = startTimer(0);
}

void ListingView::countFinds() {
  constexpr int linesInOneSlice = 1500;
  const auto end = std::min(outline().rows(), finds_.next + linesInOneSlice);
  for (; finds_.next < end; ++finds_.next)
    if (rows_.shows(finds_.next) && finds_.pattern.matches(makeLine(finds_.next).text))
      finds_.rows.push_back(finds_.next);
  if (finds_.next < outline().rows()) return;
  killTimer(finds_.timer);
  finds_.timer = 0;
  tellFinds();
}

void ListingView::tellFinds() {
  const auto at = cursor_ >= 0 ? rows_.rowAt(cursor_) : -1;
  const auto found = std::ranges::lower_bound(finds_.rows, at);
  const bool isThere = found != finds_.rows.end() && *found == at;
  Q_EMIT findCounted(isThere ? static_cast<int>(found - finds_.rows.begin()) + 1 : 0,
                     static_cast<int>(finds_.rows.size()));
}

void ListingView::find(const LinePattern& pattern, bool forward) {
  cancelFind();
  if (finds_.key != pattern.key()) {
    clearFind();
    finds_.pattern = pattern;
    finds_.key = pattern.key();
    recountFinds();
    viewport()->update();
  }
  const int count = document() ? outline().rows() : 0;
  if (pattern.isEmpty() || count == 0) return Q_EMIT findDone(pattern.isEmpty(), false);
  const int at = cursor_ >= 0 ? rows_.rowAt(cursor_) : 0;
  search_ = {pattern, forward, (at + (forward ? 1 : count - 1)) % count, count, false, 0};
  search_.timer = startTimer(0);
}

void ListingView::cancelFind() {
  if (search_.timer) killTimer(search_.timer);
  search_.timer = 0;
}

void ListingView::timerEvent(QTimerEvent* event) {
  if (finds_.timer && event->timerId() == finds_.timer) return countFinds();
  if (event->timerId() != search_.timer) return CodeView::timerEvent(event);
  constexpr int linesInOneSlice = 1500;
  const auto& shape = outline();
  for (int i = 0; i < linesInOneSlice && search_.left > 0; ++i, --search_.left) {
    const auto row = search_.next;
    if (rows_.shows(row) && search_.pattern.matches(makeLine(row).text)) {
      cancelFind();
      if (rows_.reveal(row)) updateScrollBars();
      moveCursor(rows_.visibleOf(row));
      ensureVisible(cursor_, true);
      Q_EMIT findDone(true, search_.wrapped);
      if (!finds_.timer) tellFinds();
      return;
    }
    const auto next = search_.forward ? row + 1 : row - 1;
    search_.wrapped = search_.wrapped || next < 0 || next >= shape.rows();
    search_.next = (next + shape.rows()) % shape.rows();
  }
  if (search_.left > 0) return;
  cancelFind();
  Q_EMIT findDone(false, true);
}

}  // namespace retrograd::views
