#include "views/window/listings_area.h"

#include <QAction>
#include <QEvent>
#include <QKeyEvent>
#include <QScrollBar>
#include <QVBoxLayout>

#include "views/text/format.h"
#include "views/theme/tokens.h"
#include "views/widgets/controls.h"
#include "views/window/listing_header.h"

namespace retrograd::views {
namespace {

/// Which listing shows an op that several have: forward and backward first, as the joint has all and would always win.
constexpr std::array byPreference{TraceKind::forward, TraceKind::backward, TraceKind::computation, TraceKind::joint};
constexpr int roomyWindow = 1240;  ///< width from which the row of check boxes says what it is for

}  // namespace

ListingsArea::ListingsArea(ViewContext context, QWidget* parent) : QWidget(parent), context_(context) {
  splitter_ = new QSplitter(Qt::Horizontal, this);
  splitter_->setChildrenCollapsible(false);
  splitter_->setHandleWidth(tokens::splitterWidth);
  for (auto kind : traceKinds) panes_[kind] = makePane(kind);
  makeGraphPane();
  active_ = panes_[TraceKind::forward].view;
  auto* layout = withMargins(new QVBoxLayout(this), {}, 0);
  layout->addWidget(makeSwitches());
  strip_ = new RunStrip(context_, this);
  connect(strip_, &RunStrip::chosen, this, &ListingsArea::placeChosen);
  layout->addWidget(strip_);
  layout->addWidget(splitter_, 1);
  layout->addWidget(makeFindBar());
  connect(context_.controller, &DocumentController::documentChanged, this, &ListingsArea::updateTitles);
  connect(context_.filter, &OpFilter::changed, this, &ListingsArea::updateTitles);
  connect(context_.theme, &Theme::changed, this, [this] { setActive(graphIsActive_ ? nullptr : active_); });
  resetLayout();
  updateTitles();
}

ListingsArea::Pane ListingsArea::makePane(TraceKind kind) {
  Pane pane;
  pane.view = new ListingView(context_, kind);
  placePane(pane, pane.view, titleText(kind));
  pane.view->installEventFilter(this);
  connect(pane.view, &ListingView::activated, this, [this, view = pane.view] { setActive(view); });
  connect(pane.view, &ListingView::jumpRequested, this, &ListingsArea::jumpRequested);
  connect(pane.view, &ListingView::breakpointRequested, this, &ListingsArea::breakpointRequested);
  connect(pane.view, &ListingView::findDone, this, &ListingsArea::findDone);
  connect(pane.view, &ListingView::findCounted, this, [this, view = pane.view](int current, int all) {
    if (view == active_ && all > 0 && findBar_->isVisible())
      findState_->setText(current > 0 ? tr("%1 of %2 in %3").arg(current).arg(all).arg(titleText(view->kind()))
                                      : tr("%1 in %2").arg(all).arg(titleText(view->kind())));
  });
  return pane;
}

void ListingsArea::placePane(Pane& pane, QWidget* content, const QString& toggleText) {
  pane.frame = new QWidget(splitter_);
  pane.title = new ElidedLabel(pane.frame);
  pane.title->setContentsMargins(tokens::gap, tokens::tight, tokens::gap, tokens::tight);
  auto* layout = withMargins(new QVBoxLayout(pane.frame), {}, 0);
  layout->addWidget(pane.title);
  if (pane.view) layout->addWidget(makeHeader(pane.view));
  layout->addWidget(content, 1);
  pane.frame->setMinimumWidth(160);
  pane.toggle = new QAction(toggleText, this);
  pane.toggle->setCheckable(true);
  connect(pane.toggle, &QAction::toggled, this, &ListingsArea::toggled);
}

QWidget* ListingsArea::makeHeader(ListingView* view) {
  auto* header = new ListingHeader(view, context_.theme);
  connect(header, &ListingHeader::widthChosen, this, [this](TextColumn column, int characters) {
    auto choices = choices_;
    choices[column].characters = characters;
    setColumnChoices(choices);
    Q_EMIT columnChoicesChanged();
  });
  connect(header, &ListingHeader::menuRequested, this, [this](const QPoint& at) {
    if (columnMenu_) columnMenu_->popup(at);
  });
  return header;
}

void ListingsArea::setColumnChoices(const ColumnChoices& choices) {
  choices_ = choices;
  for (auto& pane : panes_) pane.view->setColumnChoices(choices);
}

void ListingsArea::makeGraphPane() {
  graphPane_ = new GraphPane(context_);
  placePane(graph_, graphPane_, tr("Graph"));
  graph().installEventFilter(this);
  connect(graphPane_, &GraphPane::titleChanged, this, [this] { graph_.title->setText(graphPane_->title()); });
  connect(&graph(), &GraphView::jumpRequested, this, &ListingsArea::jumpRequested);
  connect(&graph(), &GraphView::breakpointRequested, this, &ListingsArea::breakpointRequested);
  connect(&graph(), &GraphView::activated, this, [this] { setActive(nullptr); });
  connect(&graph(), &GraphView::findDone, this, &ListingsArea::graphFindDone);
}

void ListingsArea::switchGraph() {
  const auto op = context_.selection->op();
  if (graph().hasFocus()) {
    // Not goTo(): that stays in the graph while it has the focus.
    if (!isShown(active_->kind())) toggleAction(active_->kind())->setChecked(true);
    if (op) active_->reveal(op);
    return active_->setFocus();
  }
  graph_.toggle->setChecked(true);
  if (op) graph().reveal(op);
  graph().setFocus();
}

QWidget* ListingsArea::makeSwitches() {
  auto* row = new QWidget(this);
  auto* layout = withMargins(new QHBoxLayout(row), {tokens::gap, tokens::tight, tokens::gap, tokens::tight},
                             tokens::gap + tokens::hair);
  switchesLabel_ = new QLabel(tr("Listings"), row);
  switchesLabel_->setContentsMargins(2, 0, 0, 0);
  switchesLabel_->hide();
  layout->addWidget(switchesLabel_);
  const auto add = [&](QAction* action, const QString& accessibleName) {
    // Check boxes: a pressed button is hard to distinguish from one that is not.
    auto* box = new QCheckBox(action->text(), row);
    box->setAccessibleName(accessibleName);
    box->setFocusPolicy(Qt::TabFocus);
    connect(box, &QCheckBox::toggled, action, &QAction::setChecked);
    connect(action, &QAction::changed, box, [box, action] {
      box->setChecked(action->isChecked());
      box->setEnabled(action->isEnabled());
      box->setToolTip(action->toolTip());
    });
    layout->addWidget(box);
  };
  for (auto kind : traceKinds) add(toggleAction(kind), tr("Show the %1 listing").arg(titleText(kind)));
  add(graphAction(), tr("Show the graph"));
  switches_ = layout;
  return row;
}

void ListingsArea::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  switchesLabel_->setVisible(window()->width() >= roomyWindow);  // else the panels at the sides need the room more
}

