#include "views/docks/stage_check_dock.h"

#include <QAction>
#include <QVBoxLayout>

#include "views/engine/pipeline_engine.h"
#include "views/stages/stage_plan.h"
#include "views/text/format.h"
#include "views/widgets/controls.h"
#include "views/widgets/dock_tree.h"
#include "views/widgets/elided_label.h"

namespace retrograd::views {
namespace {

const QString question = QStringLiteral("check");

}  // namespace

StageCheckDock::StageCheckDock(ViewContext context, QAction* check, QAction* cancel, QWidget* parent)
    : Panel(context, "stage-check", parent),
      model_(new StageCheckModel(this)),
      table_(new QTreeView(this)),
      summary_(new WrappedLabel(this)) {
  setObjectName(QStringLiteral("stage-check"));
  prepareTree(*table_, model_, "stage-check-table", tr("Stages and the whole model"),
              {.isFlat = true, .isSorted = true});
  using Model = StageCheckModel;
  setWidths(*table_, {{Model::name, 130}, {Model::what, 130}, {Model::verdict, 190}, {Model::difference, 78}});
  named(summary_, "stage-check-summary", tr("What the check found"));
  summary_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  auto* row = withMargins(new QHBoxLayout, {8, 4, 6, 4});
  row->addWidget(summary_, 1);
  for (auto* action : {check, cancel}) row->addWidget(commandButton(action, this));
  auto* layout = withMargins(new QVBoxLayout(this), {}, 0);
  layout->addLayout(row);
  layout->addWidget(table_, 1);
  connect(context_.stages, &StagePlan::changed, this, &StageCheckDock::planChanged);
  setList(table_);
  selectByClick(table_);
  clear(tr("The stages were not checked yet."));
}

void StageCheckDock::clear(const QString& text) {
  cut_.reset();
  model_->clear();
  summary_->setText(text);
}

QString StageCheckDock::emptyText() const {
  const auto& cut = context_.stages->cut();
  return unlessClosed(cut && cut->stages() > 1
                          ? tr("Check runs the stages and the whole model, and compares what they give")
                          : tr("The model is not cut: cut it in the panel Stages first"));
}

void StageCheckDock::planChanged() {
  updateEmptyText();
  const auto& cut = context_.stages->cut();
  if (!cut_ || (cut && cut->split.stages.size() == cut_->split.stages.size() && cut->cuts == cut_->cuts &&
                cut->request.options == cut_->request.options && cut->bench == cut_->bench))
    return;
  if (checking_) Panel::cancel(question);
  checking_ = false;
  clear(tr("The stages have changed: check again."));
  Q_EMIT changed();
}

void StageCheckDock::cancel() { Panel::cancel(question); }

void StageCheckDock::check() {
  const auto cut = context_.stages->cut();
  if (!cut) return;
  clear(tr("Running the stages..."));
  cut_ = cut;
  checking_ = true;
  Q_EMIT changed();
  const auto work = [this, cut](const QuestionContext& context, const Progress& progress) -> Worker::Deliver {
    auto* engine = context.engine.pipelines();
    if (!engine) throw Error(ErrorCode::badUse, "nothing here can run the model");
    auto found = engine->checkStages(context.document.analysis, cut->split, progress);
    return [this, cut, found = std::move(found)]() mutable {
      if (cut_ != cut) return;
      checking_ = false;
      const auto decision = decide(found);
      const bool passes = decision.verdict == Verdict::pass;
      summary_->setText(passes ? tr("\u2713 %1 stages give what the whole model gives: %2")
                                     .arg(cut->stages())
                                     .arg(toQt(found.notes.front()))
                               : QStringLiteral("\u2717 ") + toQt(decision.reason));
      model_->show(context_.controller->document(), std::move(found));
      Q_EMIT changed();
    };
  };
  ask(Asked::anyhow, question, tr("Checking the stages"), work, [this, cut](const QString& message) {
    if (cut_ != cut) return;
    checking_ = false;
    clear(message.isEmpty() ? tr("Cancelled.") : QStringLiteral("! ") + message);
    Q_EMIT changed();
  });
}

}  // namespace retrograd::views
