#include "views/models/problems_model.h"

#include <algorithm>

#include "views/models/tree_model.h"

namespace retrograd::views {
namespace {

QString severityText(Problem::Severity severity) {
  switch (severity) {
    case Problem::Severity::note: return QObject::tr("note");
    case Problem::Severity::warning: return QObject::tr("warning");
    case Problem::Severity::error: return QObject::tr("error");
  }
  return {};
}

bool sameProblem(const Problem& a, const Problem& b) {
  return a.message == b.message && a.place == b.place && a.op == b.op;
}

}  // namespace

void ProblemsModel::setDocument(const std::shared_ptr<const OpenDocument>& document) {
  beginResetModel();
  problems_.clear();
  hasRunProblem_ = false;
  if (document) {
    const auto& analysis = *document->analysis;
    problems_ = analysis.problems;
    // The analysis may or may not repeat what its file has said.
    for (const auto& problem : analysis.file.problems)
      if (std::none_of(problems_.begin(), problems_.end(), [&](const Problem& p) { return sameProblem(p, problem); }))
        problems_.push_back(problem);
    for (const auto& reason : analysis.dataDependent)
      problems_.push_back({Problem::Severity::note, "The traces hold for these inputs only: " + reason, {}, -1});
    std::stable_sort(problems_.begin(), problems_.end(),
                     [](const Problem& a, const Problem& b) { return a.severity > b.severity; });
  }
  endResetModel();
}

void ProblemsModel::setRunProblem(const QString& message, BoundSymbolId op) {
  if (message.isEmpty() && !hasRunProblem_) return;
  beginResetModel();
  if (hasRunProblem_) problems_.erase(problems_.begin());
  hasRunProblem_ = !message.isEmpty();
  if (hasRunProblem_)
    problems_.insert(problems_.begin(), {Problem::Severity::error, message.toStdString(), "run", op.index});
  endResetModel();
}

int ProblemsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(problems_.size());
}
int ProblemsModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : 3; }

QVariant ProblemsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto& problem = problems_[index.row()];
  if (role == opRole) return problem.op;
  if (role != Qt::DisplayRole && role != Qt::ToolTipRole) return {};
  if (index.column() == 0) return severityText(problem.severity);
  return QString::fromStdString(index.column() == 1 ? problem.place : problem.message);
}

QVariant ProblemsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  return section == 0 ? tr("Severity") : section == 1 ? tr("Place") : tr("Problem");
}

}  // namespace retrograd::views
