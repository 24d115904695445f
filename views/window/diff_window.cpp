#include "views/window/diff_window.h"

#include <QAction>
#include <QFrame>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QVBoxLayout>

#include "views/widgets/controls.h"
#include "views/widgets/window_size.h"

namespace retrograd::views {
namespace {

const QString findTag = QStringLiteral("compare traces");

}  // namespace

DiffWindow::DiffWindow(ViewContext context, QWidget* parent)
    : QWidget(parent, Qt::Window), context_(context), job_(new PoolJob(this)) {
  setObjectName(QStringLiteral("diff-window"));
  setWindowTitle(tr("Compare Traces"));
  view_ = new DiffView(context_.theme, this);
  details_ = named(new QPlainTextEdit(this), "diff-details", tr("The row under the cursor"));
  details_->setReadOnly(true);
  details_->setFont(Theme::codeFont());
  details_->setFrameShape(QFrame::NoFrame);
  details_->setTabChangesFocus(true);
  details_->setFixedHeight(QFontMetrics(details_->font()).lineSpacing() * 4 +
                           2 * static_cast<int>(details_->document()->documentMargin()));
  auto* border = new QFrame(this);
  border->setFrameShape(QFrame::HLine);
  border->setFrameShadow(QFrame::Plain);
  border->setForegroundRole(QPalette::Mid);
  auto* layout = withMargins(new QVBoxLayout(this), {}, 0);
  layout->addWidget(makeChoices());
  layout->addWidget(view_, 1);
  layout->addWidget(border);
  layout->addWidget(details_);
  layout->addWidget(makeTools());
  resizeWithinScreen(*this, {1400, 860});
  connect(context_.controller, &DocumentController::documentChanged, this, &DiffWindow::documentChanged);
  connect(context_.selection, &Selection::changed, this, &DiffWindow::selectionChanged);
  for (auto* chooser : {left_, right_}) connect(chooser, &TraceChooser::chosen, this, &DiffWindow::compare);
  connect(view_, &DiffView::cursorMoved, this, &DiffWindow::cursorMoved);
  connect(view_, &DiffView::cancelled, this, &DiffWindow::cancelOrLeave);
  connect(view_, &DiffView::activated, this, [this](Side side, BoundSymbolId op) {
    const auto* comparison = view_->rows().comparison();
    const auto& document = context_.controller->document();
    if (comparison && document && comparison->of(side).analysis == document->analysis) Q_EMIT jumpRequested(op);
  });
  documentChanged();
}

QWidget* DiffWindow::makeChoices() {
  auto* row = new QWidget(this);
  left_ = named(new TraceChooser(tr("Left"), row), "diff-left");
  right_ = named(new TraceChooser(tr("Right"), row), "diff-right");
  auto* swap = new QToolButton(row);
  swap->setText(QStringLiteral("\u21c4"));
  swap->setAutoRaise(true);
  swap->setToolTip(tr("Swaps the sides"));
  swap->setAccessibleName(tr("Swap the sides"));
  connect(swap, &QToolButton::clicked, this, &DiffWindow::swap);
  auto* layout = withMargins(new QHBoxLayout(row), {6, 5, 6, 5});
  layout->addWidget(left_, 1);
  layout->addWidget(swap);
  layout->addWidget(right_, 1);
  return row;
}

QWidget* DiffWindow::makeTools() {
  auto* row = new QWidget(this);
  auto* layout = withMargins(new QHBoxLayout(row), {6, 3, 8, 4});
  previous_ = addWindowAction(this, tr("Previous Difference"), "diff-previous",
                              {Qt::SHIFT | Qt::Key_F8, Qt::CTRL | Qt::Key_Up}, [this] { view_->step(false); });
  next_ = addWindowAction(this, tr("Next Difference"), "diff-next", {Qt::Key_F8, Qt::CTRL | Qt::Key_Down},
                          [this] { view_->step(true); });
  addWindowAction(this, tr("Close"), "diff-close", {Qt::CTRL | Qt::Key_W}, [this] { hide(); });
  next_->setIconText(tr("Next \u2193"));
  previous_->setIconText(tr("\u2191 Previous"));
  for (auto* action : {previous_, next_}) layout->addWidget(commandButton(action, row));
  place_ = new QLabel(row);
  place_->setAccessibleName(tr("Which difference"));
  place_->setMinimumWidth(90);
  layout->addWidget(place_);
  onlyDifferences_ = named(new QCheckBox(tr("&Only differences"), row), "diff-only");
  onlyDifferences_->setToolTip(tr("Folds stretches that are equal; Enter on a folded row shows them"));
  connect(onlyDifferences_, &QCheckBox::toggled, this, [this](bool on) {
    view_->showOnlyDifferences(on);
    updateDetails();
  });
  layout->addWidget(onlyDifferences_);
  layout->addStretch(1);
  summary_ = named(new QLabel(row), "diff-summary", tr("How much differs"));
  layout->addWidget(summary_);
  return row;
}

void DiffWindow::open() {
  show();
  raise();
  activateWindow();
  view_->setFocus();
  if (stale_) compare();
}

void DiffWindow::compareWith(std::shared_ptr<const Analysis> tried, const QString& title) {
  tried_ = std::move(tried);
  triedTitle_ = title;
  found_.erase(keyOf({TraceSource::Kind::tried, {}}));
  for (auto* chooser : {left_, right_}) chooser->follow(context_.controller->document().get(), triedTitle_);
  left_->choose({}, TraceKind::joint);
  right_->choose({TraceSource::Kind::tried, {}}, TraceKind::joint);
  stale_ = true;
  open();
}

void DiffWindow::dropTried() {
  if (!tried_) return;
  tried_.reset();
  triedTitle_.clear();
  found_.erase(keyOf({TraceSource::Kind::tried, {}}));
  for (auto* chooser : {left_, right_}) chooser->follow(context_.controller->document().get(), {});
  view_->show({});
  stale_ = true;
  if (isVisible()) compare();
}

void DiffWindow::swap() {
  const auto source = left_->source();
  const auto kind = left_->kind();
  left_->choose(right_->source(), right_->kind());
  right_->choose(source, kind);
  compare();
}

void DiffWindow::documentChanged() {
  cancel();
  found_.clear();
  tried_.reset();
  triedTitle_.clear();
  const auto* document = context_.controller->document().get();
  for (auto* chooser : {left_, right_}) chooser->follow(document, {});
  // What would another partition change? A question that each model can answer.
  if (document && document->analysis->derived() && left_->source() == right_->source() &&
      left_->kind() == right_->kind())
    right_->choose({TraceSource::Kind::fewestBytes, {}}, left_->kind());
  view_->show({});
  stale_ = true;
  if (isVisible()) compare();
  else say({});
}

void DiffWindow::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (stale_) compare();
}