QWidget* ListingsArea::makeFindBar() {
  findBar_ = new QWidget(this);
  auto* layout = withMargins(new QHBoxLayout(findBar_), {tokens::gap, tokens::tight, tokens::gap, tokens::tight});
  auto* label = new QLabel(tr("F&ind:"), findBar_);
  findText_ = named(new QLineEdit(findBar_), "find-text", tr("Text to find in the active listing"));
  findText_->setPlaceholderText(tr("op, value, shape or module; Enter: next, Shift+Enter: previous, Esc: close"));
  findText_->setClearButtonEnabled(true);
  findText_->installEventFilter(this);
  label->setBuddy(findText_);
  findExpression_ = named(new QCheckBox(tr("Regular e&xpression"), findBar_), "find-expression");
  findExpression_->setToolTip(tr(". * + ? | ( ) [ ] ^ $ \\d \\w \\s; case matters"));
  findState_ = named(new QLabel(findBar_), "find-state");
  findState_->setMinimumWidth(160);
  layout->addWidget(label);
  layout->addWidget(findText_, 1);
  layout->addWidget(findExpression_);
  layout->addWidget(findState_);
  connect(findText_, &QLineEdit::textEdited, this, [this] { findPattern(); });
  connect(findExpression_, &QCheckBox::toggled, this, [this] {
    findPattern();
    findText_->setFocus();
  });
  findBar_->hide();
  return findBar_;
}

