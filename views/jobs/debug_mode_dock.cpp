#include "views/jobs/debug_mode_dock.h"

#include <QFileInfo>
#include <QVBoxLayout>
#include <limits>

#include "views/engine/torch_calls.h"
#include "views/text/format.h"
#include "views/widgets/controls.h"
#include "views/widgets/dock_tree.h"
#include "views/widgets/elided_label.h"
#include "views/widgets/sorted_rows.h"

namespace retrograd::views {
namespace {

constexpr double tolerance = 1e-5;  // as `retrograd numbers`

QString normsText(const DebugModeCall& call) {
  QStringList norms;
  for (const auto& tensor : call.outputs)
    norms << (tensor.hasNorm ? QString::number(tensor.norm, 'g', 9) : QStringLiteral("-"));
  return norms.join(QStringLiteral(", "));
}

double firstNorm(const DebugModeCall& call) {
  return call.outputs.empty() || !call.outputs.front().hasNorm ? std::numeric_limits<double>::quiet_NaN()
                                                               : call.outputs.front().norm;
}

}  // namespace

DebugModeDock::DebugModeDock(ViewContext context, QWidget* parent)
    : Panel(context, "recorded", parent),
      model_(new QStandardItemModel(0, columnCount, this)),
      table_(new QTreeView(this)),
      summary_(new WrappedLabel(this)) {
  model_->setHorizontalHeaderLabels(
      {tr("Op"), tr("Recorded norm"), tr("Replayed norm"), tr("Relative"), tr("Line of Python")});
  prepareTree(*table_, model_, "recorded", tr("Recorded numbers"), {.isFlat = true, .isSorted = true});
  setWidths(*table_, {{op, 220}, {recorded, 120}, {replayed, 120}, {relative, 90}});
  summary_->setObjectName(QStringLiteral("recorded-summary"));
  summary_->setContentsMargins(8, 4, 8, 4);
  auto* layout = withMargins(new QVBoxLayout(this), {}, 0);
  layout->addWidget(summary_);
  layout->addWidget(table_, 1);
  setList(table_);
  forget();
}

void DebugModeDock::load(const QString& path) {
  forget();
  const auto work = [this, path](const QuestionContext& context, const Progress& progress) -> Worker::Deliver {
    Answer answer;
    answer.recorded = readDebugMode(path.toStdString(), progress);
    if (answer.recorded.hashes)
      throw Error(
          ErrorCode::badUse,
          "holds hashes (hash_tensor), which say nothing but that tensors are equal; record norms: hash_fn=\"norm\"",
          path.toStdString());
    const auto& analysis = *context.document.analysis;
    answer.replayed = askDebugModeNumbers(analysis, progress);
    answer.comparison = compareNumbers(answer.recorded, answer.replayed, tolerance);
    if (answer.comparison.compared == 0)
      throw Error(ErrorCode::badUse, "no op of the one occurs in the other, so that nothing could be compared",
                  path.toStdString());
    for (const auto& call : answer.replayed.calls) {
      const auto id = call.position >= 0 ? analysis.joint.ops[call.position] : BoundSymbolId();
      answer.ops.push_back(id);
      answer.names.push_back(toQt(call.op) + (id ? QStringLiteral(" (#%1)").arg(id.index) : QString()));
    }
    return [this, answer = std::move(answer)] { show(answer); };
  };
  const auto name = QFileInfo(path).fileName();
  askAloud(summary_, QStringLiteral("recorded"), tr("Comparing with %1").arg(name),
           tr("Comparing with %1...").arg(name), work);
}

void DebugModeDock::show(const Answer& answer) {
  const auto& comparison = answer.comparison;
  const auto& first = comparison.first;
  int cause = -1, firstRow = -1;
  for (const auto& row : comparison.rows) {
    const auto* a = row.a ? &answer.recorded.calls[*row.a] : nullptr;
    const auto* b = row.b ? &answer.replayed.calls[*row.b] : nullptr;
    const auto none = std::numeric_limits<double>::quiet_NaN();
    auto line = a ? a->line : std::string();
    if (line.empty() && b) line = b->line;
    const bool differs = row.compared && row.difference > tolerance;
    const bool isCause = first && first->madeInB && row.b == first->madeInB;
    const QList<QStandardItem*> items{
        textCell((differs || isCause ? QStringLiteral("\u25c6 ") : QString()) +
                 (b ? answer.names[*row.b] : toQt(a->op))),
        numberCell(a ? normsText(*a) : tr("not recorded"), a ? firstNorm(*a) : none),
        numberCell(b ? normsText(*b) : tr("not run here"), b ? firstNorm(*b) : none),
        numberCell(row.compared ? numberText(row.difference) : QString(), row.compared ? row.difference : none),
        textCell(toQt(line))};
    for (auto* item : items) {
      if (b && answer.ops[*row.b]) item->setData(static_cast<int>(answer.ops[*row.b].index), opRole);
      if (!differs && !isCause) continue;
      auto font = item->font();
      font.setBold(true);
      item->setFont(font);
    }
    const int place = model_->rowCount();
    if (isCause) cause = place;
    if (differs && firstRow < 0) firstRow = place;
    if (differs && !isCause) differences_.push_back(place);
    model_->appendRow(items);
  }
  if (cause >= 0) differences_.insert(differences_.begin(), cause);
  QString text;
  if (first) {
    const auto at = first->madeInB.value_or(first->b);
    text = tr("\u25c6 The first difference is %1").arg(answer.names[at]);
    if (const auto& module = answer.replayed.calls[at].module; !module.empty()) text += tr(" in %1").arg(toQt(module));
    if (first->madeInA && first->aloneInA)
      text += tr("; the recording has %1 there").arg(toQt(answer.recorded.calls[*first->madeInA].op));
  } else {
    text = tr("\u2713 All %1 ops agree within %2").arg(comparison.compared).arg(tolerance);
  }
  if (comparison.onlyInA + comparison.onlyInB > 0)
    text += tr("; not paired: %1 recorded, %2 run here").arg(comparison.onlyInA).arg(comparison.onlyInB);
  summary_->setText(text);
  if (!differences_.empty()) choose(0);
  chosen_ = -1;  // the key begins at the first
  Q_EMIT changed();
}

void DebugModeDock::choose(int difference) {
  chosen_ = difference;
  const auto row = shownIn(*table_, model_->index(differences_[difference], 0));
  table_->setCurrentIndex(row);
  table_->scrollTo(row, QAbstractItemView::PositionAtCenter);
}

void DebugModeDock::nextDifference() {
  if (differences_.empty()) return;
  choose((chosen_ + 1) % static_cast<int>(differences_.size()));
  if (const auto at = opOf(table_->currentIndex())) Q_EMIT jumpRequested(at);
}

QString DebugModeDock::noDifference() const {
  return differences_.empty() ? unlessClosed(tr("No recorded number that differs is shown")) : QString();
}

void DebugModeDock::forget() {
  model_->removeRows(0, model_->rowCount());
  differences_.clear();
  chosen_ = -1;
  summary_->clear();
  Q_EMIT changed();
}

QString DebugModeDock::emptyText() const {
  return unlessClosed(tr("File > Load Recorded Numbers compares a recording of DebugMode with this model"));
}

}  // namespace retrograd::views
