#include "views/docks/why_dock.h"

#include <QVBoxLayout>

#include "core/questions/partition_wishes.h"
#include "views/text/format.h"
#include "views/widgets/controls.h"
#include "views/widgets/dock_tree.h"
#include "views/widgets/elided_label.h"

namespace retrograd::views {
namespace {

const QString whyQuestion = QStringLiteral("why");
const QString detailsKey = QStringLiteral("details");
const QString whatIfQuestion = QStringLiteral("what if");
constexpr int budgetSteps = 8, budgetDelay = 200;  // ms: a slider moves through many places

/// "saved  7.5 KiB → 6.9 KiB  (−640 B)".
QString changeText(const QString& label, std::int64_t before, std::int64_t after) {
  const auto difference = after - before;
  const auto sign = difference < 0 ? QStringLiteral("\u2212") : QStringLiteral("+");
  const auto change = difference == 0 ? tr("unchanged") : sign + bytesText(std::abs(difference));
  return QStringLiteral("%1: %2 \u2192 %3  (%4)").arg(label, bytesText(before), bytesText(after), change);
}

QString timeText(double seconds) {
  const double size = std::abs(seconds);
  if (size >= 1) return tr("%1 s").arg(seconds, 0, 'g', 3);
  if (size >= 1e-3) return tr("%1 ms").arg(seconds * 1e3, 0, 'g', 3);
  return tr("%1 \u00b5s").arg(seconds * 1e6, 0, 'g', 3);
}

/// Why nothing is gained where it is recomputed; empty where something is, or it is not saved.
QString againstRecomputing(const Document& document, const WhySaved& known, const NoteBook* notes) {
  const auto& plan = known.recompute;
  if (!known.saved || plan.freed > plan.extraSaved) return {};
  if (!plan.impossible.empty()) return tr("It cannot be recomputed: %1").arg(toQt(plan.impossible));
  if (!known.sharing.empty())
    return tr("%1 shares its memory with %2: recompute that one")
        .arg(nameOf(document, known.value, notes), nameOf(document, known.sharing.front(), notes));
  if (plan.extraSaved == 0) return tr("It gains nothing: what is saved costs no memory");
  return tr("It gains nothing: it frees %1 and needs %2 that are not saved now")
      .arg(bytesText(plan.freed), bytesText(plan.extraSaved));
}

}  // namespace

struct WhyDock::Answer {
  WhatIf whatIf;
  std::shared_ptr<const MemoryTimeline> memory;
  std::int64_t least = 0, most = 0;  ///< for the slider of budgets
};

WhyDock::WhyDock(ViewContext context, QAction* recompute, QAction* save, Panel* inspector, QWidget* parent)
    : Panel(context, "why", parent),
      model_(new WhyModel(this)),
      card_(new WhyCard(context, this)),
      details_(named(new QToolButton(this), "why-details")),
      tree_(new QTreeView(this)) {
  prepareTree(*tree_, model_, "why", tr("Why the chosen value is saved or has no gradient"), {.wraps = true});
  setWidths(*tree_, {{0, 120}});
  makeVerdict();
  auto* layout = withMargins(new QVBoxLayout(this), {}, 0);
  details_->setText(tr("&Details"));
  details_->setToolTip(tr("All that is known of the values of this op"));
  details_->setCheckable(true);
  details_->setAutoRaise(true);
  details_->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  details_->setFocusPolicy(Qt::StrongFocus);
  layout->addWidget(card_);
  layout->addWidget(details_);
  layout->addWidget(tree_, 1);
  layout->addWidget(inspector, 2);
  connect(details_, &QToolButton::toggled, this, &WhyDock::foldDetails);
  connect(model_, &QAbstractItemModel::modelReset, this, &WhyDock::foldDetails);
  foldDetails();
  connect(card_, &WhyCard::jumpRequested, this, &WhyDock::jumpRequested);
  connect(card_, &WhyCard::sourceWanted, this, &WhyDock::sourceWanted);
  layout->addWidget(makeAdopted());
  layout->addWidget(verdictFrame_);
  layout->addWidget(makeButtons(recompute, save));
  setList(tree_);
  setDelay(30);
  budgetSoon_.setSingleShot(true);
  budgetSoon_.setInterval(budgetDelay);
  connect(&budgetSoon_, &QTimer::timeout, this, [this] { tryBudget(budget_->value()); });
  connect(context_.selection, &Selection::changed, this, &WhyDock::invalidate);
  connect(context_.notes, &NoteBook::changed, this, &WhyDock::invalidate);
  connect(&context_.controller->edits(), &QUndoStack::indexChanged, this, &WhyDock::showAdopted);
}

void WhyDock::foldDetails() {
  const bool isEmpty = model_->rowCount() == 0, isOn = details_->isChecked();
  tree_->setVisible(isOn);
  details_->setVisible(!isEmpty);
  details_->setArrowType(isOn ? Qt::DownArrow : Qt::RightArrow);
}

void WhyDock::showDetails(bool on) { details_->setChecked(on); }

QVariantMap WhyDock::saveState() const {
  auto state = Panel::saveState();
  state[detailsKey] = details_->isChecked();
  return state;
}

void WhyDock::restoreState(const QVariantMap& state) {
  Panel::restoreState(state);
  details_->setChecked(state.value(detailsKey).toBool());
}

QWidget* WhyDock::makeButtons(QAction* recompute, QAction* save) {
  auto* row = new QWidget(this);
  auto* layout = withMargins(new QHBoxLayout(row), {6, 4, 6, 4});
  toForward_ = named(new QToolButton(this), "why-to-forward");
  toForward_->setText(tr("Go to Its &Forward Op"));
  toForward_->setToolTip(tr("The op of the forward whose derivative made this value"));
  toForward_->setFocusPolicy(Qt::StrongFocus);
  toForward_->hide();
  for (auto* action : {recompute, save}) layout->addWidget(commandButton(action, row));
  layout->addStretch(1);
  auto* above = withMargins(new QHBoxLayout, {6, 4, 6, 0});  // a line of its own: the dock is narrow
  above->addWidget(toForward_);
  above->addStretch(1);
  auto* all = new QWidget(this);
  auto* lines = withMargins(new QVBoxLayout(all), {}, 0);
  lines->addLayout(above);
  lines->addWidget(row);
  return all;
}

void WhyDock::makeVerdict() {
  verdictFrame_ = new QFrame(this);
  verdictFrame_->setFrameShape(QFrame::StyledPanel);
  verdict_ = named(new WrappedLabel(verdictFrame_), "what-if", tr("What the other choice would change"));
  verdict_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  verdict_->setFocusPolicy(Qt::StrongFocus);
  adopt_ = named(new QPushButton(tr("Ad&opt"), verdictFrame_), "what-if-adopt");
  adopt_->setToolTip(
      tr("Goes on with the traces of this choice; breakpoints and watches are kept, the run goes back to its start.\n"
         "In your Python: torch.utils.checkpoint.checkpoint(part, input) around the part that is recomputed"));
  auto* drop = new QPushButton(tr("&Discard"), verdictFrame_);
  drop->setToolTip(tr("Leaves everything as it is"));
  auto* buttons = new QHBoxLayout;
  buttons->addWidget(adopt_);
  auto* compare = named(new QPushButton(tr("&Compare Traces"), verdictFrame_), "what-if-compare");
  compare->setToolTip(tr("Shows the traces of now and of this choice side by side"));
  buttons->addWidget(drop);
  buttons->addWidget(compare);
  buttons->addStretch(1);
  for (auto* button : {adopt_, drop, compare}) button->setAutoDefault(true);  // Enter presses them as in a dialog
  auto* layout = withMargins(new QVBoxLayout(verdictFrame_), {8, 6, 8, 6});
  layout->addWidget(verdict_);
  layout->addLayout(buttons);
  equalLayers_ = named(new QCheckBox(tr("In all e&qual layers"), verdictFrame_), "what-if-equal");
  equalLayers_->setToolTip(tr("The same choice in every layer that is equal to the one of the chosen value"));
  layout->addWidget(equalLayers_);
  layout->addWidget(makeBudget());
  connect(equalLayers_, &QCheckBox::toggled, this, [this] {
    if (wish_.isOfALayer) askWish(wish_);
  });
  verdictFrame_->hide();
  connect(drop, &QPushButton::clicked, this, &WhyDock::dropVerdict);
  connect(compare, &QPushButton::clicked, this, [this] {
    if (candidate_) Q_EMIT compareRequested(candidate_, candidateTitle_);
  });
  connect(adopt_, &QPushButton::clicked, this, [this] {
    if (const auto candidate = candidate_) context_.controller->adopt(candidate, candidateTitle_);
    dropVerdict();
  });
}

QWidget* WhyDock::makeAdopted() {
  adoptedRow_ = new QWidget(this);
  adopted_ = named(new WrappedLabel(adoptedRow_), "what-if-adopted");
  auto* layout = withMargins(new QHBoxLayout(adoptedRow_), {6, 4, 6, 0});
  layout->addWidget(adopted_, 1);
  adoptedRow_->hide();
  return adoptedRow_;
}

void WhyDock::showAdopted() {
  const auto title = context_.controller->adopted();
  adopted_->setText(tr("Adopted: %1").arg(title));
  adoptedRow_->setVisible(!title.isEmpty());
}

void WhyDock::setUndo(QAction* undo) {
  auto* button = commandButton(undo, adoptedRow_);
  button->setObjectName(QStringLiteral("what-if-undo"));
  adoptedRow_->layout()->addWidget(button);
  setTabOrder(tree_, button);  // it comes later than all that is below it
}

void WhyDock::refresh() {
  const auto open = document();
  const auto& selection = *context_.selection;
  if (!open || !selection.op()) {
    toForward_->hide();
    card_->clear();
    return model_->show(nullptr, {});
  }
  const auto work = [this, op = selection.op(), value = selection.value()](
                        const QuestionContext& context, const Progress& progress) -> Worker::Deliver {
    auto report = std::make_shared<WhyReport>(reportWhy(context.document, op, value, progress));
    return [this, report] { show(*report); };
  };
  ask(Asked::inSight, whyQuestion, {}, work);
}

void WhyDock::forget() {
  model_->show(nullptr, {});
  card_->clear();
  toForward_->hide();
  dropVerdict();
}

QString WhyDock::emptyText() const {
  if (context_.selection->op()) return {};  // the card says it
  return unlessClosed(tr("Select an op to see why its values are saved, or have no gradient"));
}

void WhyDock::activate(const QModelIndex& row) {
  if (opOf(row) != context_.selection->op()) Panel::activate(row);
}

void WhyDock::show(const WhyReport& report) {
  if (report.op != context_.selection->op()) return;
  const auto forward = report.values.empty() ? BoundSymbolId() : report.values.front().backward.forward;
  toForward_->disconnect(this);
  connect(toForward_, &QToolButton::clicked, this, [this, forward] { Q_EMIT jumpRequested(forward); });
  toForward_->setVisible(forward.valid());
  for (const auto& value : report.values)
    if (const auto why = againstRecomputing(*document()->analysis->document, value.saved, context_.notes);
        !why.isEmpty())
      Q_EMIT nothingGained(value.saved.value, why);
  card_->show(context_.controller->document(), report);
  model_->show(context_.controller->document(), report, context_.notes);
  tree_->expandToDepth(1);
}

QWidget* WhyDock::makeBudget() {
  budgetRow_ = new QWidget(verdictFrame_);
  auto* layout = withMargins(new QHBoxLayout(budgetRow_), {});
  budget_ = named(new QSlider(Qt::Horizontal, budgetRow_), "what-if-budget",
                  tr("How much may be saved: to the left less memory, to the right less time"));
  budget_->setRange(0, budgetSteps);
  budget_->setPageStep(2);
  budget_->setTickPosition(QSlider::TicksBelow);
  auto* memory = new QLabel(tr("less memory"), budgetRow_);
  memory->setBuddy(budget_);
  layout->addWidget(memory);
  layout->addWidget(budget_, 1);
  layout->addWidget(new QLabel(tr("less time"), budgetRow_));
  connect(budget_, &QSlider::valueChanged, &budgetSoon_, qOverload<>(&QTimer::start));
  return budgetRow_;
}

void WhyDock::recompute() {
  const auto& document = context_.controller->document();
  if (!document) return;
  const auto value = savedValueOf(*document, context_.selection->op(), context_.selection->value());
  if (!value) return;
  const auto name = nameOf(*document->analysis->document, value, context_.notes);
  tryWish({tr("If %1 is recomputed").arg(name),
           [value](const OpenDocument& open) { return recomputing(*open.analysis, value); }, true});
}

void WhyDock::save() {
  const auto& document = context_.controller->document();
  if (!document) return;
  const auto op = context_.selection->op();
  const auto& tables = *document->analysis->document;
  const auto outputs = tables.outputs(op);
  const auto name = outputs.empty() || !outputs[0] ? tr("it") : nameOf(tables, outputs[0], context_.notes);
  tryWish({tr("If %1 is saved").arg(name), [op](const OpenDocument& open) { return saving(*open.analysis, op); }});
}

void WhyDock::checkpointBlocks() {
  if (!context_.controller->document()) return;
  tryWish(
      {tr("If each block is recomputed from its input, as with torch.utils.checkpoint"), [](const OpenDocument& open) {
         return checkpointing(*open.analysis, listOfBlocks(*open.analysis, open.saved));
       }});
}

void WhyDock::tryBudgets() {
  if (!context_.controller->document()) return;
  leastSaved_ = mostSaved_ = -1;
  const QSignalBlocker still(budget_);
  budget_->setValue(budgetSteps / 2);
  tryBudget(budget_->value());
}

void WhyDock::tryBudget(int step) {
  const auto least = leastSaved_, most = mostSaved_;
  const auto title = tr("If only as much is saved as the slider says");
  const auto work = [this, title, step, least, most](const QuestionContext& context,
                                                     const Progress& progress) -> Worker::Deliver {
    const auto& analysis = *context.document.analysis;
    const auto measures = context.runner ? context.runner->measures() : std::vector<OpMeasure>();
    const auto at = [&](PartitionOptions::Kind kind, std::optional<std::int64_t> bytes) {
      auto partition = PartitionOptions();
      partition.kind = kind;
      partition.budget = bytes;
      return context.engine.whatIf(analysis, partition, measures, progress);
    };
    auto answer = std::make_shared<Answer>();
    answer->least = least >= 0 ? least : at(PartitionOptions::minCut, {}).after.savedBytes;
    answer->most = most >= 0 ? most : at(PartitionOptions::defaultKind, {}).after.savedBytes;
    const auto budget = answer->least + (answer->most - answer->least) * step / budgetSteps;
    answer->whatIf = at(PartitionOptions::minCut, budget);
    answer->memory = std::make_shared<const MemoryTimeline>(memoryTimeline(*answer->whatIf.analysis));
    return [this, title, answer] {
      leastSaved_ = answer->least;
      mostSaved_ = answer->most;
      wish_ = {};
      showVerdict(title, *answer);
    };
  };
  ask(Asked::anyhow, whatIfQuestion, title, work, [this](const QString& message) {
    if (!message.isEmpty()) Q_EMIT failed(message);
  });
}

void WhyDock::tryWish(const Wish& wish) {
  dropVerdict();
  const QSignalBlocker still(equalLayers_);
  equalLayers_->setChecked(false);
  leastSaved_ = mostSaved_ = -1;
  askWish(wish);
}

void WhyDock::askWish(const Wish& wish) {
  const auto work = [this, wish, equal = equalLayers_->isChecked()](const QuestionContext& context,
                                                                    const Progress& progress) -> Worker::Deliver {
    const auto& analysis = *context.document.analysis;
    const auto measures = context.runner ? context.runner->measures() : std::vector<OpMeasure>();
    const auto partition = wish.partition(context.document);
    const auto layers = wish.isOfALayer ? inEqualLayers(analysis, partition) : partition;
    auto answer = std::make_shared<Answer>();
    answer->whatIf = context.engine.whatIf(analysis, equal ? layers : partition, measures, progress);
    answer->memory = std::make_shared<const MemoryTimeline>(memoryTimeline(*answer->whatIf.analysis));
    return [this, wish, answer, hasLayers = layers != partition] {
      wish_ = wish;
      wish_.isOfALayer = hasLayers;
      showVerdict(wish.title, *answer);
    };
  };
  ask(Asked::anyhow, whatIfQuestion, wish.title, work, [this](const QString& message) {
    if (!message.isEmpty()) Q_EMIT failed(message);
  });
}

void WhyDock::showVerdict(const QString& title, const Answer& shown) {
  const auto& answer = shown.whatIf;
  candidate_ = answer.analysis;
  candidateTitle_ = title;
  QStringList lines{title};
  lines << changeText(tr("saved"), answer.before.savedBytes, answer.after.savedBytes);
  lines << changeText(tr("peak"), answer.before.peakBytes, answer.after.peakBytes);
  lines << tr("ops run again: %1 \u2192 %2").arg(answer.before.recomputedOps).arg(answer.after.recomputedOps);
  lines << (answer.measured ? tr("time: %1%2, measured in this run") : tr("time: %1%2, estimated from bytes moved"))
               .arg(answer.extraSeconds < 0 ? QString() : QStringLiteral("+"), timeText(answer.extraSeconds));
  verdict_->setText(lines.join(QLatin1Char('\n')));
  equalLayers_->setVisible(wish_.isOfALayer);
  budgetRow_->setVisible(leastSaved_ >= 0);
  Q_EMIT triedChanged(shown.memory, candidate_->forward.ops.size());
  const bool isAtWork = verdictFrame_->isAncestorOf(focusWidget()) && verdictFrame_->isVisible();
  verdictFrame_->show();
  if (!isAtWork)
    verdict_->setFocus();  // to be read, with the buttons one Tab away: Enter, pressed a moment late, must not restart
                           // the run
}

void WhyDock::dropVerdict() {
  if (candidate_) Q_EMIT triedChanged(nullptr, 0);
  candidate_.reset();
  budgetSoon_.stop();
  const bool hadFocus = verdictFrame_->isAncestorOf(focusWidget());
  verdictFrame_->hide();
  if (hadFocus) tree_->setFocus();
}

}  // namespace retrograd::views
