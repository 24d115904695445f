#include "views/numbers/trace_table_model.h"

#include <algorithm>
#include <array>

#include "views/models/tree_model.h"
#include "views/text/format.h"
#include "views/widgets/sorted_rows.h"

namespace retrograd::views {
namespace {

/// LineNumber::none for columns that are no numbers of a run.
LineNumber kindOf(int column) {
  switch (column) {
    case TraceTableModel::time: return LineNumber::time;
    case TraceTableModel::bytes: return LineNumber::bytes;
    case TraceTableModel::norm: return LineNumber::norm;
    case TraceTableModel::greatest: return LineNumber::greatest;
    case TraceTableModel::bad: return LineNumber::bad;
    case TraceTableModel::gradientNorm: return LineNumber::gradientNorm;
    default: return LineNumber::none;
  }
}

}  // namespace

void TraceTableModel::show(std::shared_ptr<const OpenDocument> document, TraceKind kind) {
  beginResetModel();
  document_ = std::move(document);
  kind_ = kind;
  ops_ = traceOps();
  arrange();
  endResetModel();
}

void TraceTableModel::update() {
  if (ops_.empty()) return;
  if (kindOf(column_) != LineNumber::none) sort(column_, order_);
  Q_EMIT dataChanged(index(0, time), index(rowCount() - 1, columns - 1));
}

BoundSymbolId TraceTableModel::opAt(int row) const { return row >= 0 && row < rowCount() ? ops_[static_cast<std::size_t>(row)] : BoundSymbolId(); }

int TraceTableModel::rowOf(BoundSymbolId op) const {
  const auto at = std::find(ops_.begin(), ops_.end(), op);
  return at == ops_.end() ? -1 : static_cast<int>(at - ops_.begin());
}

int TraceTableModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(ops_.size()); }

QString TraceTableModel::text(BoundSymbolId op, int column) const {
  const auto& document = *document_->analysis->document;
  const auto& bound = document.boundSymbol(op);
  const auto outputs = document.outputs(op);
  const auto first = outputs.empty() ? ValueId() : outputs[0];
  switch (column) {
    case number: return QStringLiteral("#%1").arg(op.index);
    case opName: return toQt(document.symbol(bound.symbol).name);
    case module: return bound.module ? toQt(document.text(bound.module)) : QString();
    case output: return first ? toQt(document.displayName(first)) : QString();
    case type: return first && document.value(first).meta ? typeText(document.meta(document.value(first).meta)) : QString();
    default: return numberText(kindOf(column), numbers_.number(kindOf(column), op));
  }
}

QVariant TraceTableModel::data(const QModelIndex& index, int role) const {
  const auto op = opAt(index.row());
  if (!op || !document_) return {};
  switch (role) {
    case Qt::DisplayRole:
    case Qt::ToolTipRole: return text(op, index.column());
    case Qt::TextAlignmentRole: return QVariant(index.column() >= time ? Qt::AlignRight | Qt::AlignVCenter : Qt::AlignLeft | Qt::AlignVCenter);
    case opRole: return op.index;
    default: return {};
  }
}

QVariant TraceTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole || section < 0 || section >= columns) return {};
  if (const auto kind = kindOf(section); kind != LineNumber::none) return titleOf(kind);
  static const std::array<const char*, 5> names{"#", "Op", "Module", "Output", "Type"};
  return tr(names[static_cast<std::size_t>(section)]);
}

void TraceTableModel::sort(int column, Qt::SortOrder order) {
  column_ = column >= 0 ? column : number;
  order_ = order;
  Q_EMIT layoutAboutToBeChanged();
  const auto kept = persistentIndexList();
  std::vector<BoundSymbolId> keptOps;
  for (const auto& index : kept) keptOps.push_back(opAt(index.row()));
  arrange();
  IdVector<BoundSymbolId, int> rows;
  if (document_ && !kept.isEmpty()) {
    rows.assign(document_->analysis->document->boundSymbolCount(), -1);
    for (std::size_t i = 0; i < ops_.size(); ++i) rows[ops_[i]] = static_cast<int>(i);
  }
  QModelIndexList now;
  for (qsizetype i = 0; i < kept.size(); ++i) {
    const auto op = keptOps[static_cast<std::size_t>(i)];
    now << (op ? index(rows[op], kept[i].column()) : QModelIndex());
  }
  changePersistentIndexList(kept, now);
  Q_EMIT layoutChanged();
}

std::vector<BoundSymbolId> TraceTableModel::traceOps() const { return document_ ? document_->trace(kind_).lines : std::vector<BoundSymbolId>(); }

void TraceTableModel::arrange() {
  if (!document_) return;
  ops_ = traceOps();
  const bool down = order_ == Qt::DescendingOrder;
  if (const auto kind = kindOf(column_); kind != LineNumber::none) {
    IdVector<BoundSymbolId, std::optional<double>> keys(document_->analysis->document->boundSymbolCount());
    for (auto op : ops_) keys[op] = numbers_.number(kind, op);
    std::stable_sort(ops_.begin(), ops_.end(), [&](BoundSymbolId a, BoundSymbolId b) {
      if (!keys[a] || !keys[b]) return keys[a].has_value() && !keys[b];
      return down ? *keys[a] > *keys[b] : *keys[a] < *keys[b];
    });
  } else if (column_ != number) {
    IdVector<BoundSymbolId, QString> keys(document_->analysis->document->boundSymbolCount());
    for (auto op : ops_) keys[op] = text(op, column_);
    const auto texts = textOrder();
    std::stable_sort(ops_.begin(), ops_.end(), [&](BoundSymbolId a, BoundSymbolId b) { return texts.compare(keys[down ? b : a], keys[down ? a : b]) < 0; });
  } else if (down) {
    std::reverse(ops_.begin(), ops_.end());
  }
}

}  // namespace retrograd::views