bool ListingsArea::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() != QEvent::KeyPress) return QWidget::eventFilter(watched, event);
  const auto* key = static_cast<QKeyEvent*>(event);
  if (watched != findText_) {
    if (key->key() != Qt::Key_Space || key->modifiers() != Qt::NoModifier) return QWidget::eventFilter(watched, event);
    switchGraph();
    return true;
  }
  if (key->key() == Qt::Key_Escape) {
    for (auto& pane : panes_) pane.view->clearFind();
    graph().clearFind();
    findBar_->hide();
    graphIsActive_ ? graph().setFocus() : active_->setFocus();
    return true;
  }
  if (key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter) {
    findNext(!(key->modifiers() & Qt::ShiftModifier));
    return true;
  }
  return QWidget::eventFilter(watched, event);
}

void ListingsArea::showFind() {
  findBar_->show();
  findText_->setFocus();
  findText_->selectAll();
}

std::optional<LinePattern> ListingsArea::findPattern() {
  findState_->clear();
  if (!findExpression_->isChecked()) return LinePattern(findText_->text());
  QString problem;
  auto pattern = LinePattern::expression(findText_->text(), problem);
  if (!pattern) findState_->setText(QStringLiteral("! ") + problem);
  return pattern;
}

void ListingsArea::findNext(bool forward) {
  if (!context_.controller->document()) return;
  if (findText_->text().isEmpty()) return showFind();
  const auto pattern = findPattern();
  if (!pattern) return;
  if (isGraphShown() && (graphIsActive_ || !isShown(active_->kind()))) {
    findState_->setText(tr("Searching the graph ..."));
    return graph().find(
        findText_->text() + (findExpression_->isChecked() ? QStringLiteral("/r") : QStringLiteral("/t")), *pattern,
        forward);
  }
  findState_->setText(tr("Searching %1 ...").arg(titleText(active_->kind())));
  active_->find(*pattern, forward);
}

void ListingsArea::findDone(bool found, bool wrapped) {
  findState_->setText(!found    ? tr("Not found in %1").arg(titleText(active_->kind()))
                      : wrapped ? tr("Found, from the other end")
                                : QString());
}

void ListingsArea::graphFindDone(int count, int current) {
  findState_->setText(count == 0 ? tr("Not found in the graph") : tr("%1 of %2 in the graph").arg(current).arg(count));
}

void ListingsArea::toggled() {
  int shown = graph_.toggle->isChecked();
  for (const auto& pane : panes_) shown += pane.toggle->isChecked();
  const auto update = [&](Pane& pane) {
    const bool on = pane.toggle->isChecked();
    pane.frame->setVisible(on);
    const bool last = on && shown == 1;
    pane.toggle->setEnabled(!last);
    const auto key = pane.toggle->shortcut().toString(QKeySequence::NativeText);
    pane.toggle->setToolTip(last            ? tr("The last listing stays")
                            : key.isEmpty() ? pane.toggle->text()
                                            : QStringLiteral("%1 (%2)").arg(pane.toggle->text(), key));
  };
  for (auto& pane : panes_) update(pane);
  update(graph_);
  if (active_ && !isShown(active_->kind()))
    for (auto& pane : panes_)
      if (pane.toggle->isChecked()) setActive(pane.view);
}

void ListingsArea::resetLayout() {
  for (auto kind : traceKinds)
    toggleAction(kind)->setChecked(kind == TraceKind::forward || kind == TraceKind::backward);
  graph_.toggle->setChecked(false);
  toggled();
  setActive(&listing(TraceKind::forward));
  splitter_->setSizes({1000, 1000, 1000, 1000, 1600});
}

void ListingsArea::setAllFolded(bool on) {
  for (auto kind : traceKinds)
    if (isShown(kind)) listing(kind).setAllFolded(on);
}

void ListingsArea::setColumn(OpFigure kind, bool isChosen) {
  for (auto& pane : panes_) pane.view->setColumn(kind, isChosen);
}

void ListingsArea::updateTitles() {
  const auto& document = context_.controller->document();
  for (auto kind : traceKinds) {
    auto& pane = panes_[kind];
    const auto ops = document ? static_cast<qlonglong>(document->trace(kind).lines.size()) : 0;
    const auto& filtered = context_.filter->ops();
    auto text = !document ? titleText(kind)
                : filtered && filtered->document == document
                    ? tr("%1  ·  %2 of %3 ops").arg(titleText(kind)).arg(filtered->trace(kind).count()).arg(ops)
                    : tr("%1  ·  %2 ops").arg(titleText(kind)).arg(ops);
    if (document && kind == TraceKind::forward && document->saved.count)
      text += tr("  ·  saves %1").arg(bytesText(document->saved.bytes));
    if (ops > 0 && kind == TraceKind::backward && !backwardSource_.isEmpty())
      text += QStringLiteral("  ·  ") + backwardSource_;
    pane.title->setText(text);
    pane.title->setExplanation(!document ? QString()
                               : kind == TraceKind::forward
                                   ? tr("%1 values are saved for the backward").arg(document->saved.count)
                               : kind == TraceKind::backward ? backwardExplanation_
                                                             : QString());
  }
  graph_.title->setText(graphPane_->title());
  setActive(graphIsActive_ ? nullptr : active_);
}