void DiffWindow::hideEvent(QHideEvent* event) {
  if (busy()) {
    cancel();
    stale_ = true;
  }
  QWidget::hideEvent(event);
}

void DiffWindow::cancel() {
  context_.controller->questions().cancel(findTag);
  ++question_;
  const bool was = busy();
  job_->cancel();
  busy_ = false;
  if (was) say(tr("Cancelled. Choose what to compare above."));
}

void DiffWindow::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Escape && event->modifiers() == Qt::NoModifier) return cancelOrLeave();
  QWidget::keyPressEvent(event);
}

/// In place of the rows; an empty text shows them.
void DiffWindow::say(const QString& message) {
  view_->setMessage(message);
  if (message.isEmpty()) return updateDetails();
  summary_->clear();
  place_->clear();
  details_->clear();
  next_->setEnabled(false);
  previous_->setEnabled(false);
}

QString DiffWindow::keyOf(const TraceSource& source) {
  using Kind = TraceSource::Kind;
  // All passes come with one derivation.
  return QStringLiteral("%1 %2")
      .arg(static_cast<int>(source.kind))
      .arg(source.kind == Kind::pass ? QString() : source.detail);
}

DiffWindow::Found DiffWindow::find(const TraceSource& source, const QuestionContext& context,
                                   const Progress& progress) {
  const auto& document = context.document;
  PartitionOptions partition;
  switch (source.kind) {
    case TraceSource::Kind::pass: {
      auto passes = std::make_shared<const PassTraces>(context.engine.passes(*document.analysis, progress));
      return {passes->analysis, passes};
    }
    case TraceSource::Kind::fewestBytes:
      partition.kind = PartitionOptions::minCut;
      return {context.engine.whatIf(*document.analysis, partition, {}, progress).analysis, nullptr};
    case TraceSource::Kind::recomputeAll:
      partition.recompute = {"all"};
      return {context.engine.whatIf(*document.analysis, partition, {}, progress).analysis, nullptr};
    case TraceSource::Kind::file: {
      OpenRequest request;
      request.path = source.detail.toStdString();
      return {context.engine.open(request, progress, {}), nullptr};
    }
    case TraceSource::Kind::open:
    case TraceSource::Kind::tried: break;
  }
  return {document.analysis, nullptr};
}

void DiffWindow::compare() {
  job_->cancel();
  stale_ = false;
  const auto& document = context_.controller->document();
  if (!document) return say(tr("No file is open. Open one in the main window; its traces can then be compared here."));
  found_[keyOf({})] = {document->analysis, nullptr};
  if (tried_) found_[keyOf({TraceSource::Kind::tried, {}})] = {tried_, nullptr};
  std::vector<TraceSource> missing;
  for (const auto* chooser : {left_, right_})
    if (!found_.contains(keyOf(chooser->source()))) missing.push_back(chooser->source());
  if (missing.empty()) return align();
  busy_ = true;
  say(tr("Deriving what is compared ...  (Esc cancels)"));
  const auto question = [this, missing](const QuestionContext& context, const Progress& progress) -> Worker::Deliver {
    auto answers = std::make_shared<std::map<QString, Found>>();
    for (const auto& source : missing)
      if (const auto key = keyOf(source); !answers->contains(key))
        answers->emplace(key, find(source, context, progress));
    return [this, answers] {
      busy_ = false;
      for (const auto& [key, answer] : *answers) found_[key] = answer;
      align();
    };
  };
  context_.controller->questions().ask(
      this, findTag, tr("Deriving the traces to compare"), question,
      [this, number = ++question_](const QString& message) {
        if (number != question_) return;  // cancelled here, which has been said
        busy_ = false;
        say(message.isEmpty() ? tr("Cancelled. Choose what to compare above.") : message);
      });
}

