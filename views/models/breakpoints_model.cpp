#include "views/models/breakpoints_model.h"

#include <array>

#include "views/session/own_names.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

constexpr std::array<TableColumn, BreakpointsModel::columns> breakpointColumns{
    {{"Where"}, {"Condition"}, {"Hits"}, {"Op"}}};

using Where = Breakpoint::Where;
using When = Breakpoint::When;

QString conditionText(const Breakpoint& breakpoint) {
  switch (breakpoint.when) {
    case When::always: return tr("always");
    case When::nan: return tr("NaN");
    case When::bad: return tr("NaN or Inf");
    case When::norm: return tr("norm > %1").arg(numberText(breakpoint.limit));
    case When::largest: return tr("largest > %1").arg(numberText(breakpoint.limit));
    case When::meta: return tr("shape or dtype differs");
  }
  return {};
}

}  // namespace

BreakpointsModel::BreakpointsModel(QObject* parent) : TableModel(breakpointColumns, parent) {}

void BreakpointsModel::set(std::shared_ptr<const OpenDocument> document, std::vector<Breakpoint> breakpoints) {
  const bool sameRows = document == document_ && breakpoints.size() == breakpoints_.size();
  if (!sameRows) beginResetModel();
  document_ = std::move(document);
  breakpoints_ = document_ ? std::move(breakpoints) : std::vector<Breakpoint>();
  hits_.clear();
  if (!sameRows) return endResetModel();
  // The same rows, one of them switched: the view's current row stays.
  refreshRows();
}

void BreakpointsModel::setHits(std::vector<std::int64_t> hits) {
  if (hits == hits_) return;
  hits_ = std::move(hits);
  if (!breakpoints_.empty())
    Q_EMIT dataChanged(index(0, BreakpointsModel::hits), index(rowCount() - 1, BreakpointsModel::hits));
}

BoundSymbolId BreakpointsModel::placeOf(int row) const {
  if (row < 0 || row >= rowCount()) return {};
  const auto& breakpoint = breakpoints_[row];
  if (breakpoint.where == Where::op) return breakpoint.op;
  const auto& analysis = *document_->analysis;
  for (auto candidate : analysis.joint.ops)
    if (concerns(analysis, breakpoint, candidate)) return candidate;
  return {};
}

QString BreakpointsModel::whereText(const Breakpoint& breakpoint) const {
  switch (breakpoint.where) {
    case Where::op: return placeText(*document_, breakpoint.op);
    case Where::opKind: return tr("every %1").arg(toQt(breakpoint.text));
    case Where::module: return tr("module %1").arg(toQt(breakpoint.text));
    case Where::value: return tr("value %1").arg(nameOf(*document_->analysis->document, breakpoint.value, notes_));
    case Where::anywhere: return tr("any op");
  }
  return {};
}

QString BreakpointsModel::hitsText(int row) const {
  const auto i = static_cast<std::size_t>(row);
  const auto met = i < hits_.size() ? hits_[i] : 0;
  const auto skip = breakpoints_[i].skip;
  return skip > 0 ? tr("%1, first %2 pass").arg(met).arg(skip) : QString::number(met);
}

QString BreakpointsModel::opText(const Breakpoint& breakpoint) const {
  const auto& tables = *document_->analysis->document;
  if (breakpoint.where == Where::op) return callOf(tables, breakpoint.op, notes_);  // the number is in the first column
  const auto maker = breakpoint.where == Where::value ? tables.value(breakpoint.value).producer : BoundSymbolId();
  return maker ? numberedCallOf(tables, maker, notes_) : QString();
}

QVariant BreakpointsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || !document_) return {};
  const auto& breakpoint = breakpoints_[index.row()];
  if (role == Qt::CheckStateRole && index.column() == where) return breakpoint.enabled ? Qt::Checked : Qt::Unchecked;
  if (role == Qt::ToolTipRole && index.column() == where) return toQt(describe(*document_->analysis, breakpoint));
  if (role == Qt::EditRole && index.column() == condition) return toQt(describeCondition(breakpoint));
  if (role == Qt::ToolTipRole && index.column() == condition)
    return tr("%1\nDouble click or F2 edits it: nan, inf, norm > X, max > X or meta; then after N to let N hits pass.\n"
              "Without words it always stops")
        .arg(conditionText(breakpoint));
  if (role != Qt::DisplayRole && role != Qt::ToolTipRole) return {};
  switch (index.column()) {
    case where: return whereText(breakpoint);
    case condition: return conditionText(breakpoint);
    case hits: return hitsText(index.row());
    default: return opText(breakpoint);
  }
}

bool BreakpointsModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (!index.isValid()) return false;
  if (role == Qt::EditRole && index.column() == condition) {
    Q_EMIT conditionRequested(index.row(), value.toString());
    return true;
  }
  if (role != Qt::CheckStateRole || index.column() != where) return false;
  Q_EMIT enableRequested(index.row(), value.toInt() == Qt::Checked);
  return true;
}

Qt::ItemFlags BreakpointsModel::flags(const QModelIndex& index) const {
  const auto flags = TableModel::flags(index);
  if (index.isValid() && index.column() == where) return flags | Qt::ItemIsUserCheckable;
  return index.isValid() && index.column() == condition ? flags | Qt::ItemIsEditable : flags;
}

}  // namespace retrograd::views
