#include "views/dialogs/compare_values_dialog.h"

#include <QHeaderView>
#include <QVBoxLayout>

#include "views/session/own_names.h"
#include "views/text/format.h"
#include "views/widgets/controls.h"
#include "views/widgets/item_view.h"

namespace retrograd::views {
namespace {

/// Contents as an operand has them before the op, an output after it.
struct Contents {
  TensorData data;
  TensorStatistics statistics;
};

Contents contentsOf(const QuestionContext& context, const ValuePlace& place, const Progress& progress) {
  const auto& document = *context.document.analysis->document;
  const auto operands = document.operands(place.op);
  const bool isOperand = std::ranges::find(operands, place.value) != operands.end();
  const auto side = isOperand ? Moment::Side::before : Moment::Side::after;
  auto moment = context.runner->at(place.op, progress);
  if (!moment->state(place.value, side).present) moment = context.runner->of(place.value, progress);
  return {moment->contents(place.value, side), moment->statistics(place.value, side)};
}

QString elementText(const TensorMeta& meta, std::int64_t place) {
  QStringList indices;
  for (auto dim = meta.sizes.size(); dim-- > 0;) {
    indices.prepend(QString::number(place % meta.sizes[dim]));
    place /= meta.sizes[dim];
  }
  return QLatin1Char('[') + indices.join(QStringLiteral(", ")) + QLatin1Char(']');
}

}  // namespace

struct CompareValuesDialog::Answer {
  Contents a, b;
  ValueDifference difference;
};

CompareValuesDialog::CompareValuesDialog(ViewContext context, ValuePlace a, ValuePlace b, QWidget* parent)
    : QDialog(parent), context_(context), a_(a), b_(b), summary_(textLabel({}, this)), table_(new QTreeWidget(this)) {
  setObjectName(QStringLiteral("compare-values"));
  const auto& document = *context_.controller->document()->analysis->document;
  const auto name = [&](const ValuePlace& place) {
    return fullNameOf(document, place.value, context_.notes) + tr(" at #%1").arg(place.op.index);
  };
  setWindowTitle(tr("Compare Values"));
  summary_->setObjectName(QStringLiteral("compare-values-summary"));
  summary_->setText(tr("Comparing..."));
  named(table_, "compare-values-table", tr("Two values compared"));
  table_->setRootIsDecorated(false);
  table_->setHeaderLabels({tr("Number"), name(a), name(b)});
  for (const int column : {1, 2}) table_->headerItem()->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
  table_->header()->setStretchLastSection(false);  // both columns of numbers are next to each other
  addCopy(*table_);
  auto* buttons = dialogButtons(QDialogButtonBox::Close, this);
  connect(context_.controller, &DocumentController::documentAboutToChange, this, &QDialog::reject);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(summary_);
  layout->addWidget(table_, 1);
  layout->addWidget(buttons);
  resize(620, 420);
  const auto question = [this, a, b](const QuestionContext& context, const Progress& progress) -> Worker::Deliver {
    if (!context.runner) throw Error(ErrorCode::badUse, "the document cannot be run");
    auto answer = std::make_shared<Answer>();
    answer->a = contentsOf(context, a, progress);
    answer->b = contentsOf(context, b, progress);
    answer->difference = context.engine.compareValues(answer->a.data, answer->b.data);
    return [this, answer] { show(*answer); };
  };
  context_.controller->questions().ask(
      this, QStringLiteral("compare values"), tr("Comparing two values"), question, [this](const QString& message) {
        summary_->setText(message.isEmpty() ? tr("Cancelled") : QStringLiteral("! ") + message);
      });
}

void CompareValuesDialog::show(const Answer& answer) {
  const auto add = [this](const QString& label, const QString& a, const QString& b) {
    auto* row = new QTreeWidgetItem(table_, {label, a, b});
    for (const int column : {1, 2}) row->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
  };
  const auto number = [&](const QString& label, double TensorStatistics::* field) {
    add(label, numberText(answer.a.statistics.*field), numberText(answer.b.statistics.*field));
  };
  add(tr("Type"), typeText(answer.a.data.meta), typeText(answer.b.data.meta));
  number(tr("Min"), &TensorStatistics::min);
  number(tr("Max"), &TensorStatistics::max);
  number(tr("Mean"), &TensorStatistics::mean);
  number(tr("Std"), &TensorStatistics::standardDeviation);
  number(tr("Norm"), &TensorStatistics::norm);
  add(tr("NaN"), QString::number(answer.a.statistics.nan), QString::number(answer.b.statistics.nan));
  add(tr("Inf"), QString::number(answer.a.statistics.inf), QString::number(answer.b.statistics.inf));
  add(tr("Zeros"), QString::number(answer.a.statistics.zeros), QString::number(answer.b.statistics.zeros));
  const auto& d = answer.difference;
  if (!d.failure.empty()) {
    const bool sameType = typeText(answer.a.data.meta) == typeText(answer.b.data.meta);
    summary_->setText(sameType ? tr("They cannot be compared element by element: %1").arg(toQt(d.failure))
                               : tr("Their types differ, so their elements cannot be compared; the statistics can"));
  } else {
    add(tr("Largest difference"), numberText(d.largest),
        d.largest > 0 ? tr("at %1").arg(elementText(answer.a.data.meta, d.place)) : QString());
    add(tr("Mean difference"), numberText(d.mean), {});
    add(tr("Relative difference"), numberText(d.relative), {});
    add(tr("Cosine"), numberText(d.cosine), {});
    summary_->setText(d.identical                            ? tr("They are the same, bit for bit")
                      : d.different == 0 && d.oneFinite == 0 ? tr("Their elements are equal")
                                                             : tr("%1 of %2 elements differ, by %3 at most")
                                                                   .arg(d.different + d.oneFinite)
                                                                   .arg(answer.a.data.meta.elements())
                                                                   .arg(numberText(d.largest)));
  }
  for (int column = 0; column < 3; ++column) table_->resizeColumnToContents(column);
}

}  // namespace retrograd::views
