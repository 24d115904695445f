#include "views/docks/findings_dock.h"

#include <QAction>
#include <QDockWidget>
#include <QHeaderView>
#include <QSplitter>
#include <QVBoxLayout>

#include "core/stepping/bad_places.h"
#include "views/findings/finding_sources.h"
#include "views/text/line_text.h"
#include "views/theme/tokens.h"
#include "views/widgets/controls.h"
#include "views/widgets/dock_tree.h"
#include "views/widgets/elided_label.h"

namespace retrograd::views {
namespace {

QString plainText(QString text) { return text.remove(QLatin1Char('&')); }

}  // namespace

FindingsDock::FindingsDock(ViewContext context, QAction* walk, QAction* check, QWidget* parent)
    : Panel(context, "findings", parent),
      board_(FindingBoard::of(*context.controller)),
      findings_(new FindingsModel(this)),
      list_(new FindingCards(context.theme, findings_, this)),
      walk_(walk),
      model_(new NanModel(this)),
      tree_(new QTreeView(this)),
      root_(new WrappedLabel(this)),
      way_(new QWidget(this)),
      summary_(new WrappedLabel(this)) {
  prepareTree(*tree_, model_, "findings", tr("The way to the root of a NaN or Inf"), {.wraps = true});
  setWidths(*tree_, {{0, 170}});
  summary_->setObjectName(QStringLiteral("findings-summary"));
  auto* row = withMargins(new QHBoxLayout, {6, 4, 6, 4}, tokens::gap);
  for (auto* action : {walk, check}) row->addWidget(commandButton(action, this));
  row->addWidget(summary_, 1);
  auto* layout = withMargins(new QVBoxLayout(this), {}, 0);
  layout->addLayout(row);
  auto* parts = new QSplitter(Qt::Vertical, this);
  parts->addWidget(list_);
  parts->addWidget(makeWay());
  for (int part : {0, 1}) parts->setStretchFactor(part, 1);
  parts->setChildrenCollapsible(false);
  layout->addWidget(parts, 1);
  prepareList();
  // All of a finding is in sight, in as many lines as that takes, however wide the columns become.
  connect(tree_->header(), &QHeaderView::sectionResized, tree_, &QTreeView::doItemsLayout, Qt::QueuedConnection);
  addList(tree_);
  setList(list_);
  connect(&board_, &FindingBoard::changed, this, &FindingsDock::list);
  selectByClick(tree_);
  for (auto signal : {&RunNumbers::badOpsChanged, &RunNumbers::changed})
    connect(&context_.controller->ahead().numbers(), signal, this, &FindingsDock::tell);
  connect(context_.execution, &ExecutionState::changed, this, &FindingsDock::tell);
  forget();
}

void FindingsDock::prepareList() {
  const auto claimAt = [this](const QModelIndex& card) { return findings_->claim(card.row()); };
  connect(list_, &FindingCards::led, this, [this, claimAt](const QModelIndex& card) { lead(claimAt(card)); });
  connect(list_, &FindingCards::acted, this, [this, claimAt](const QModelIndex& card) { act(claimAt(card)); });
}

QWidget* FindingsDock::makeWay() {
  named(root_, "findings-root", tr("The root of the NaN or Inf"));
  root_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  root_->setContentsMargins(tokens::gap, tokens::tight, tokens::gap, tokens::tight);
  auto* layout = withMargins(new QVBoxLayout(way_), {}, 0);
  layout->addWidget(root_);
  layout->addWidget(tree_, 1);
  return way_;
}

void FindingsDock::forget() {
  model_->show(nullptr, {});
  way_->hide();
  walked_ = false;
  list();
  tell();
}

void FindingsDock::list() {
  findings_->show(board_.entries(), context_.controller->document(),
                  [this](const Claim& claim) { return titleOf(claim); });
  if (auto* dock = qobject_cast<QDockWidget*>(parentWidget())) {
    const int rows = findings_->rowCount();
    dock->setWindowTitle(rows > 0 ? tr("Findings (%1)").arg(rows) : tr("Findings"));
  }
  updateEmptyText();
}

QString FindingsDock::titleOf(const Claim& claim) const {
  if (claim.command == "walk-to-root") return plainText(walk_->text());
  if (claim.command == "source") return tr("Show the Line");
  if (claim.command == "why") return tr("Show Why");
  if (claim.command == "checks") return tr("Show the Check");
  if (claim.command == "recorded-memory") return tr("Show the Chart");
  return claim.op ? tr("Go to the Op") : QString();
}

void FindingsDock::activate(const QModelIndex& row) {
  if (row.model() != findings_) return Panel::activate(row);
  act(Claim(findings_->claim(row.row())));  // a copy: the command may bring others
}

void FindingsDock::lead(const Claim& claim) {
  if (!claim.op) {
    if (!claim.command.empty()) Q_EMIT commandChosen(QString::fromStdString(claim.command));
    return;
  }
  Q_EMIT jumpRequested(claim.op);
  if (claim.value) context_.selection->selectValue(claim.value);
}

void FindingsDock::act(const Claim& claim) {
  if (claim.op) lead(claim);
  if (!claim.command.empty()) Q_EMIT commandChosen(QString::fromStdString(claim.command));
}

void FindingsDock::check() {
  const auto& open = context_.controller->document();
  open && open->analysis->file.recording ? checkStep() : ask({}, false);
}

void FindingsDock::checkStep() {
  walked_ = true;
  const auto work = [this](const QuestionContext& context, const Progress& progress) -> Worker::Deliver {
    const auto report = std::make_shared<Report>(context.engine.judgeStep(context.document.analysis, progress));
    return [this, report] {
      board_.setReport(FindingSources::ofStep(), *report);
      const auto decision = decide(*report);
      summary_->setText(
          decision.verdict == Verdict::pass
              ? tr("The step is right: %1").arg(toQt(coverageText(*report)))
              : QStringLiteral("%1: %2").arg(toQt(retrograd::name(decision.verdict)), toQt(decision.reason)));
      updateEmptyText();
    };
  };
  askAloud(summary_, QStringLiteral("step"), tr("Checking the step"), tr("Running the step again and comparing it..."),
           work);
}

void FindingsDock::tell() {
  if (walked_) return;
  const auto& open = document();
  const auto& stopped = context_.execution->now().bad;
  const auto& numbers = context_.controller->ahead().numbers();
  const auto first = numbers.firstBad();
  const auto op = first ? first : stopped.empty() ? BoundSymbolId() : *stopped.begin();
  updateEmptyText();
  if (!open) return summary_->setText({});
  if (!op)
    return summary_->setText(
        numbers.known() == 0 ? tr("The run was not looked at yet")
        : lookedAtAll()
            ? tr("No NaN or Inf was seen in the whole run")
            : tr("No NaN or Inf was seen in the ops that ran: %1 of %2").arg(numbers.known()).arg(numbers.size()));
  summary_->setText(tr("#%1 %2 made NaN or Inf").arg(op.index).arg(shortOpName(*open->analysis->document, op)));
}

bool FindingsDock::lookedAtAll() const {
  const auto& numbers = context_.controller->ahead().numbers();
  return numbers.size() > 0 && numbers.known() == numbers.size();
}

QString FindingsDock::emptyText() const {
  if (context_.controller->document() && lookedAtAll())
    return tr("Nothing was found in the whole run. Check the Run runs it again");
  return unlessClosed(
      tr("Nothing was found so far. Check the Run looks for NaN and Inf in a whole run; Walk to the Root leads from "
         "one to the op that made it"));
}

void FindingsDock::ask(ValueId value, bool select) {
  walked_ = true;
  const auto work = [this, value, select](const QuestionContext& context, const Progress& progress) -> Worker::Deliver {
    const auto way = std::make_shared<NanWalk>(walkNan(context, value, progress));
    const auto element = elementAtRoot(context, *way, progress);
    return [this, way, element, select] {
      show(*way, element);
      if (!select || !way->root) return;
      Q_EMIT jumpRequested(way->root);
      context_.selection->selectValue(way->path.back().value);
      Q_EMIT commandChosen(QStringLiteral("source"));
    };
  };
  askAloud(summary_, QStringLiteral("walk"), tr("Recording a run"), tr("Running the model to look for NaN and Inf..."),
           work);
}

void FindingsDock::show(const NanWalk& walk, const QString& element) {
  const auto& document = context_.controller->document();
  board_.set(QStringLiteral("run"), {});
  auto found = document ? claimsOf(*document->analysis, walk) : std::vector<Claim>();
  if (!found.empty() && !element.isEmpty()) found.front().sentence += "; " + element.toStdString();
  board_.set(QStringLiteral("walk"), std::move(found));
  model_->show(document, walk, context_.notes, element);
  std::vector<BoundSymbolId> way;
  for (const auto& step : walk.path) way.push_back(step.op);
  context_.selection->setWay(way);
  way_->setVisible(!walk.path.empty());
  root_->setText(document ? rootText(*document->analysis->document, walk, context_.notes, element) : QString());
  tree_->expandToDepth(0);
  tree_->scrollToTop();
  summary_->setText(walk.path.empty()         ? tr("Every value of the run is finite")
                    : walk.otherRoots.empty() ? tr("NaN or Inf: the root is below")
                                              : tr("NaN or Inf: %1 roots are below").arg(walk.otherRoots.size() + 1));
  updateEmptyText();
}

}  // namespace retrograd::views