void ListingsArea::setBackwardSource(const QString& source, const QString& explanation) {
  backwardSource_ = source;
  backwardExplanation_ = explanation;
  updateTitles();
}

void ListingsArea::setActive(ListingView* view) {
  const auto mark = [](const Pane& pane, bool on) {
    auto font = pane.title->font();
    font.setBold(on);
    pane.title->setFont(font);
  };
  if (view) active_ = view;
  graphIsActive_ = !view && isGraphShown();
  for (const auto& pane : panes_) mark(pane, pane.view == view);
  mark(graph_, !view);
}

void ListingsArea::setGrouping(Grouping grouping) {
  for (auto& pane : panes_) pane.view->setGrouping(grouping);
}

void ListingsArea::setShortNames(bool on) {
  for (auto& pane : panes_) pane.view->setShortNames(on);
}

void ListingsArea::setNumbers(bool on) {
  for (auto& pane : panes_) pane.view->setNumbers(on);
}

/// Where no listing that is open has the op, one has what it became: a jump opens no listing for that.
BoundSymbolId ListingsArea::shownFor(BoundSymbolId op) const {
  const auto& document = *context_.controller->document();
  const auto isSeen = [&](BoundSymbolId other) {
    return std::ranges::any_of(traceKinds,
                               [&](TraceKind kind) { return isShown(kind) && document.trace(kind).line(other) >= 0; });
  };
  if (isSeen(op)) return op;
  const auto became = document.analysis->links.derived(op);
  const auto seen = std::ranges::find_if(became, isSeen);
  return seen == became.end() ? op : *seen;
}

void ListingsArea::goTo(BoundSymbolId op) {
  const auto& document = context_.controller->document();
  if (!document || !op) return;
  if (graph().hasFocus()) {
    context_.selection->select(op);
    return graph().reveal(op);
  }
  op = shownFor(op);
  auto target = openListingOf(op);
  if (!target) {
    const auto has = [&](TraceKind kind) { return document->trace(kind).line(op) >= 0; };
    const auto any = std::ranges::find_if(byPreference, has);
    if (any == byPreference.end()) return;
    target = *any;
  }
  toggleAction(*target)->setChecked(true);
  context_.selection->select(op);
  listing(*target).reveal(op);
  listing(*target).setFocus();
}

std::optional<TraceKind> ListingsArea::openListingOf(BoundSymbolId op) const {
  const auto& document = *context_.controller->document();
  const auto has = [&](TraceKind kind) { return isShown(kind) && document.trace(kind).line(op) >= 0; };
  if (has(active_->kind())) return active_->kind();
  const auto found = std::ranges::find_if(byPreference, has);
  return found == byPreference.end() ? std::nullopt : std::optional(*found);
}

void ListingsArea::takeFocusFrom(const QWidget* hidden) {
  if (hidden && hidden->isVisible()) return;
  graphIsActive_ ? graph().setFocus() : active_->setFocus();
}

void ListingsArea::begin() {
  const auto& document = context_.controller->document();
  if (!document || context_.selection->op()) return;
  const auto& analysis = *document->analysis;
  const auto& ops = analysis.forward.ops.empty() ? analysis.computation().trace.ops : analysis.forward.ops;
  if (ops.empty()) return;
  context_.selection->select(ops.front());
  for (const auto& pane : panes_) pane.view->verticalScrollBar()->setValue(0);  // not where its backward is
}

void ListingsArea::follow(BoundSymbolId op) {
  context_.selection->select(op);
  const auto there = openListingOf(op);
  if (!active_->hasFocus() || !there || *there == active_->kind()) return;
  listing(*there).reveal(op);
  listing(*there).setFocus();
}

}  // namespace retrograd::views