ComparedTrace DiffWindow::traceFor(const TraceChooser& chooser) const {
  const auto source = chooser.source();
  const auto& found = found_.at(keyOf(source));
  ComparedTrace compared{found.analysis, found.passes, nullptr, chooser.title()};
  if (found.passes) {
    compared.trace = &found.passes->results.at(found.passes->find(source.detail.toStdString(), TraceKind::joint)).trace;
    return compared;
  }
  const auto kind = chooser.kind();
  if (kind != TraceKind::computation && !found.analysis->derived())
    throw Error(ErrorCode::badUse,
                tr("nothing could be derived from its computation; choose Computation").toStdString(),
                found.analysis->file.path);
  compared.trace = &traceOf(*found.analysis, kind);
  return compared;
}

void DiffWindow::align() {
  try {
    say(tr("Comparing ...  (Esc cancels)"));
    job_->start(
        [this, left = traceFor(*left_), right = traceFor(*right_)](const Progress& progress) -> PoolJob::Deliver {
          auto comparison = compareTraces(left, right, progress);
          return [this, comparison] { shown(comparison); };
        });
  } catch (const Error& error) {
    say(QString::fromUtf8(error.what()));
  }
}

void DiffWindow::shown(const std::shared_ptr<const Comparison>& comparison) {
  view_->setMessage({});
  view_->show(DiffRows(comparison, onlyDifferences_->isChecked()));
  const auto& counts = comparison->diff.counts;
  const auto& own = context_.theme->colors().diff;
  QStringList parts;
  const auto tell = [&](DiffRow::Kind kind, std::size_t count, const QString& words) {
    if (count > 0)
      parts << QStringLiteral("<b style='color:%1'>%2</b>&nbsp;%3&nbsp;%4")
                   .arg(markOf(own, kind).name(), DiffRows::sign(kind))
                   .arg(count)
                   .arg(words);
  };
  tell(DiffRow::Kind::changed, counts.changed, tr("changed"));
  tell(DiffRow::Kind::onlyLeft, counts.onlyLeft, tr("only on the left"));
  tell(DiffRow::Kind::onlyRight, counts.onlyRight, tr("only on the right"));
  tell(DiffRow::Kind::movedAway, counts.moved, tr("moved"));
  parts << (comparison->diff.equal() ? tr("<b>equal</b>: %1 ops").arg(counts.same)
                                     : tr("%1 the same").arg(counts.same));
  summary_->setText(parts.join(QStringLiteral("&nbsp;&nbsp; ")));
  if (!comparison->diff.equal()) {
    selectionChanged();
  }
  updateDetails();
}

void DiffWindow::selectionChanged() {
  const auto* comparison = view_->rows().comparison();
  if (selecting_ || !comparison) return;
  // The side of the keyboard first, where both are of the open document.
  const auto first = view_->side();
  for (auto side : {first, first == Side::left ? Side::right : Side::left})
    if (comparison->of(side).analysis == context_.selection->analysis() &&
        view_->rows().rowOf(side, context_.selection->op()) >= 0) {
      view_->reveal(side, context_.selection->op());
      return updateDetails();
    }
}

void DiffWindow::cursorMoved() {
  updateDetails();
  const auto* comparison = view_->rows().comparison();
  const auto [side, op] = view_->opUnderCursor();
  if (!comparison || !op) return;
  for (auto one : {side, side == Side::left ? Side::right : Side::left}) {
    const auto here = view_->rows().opAt(view_->cursorRow(), one);
    if (!here || comparison->of(one).analysis != context_.selection->analysis()) continue;
    selecting_ = true;
    context_.selection->select(here);
    selecting_ = false;
    return;
  }
}

void DiffWindow::updateDetails() {
  const auto& rows = view_->rows();
  const auto cursor = view_->cursorRow();
  next_->setEnabled(cursor >= 0 && rows.nextBlock(cursor, true) >= 0);
  previous_->setEnabled(cursor >= 0 && rows.nextBlock(cursor, false) >= 0);
  details_->setPlainText(view_->cursorText());
  if (cursor < 0 || !rows.comparison()) return place_->clear();
  const auto blocks = static_cast<int>(rows.blocks().size());
  const auto block = rows.blockAt(cursor) + 1;
  place_->setText(blocks == 0 ? tr("no difference") : tr("%1 of %2").arg(block).arg(blocks));
}

}  // namespace retrograd::views
