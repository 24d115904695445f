#include "views/jobs/opinion_model.h"

#include "views/text/format.h"
#include "views/widgets/dock_tree.h"

namespace retrograd::views {
namespace {

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
  const auto& report = opinion.report;
  for (const auto severity : {Severity::fault, Severity::suspicion, Severity::note})
    for (std::size_t i = 0; i < report.claims.size(); ++i) {
      const auto& claim = report.claims[i];
      if (claim.severity != severity) continue;
      const auto op = i < places.size() ? places[i] : BoundSymbolId();
      const auto line = i < places.size() ? opinion.places[i].line : 0;
      auto* row = addRow(root, toQt(claim.subject.empty() ? std::string(name(severity)) : claim.subject),
                         toQt(claim.sentence), op, line);
      if (line > 0) addRow(row, tr("op"), tr("line %1 of the job's backward").arg(line), {}, line);
      if (!claim.line.empty()) addRow(row, tr("Python"), toQt(claim.line), op, line);
    }
  addRow(root, tr("judged"), toQt(coverageText(report)));
  if (const auto* worst = furthest(report); worst && worst->good())
    addRow(root, tr("furthest"), toQt(worst->subject + ": " + textOf(*worst->measure)));
  for (const auto& one : report.notJudged) addRow(root, tr("not judged"), toQt(one.reason));
  for (const auto& note : report.notes) addRow(root, tr("note"), toQt(note));
}

QString verdictText(const SecondOpinion& opinion) {
  const auto decision = decide(opinion.report);
  const auto compile = toQt(opinion.compile);
  if (decision.verdict == Verdict::pass)
    return tr("\u2713 %1: the job's backward agrees with the derived one").arg(compile);
  const auto mark = decision.verdict == Verdict::fail ? QStringLiteral("\u2717 ") : QString();
  return mark + tr("%1: %2: %3").arg(compile, toQt(name(decision.verdict)), toQt(decision.reason));
}

}  // namespace retrograd::views
