#include "views/models/breakpoints_model.h"

#include <algorithm>

#include "views/models/format.h"
#include "views/models/inspector_model.h"
#include "views/models/line_text.h"

namespace retrograd::views {

void BreakpointsModel::set(std::shared_ptr<const OpenDocument> document, const std::set<BoundSymbolId>& breakpoints) {
  beginResetModel();
  document_ = std::move(document);
  positions_.clear();
  if (document_)
    for (auto op : breakpoints)
      if (const auto position = document_->program.positionOf(op)) positions_.push_back(*position);
  std::sort(positions_.begin(), positions_.end());
  endResetModel();
}

BoundSymbolId BreakpointsModel::opAt(int row) const {
  return row >= 0 && row < rowCount() ? document_->program.opAt(positions_[static_cast<std::size_t>(row)]) : BoundSymbolId();
}

int BreakpointsModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(positions_.size()); }
int BreakpointsModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : 3; }

QVariant BreakpointsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto op = opAt(index.row());
  if (role == opRole) return op.index;
  if (role != Qt::DisplayRole && role != Qt::ToolTipRole) return {};
  const auto& document = *document_->analysis->document;
  const auto position = positions_[static_cast<std::size_t>(index.row())];
  const auto forward = document_->program.forwardSize();
  switch (index.column()) {
    case 0:
      return position < forward ? tr("forward %1").arg(position) : tr("backward %1").arg(position - forward);
    case 1:
      return lineOf(document, op, nullptr, true, false).text;
    default:
      return toQt(document.text(document.boundSymbol(op).module));
  }
}

QVariant BreakpointsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  return section == 0 ? tr("At") : section == 1 ? tr("Op") : tr("Module");
}

}  // namespace retrograd::views
