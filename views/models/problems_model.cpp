#include "views/models/problems_model.h"

#include <algorithm>
#include <array>

#include "views/models/tree_model.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

constexpr std::array<TableColumn, ProblemsModel::columns> problemColumns{{{"Severity"}, {"Place"}, {"Problem"}}};

QString severityText(Problem::Severity severity) {
  switch (severity) {
    case Problem::Severity::note: return tr("note");
    case Problem::Severity::warning: return tr("warning");
    case Problem::Severity::error: return tr("error");
  }
  return {};
}

bool sameProblem(const Problem& a, const Problem& b) {
  return a.message == b.message && a.place == b.place && a.op == b.op;
}

}  // namespace

ProblemsModel::ProblemsModel(QObject* parent) : TableModel(problemColumns, parent) {}

void ProblemsModel::setDocument(const std::shared_ptr<const OpenDocument>& document) {
  beginResetModel();
  problems_.clear();
  hasRunProblem_ = false;
  if (document) {
    const auto& analysis = *document->analysis;
    problems_ = analysis.problems;
    // The analysis may or may not repeat what its file has said.
    for (const auto& problem : analysis.file.problems)
      if (std::ranges::none_of(problems_, [&](const Problem& p) { return sameProblem(p, problem); }))
        problems_.push_back(problem);
    for (const auto& reason : analysis.dataDependent)
      problems_.push_back({Problem::Severity::note, "The traces hold for these inputs only: " + reason, {}, -1});
    std::ranges::stable_sort(problems_, [](const Problem& a, const Problem& b) { return a.severity > b.severity; });
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

QVariant ProblemsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto& problem = problems_[index.row()];
  if (role == opRole) return problem.op;
  if (role != Qt::DisplayRole && role != Qt::ToolTipRole) return {};
  if (index.column() == 0) return severityText(problem.severity);
  return QString::fromStdString(index.column() == 1 ? problem.place : problem.message);
}

}  // namespace retrograd::views
