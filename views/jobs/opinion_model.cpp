#include "views/jobs/opinion_model.h"

#include <algorithm>

#include "views/text/format.h"
#include "views/widgets/dock_tree.h"

namespace retrograd::views {
namespace {

QString sizeText(const TensorVerdict& verdict) {
  if (!verdict.failure.empty()) return toQt(verdict.failure);
  return tr("off by %1, tolerance %2, largest element %3")
      .arg(verdict.deviation, 0, 'g', 3)
      .arg(verdict.tolerance, 0, 'g', 3)
      .arg(verdict.scale, 0, 'g', 3);
}

QStandardItem* addRow(QStandardItem* parent, const QString& what, const QString& detail, BoundSymbolId op = {},
                      int line = 0) {
  QList<QStandardItem*> row;
  for (const auto& text : {what, detail}) {
    auto* item = textCell(text);
    item->setTextAlignment(Qt::AlignLeft | Qt::AlignTop);
    if (op) item->setData(static_cast<int>(op.index), opRole);
    if (line > 0) item->setData(line, OpinionModel::lineRole);
    row << item;
  }
  parent->appendRow(row);
  return row.front();
}

}  // namespace

OpinionModel::OpinionModel(QObject* parent) : QStandardItemModel(0, columnCount, parent) {
  setHorizontalHeaderLabels({tr("Gradient"), tr("Difference")});
}

void OpinionModel::show(const SecondOpinion& opinion, const std::vector<BoundSymbolId>& places) {
  removeRows(0, rowCount());
  auto* root = invisibleRootItem();
  for (std::size_t i = 0; i < opinion.findings.size(); ++i) {
    const auto& finding = opinion.findings[i];
    auto* row = addRow(root, finding.gradient.empty() ? tr("backward") : toQt(finding.gradient), toQt(finding.what),
                       places[i], finding.line);
    if (!finding.op.empty())
      addRow(row, tr("op"), tr("%1, line %2 of the job's backward").arg(toQt(finding.op)).arg(finding.line), {},
             finding.line);
    if (!finding.source.empty()) addRow(row, tr("Python"), toQt(finding.source), places[i], finding.line);
  }
  for (const auto& verdict : opinion.jobReferenced)
    if (!verdict.good()) addRow(root, toQt(verdict.name), sizeText(verdict));
  if (const auto parting = sentenceOf(opinion.parting); !parting.empty()) addRow(root, tr("reference"), toQt(parting));
  if (opinion.compared + opinion.none > 0)
    addRow(root, tr("compared"),
           tr("gradients by value: %1; without a gradient in the job and here: %2")
               .arg(opinion.compared)
               .arg(opinion.none));
  const auto& all = opinion.gradients;
  const auto isNearer = [](const TensorVerdict& a, const TensorVerdict& b) {
    return a.deviation * b.tolerance < b.deviation * a.tolerance;
  };
  if (const auto worst = std::ranges::max_element(all, isNearer); worst != all.end() && worst->good())
    addRow(root, tr("furthest"), toQt(worst->name) + QStringLiteral(": ") + sizeText(*worst));
  for (const auto& bad : opinion.health.bad)
    addRow(root, tr("not healthy"),
           tr("%1 has %2 NaN and %3 infinities among %4 elements")
               .arg(toQt(bad.name))
               .arg(bad.nan)
               .arg(bad.infinite)
               .arg(bad.elements));
  for (const auto& made : opinion.health.roots) addRow(root, tr("first made by"), toQt(made));
  if (!opinion.reason.empty()) addRow(root, tr("not compared"), toQt(opinion.reason));
  for (const auto& note : opinion.notes) addRow(root, tr("note"), toQt(note));
  if (opinion.verdict == SecondOpinion::Verdict::notPossible) return;
  if (opinion.drawn > 0)
    addRow(root, tr("values"),
           tr("drawn from the seed: load the job's weights and batch to compare what happened in the job"));
  if (opinion.verdict == SecondOpinion::Verdict::differs && !opinion.showsCuts)
    addRow(root, tr("may be right"),
           tr("where the model has an autograd.Function or a region under no_grad: the log has no Dynamo graph, which "
              "shows them"));
}

QString verdictText(const SecondOpinion& opinion) {
  const auto compile = toQt(opinion.compile);
  switch (opinion.verdict) {
    case SecondOpinion::Verdict::agrees:
      return opinion.passes()
                 ? tr("\u2713 %1: the job's backward agrees with the derived one").arg(compile)
                 : tr("\u2717 %1: the job's backward agrees with the derived one, and has NaN or infinities")
                       .arg(compile);
    case SecondOpinion::Verdict::differs:
      return tr("\u2717 %1: the job's backward DIFFERS from the derived one").arg(compile);
    case SecondOpinion::Verdict::notPossible: break;
  }
  return tr("%1: no second opinion is possible").arg(compile);
}

}  // namespace retrograd::views
