#include "views/docks/checks_dock.h"

#include <QAction>
#include <QVBoxLayout>

#include "core/derivation/gradient_of.h"
#include "core/stepping/op_range.h"
#include "views/findings/finding_sources.h"
#include "views/widgets/controls.h"
#include "views/widgets/dock_tree.h"
#include "views/widgets/elided_label.h"

namespace retrograd::views {
namespace {

const QString checkQuestion = QStringLiteral("check");

}  // namespace

ChecksDock::ChecksDock(ViewContext context, QAction* check, QAction* terms, QWidget* parent)
    : Panel(context, "checks", parent),
      model_(new ChecksModel(this)),
      tree_(new QTreeView(this)),
      range_(new QLineEdit(this)),
      summary_(new WrappedLabel(this)) {
  prepareTree(*tree_, model_, "checks", tr("What the check of a gradient found"), {.isSorted = true, .wraps = true});
  setWidths(*tree_, {{0, 190}});
  named(range_, "checks-range", tr("Ops whose gradient is checked"));
  range_->setPlaceholderText(tr("The selected op; or #12 to #20   ·   module layers.0   ·   all"));
  range_->setToolTip(tr(
      "Which ops to check as one: empty for the selected one, #12, a value's name, #12 to #20, module PATH, or all"));
  range_->setClearButtonEnabled(true);
  summary_->setObjectName(QStringLiteral("checks-summary"));
  auto* row = withMargins(new QHBoxLayout, {6, 4, 6, 4});
  row->addWidget(range_, 1);
  for (auto* action : {check, terms}) row->addWidget(commandButton(action, this));
  auto* layout = withMargins(new QVBoxLayout(this), {}, 0);
  layout->addLayout(row);
  auto* line = withMargins(new QHBoxLayout, {8, 0, 8, 4});
  line->addWidget(summary_);
  layout->addLayout(line);
  layout->addWidget(tree_, 1);
  connect(range_, &QLineEdit::returnPressed, check, &QAction::trigger);
  setList(tree_);
  forget();
}

void ChecksDock::forget() {
  model_->clear();
  summary_->setText(tr("No gradient was checked yet"));
}

ValueId ChecksDock::chosen() const {
  const auto& analysis = *context_.controller->document()->analysis;
  const auto value = context_.selection->chosenValue();
  const auto of = value ? valueOfGradient(analysis, value) : ValueId();
  return of ? of : value;
}

void ChecksDock::check() {
  auto words = range_->text().trimmed();
  if (words.isEmpty() && context_.selection->op()) words = QStringLiteral("#%1").arg(context_.selection->op().index);
  const auto work = [this, words = words.toStdString()](const QuestionContext& context,
                                                        const Progress& progress) -> Worker::Deliver {
    const auto ops = opRange(*context.document.analysis, words);
    const auto result = context.engine.checkGradients(*context.document.analysis, ops, progress);
    return [this, ops, result] {
      const auto& document = *context_.controller->document();
      model_->show(document, ops, result);
      tree_->expandAll();
      const auto range = rangeText(*document.analysis->document, ops);
      const bool isKnown = result.lostBackwards.empty();
      FindingBoard::of(*context_.controller)
          .set(QStringLiteral("check ") + range,
               findingsOf(result, range.toStdString(), ops.empty() ? BoundSymbolId() : ops.front()));
      summary_->setText(result.rows.empty() ? tr("%1: nothing flows in that has a gradient").arg(range)
                        : result.passed && !isKnown
                            ? tr("%1: the gradient is the derivative of these ops, but the file does not hold the "
                                 "backward that PyTorch runs for %2")
                                  .arg(range, QString::fromStdString(result.lostBackwards.front()))
                        : result.passed
                            ? tr("\u2713 The gradient of %1 is right").arg(range)
                            : tr("\u2717 The gradient of %1 is WRONG, or it is not smooth there").arg(range));
    };
  };
  askAloud(summary_, checkQuestion, tr("Checking the gradient"), tr("Checking..."), work);
}

void ChecksDock::terms() {
  const auto value = chosen();
  if (!value) return;
  const auto work = [this, value](const QuestionContext& context, const Progress& progress) -> Worker::Deliver {
    const auto& analysis = *context.document.analysis;
    const auto record = context.engine.record(
        analysis, context.runner ? context.runner->fills() : std::map<ValueId, double>(), progress);
    const auto result = gradientTerms(analysis, value, record);
    return [this, result] {
      const auto& document = *context_.controller->document();
      const auto name = nameOf(*document.analysis->document, result.value, context_.notes);
      if (!result.gradient) {
        model_->clear();
        return summary_->setText(tr("%1 has no gradient: the Why panel shows where it is cut off").arg(name));
      }
      model_->show(document, result, context_.notes);
      tree_->expandToDepth(0);
      const auto terms = result.terms.size() == 1 ? tr("1 term") : tr("%1 terms").arg(result.terms.size());
      summary_->setText(tr("The gradient of %1 is the sum of %2").arg(name, terms));
    };
  };
  askAloud(summary_, checkQuestion, tr("Recording a run"), tr("Recording a run..."), work);
}

}  // namespace retrograd::views
