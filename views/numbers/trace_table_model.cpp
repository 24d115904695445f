#include "views/numbers/trace_table_model.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "views/models/tree_model.h"
#include "views/text/format.h"
#include "views/widgets/sorted_rows.h"

namespace retrograd::views {
namespace {

/// What a column says that no run changes.
QString textOf(const Document& document, BoundSymbolId op, int column) {
  const auto& bound = document.boundSymbol(op);
  const auto outputs = document.outputs(op);
  const auto first = outputs.empty() ? ValueId() : outputs[0];
  switch (column) {
    case TraceTableModel::number: return QStringLiteral("#%1").arg(op.index);
    case TraceTableModel::opName: return toQt(document.symbol(bound.symbol).name);
    case TraceTableModel::module: return bound.module ? toQt(document.text(bound.module)) : QString();
    case TraceTableModel::output: return first ? toQt(document.displayName(first)) : QString();
    case TraceTableModel::type: return first && document.value(first).meta ? typeText(document.meta(first)) : QString();
    default: return {};
  }
}

using Ops = std::vector<BoundSymbolId>;

/// Sorts positions of `ops` by `isBefore`, those that are equal in the order of the trace.
Ops sorted(const Ops& ops, const Progress& progress, const std::function<bool(std::size_t, std::size_t)>& isBefore) {
  std::vector<std::size_t> places(ops.size());
  std::iota(places.begin(), places.end(), std::size_t(0));
  std::ranges::stable_sort(places, [&, compared = std::size_t(0)](std::size_t a, std::size_t b) mutable {
    if (++compared % 4096 == 0) progress.check();
    return isBefore(a, b);
  });
  Ops result;
  result.reserve(ops.size());
  for (const auto place : places) result.push_back(ops[place]);
  return result;
}

Ops sortedByNumber(const Ops& ops, const std::vector<std::optional<double>>& keys, bool down,
                   const Progress& progress) {
  return sorted(ops, progress, [&](std::size_t a, std::size_t b) {
    if (!keys[a] || !keys[b]) return keys[a].has_value() && !keys[b];
    return down ? *keys[a] > *keys[b] : *keys[a] < *keys[b];
  });
}

Ops sortedByText(const Document& document, const Ops& ops, int column, bool down, const Progress& progress) {
  std::vector<QString> keys;
  keys.reserve(ops.size());
  for (const auto op : ops) keys.push_back(textOf(document, op, column));
  const auto texts = textOrder();
  return sorted(ops, progress, [&](std::size_t a, std::size_t b) {
    return texts.compare(keys[down ? b : a], keys[down ? a : b]) < 0;
  });
}

}  // namespace

void TraceTableModel::show(std::shared_ptr<const OpenDocument> document, TraceKind kind) {
  job_.cancel();
  beginResetModel();
  document_ = std::move(document);
  kind_ = kind;
  ops_ = document_ ? document_->trace(kind_).lines : Ops();
  endResetModel();
  if (column_ != number || order_ == Qt::DescendingOrder) arrange();
}

void TraceTableModel::update() {
  if (figureOf(column_) != OpFigure::none) arrange();
}

BoundSymbolId TraceTableModel::opAt(int row) const {
  return row >= 0 && row < rowCount() ? ops_[row] : BoundSymbolId();
}

int TraceTableModel::rowOf(BoundSymbolId op) const {
  const auto at = std::ranges::find(ops_, op);
  return at == ops_.end() ? -1 : static_cast<int>(at - ops_.begin());
}

bool TraceTableModel::isOfLastRun(const QModelIndex& index) const {
  const auto kind = figureOf(index.column());
  if (kind == OpFigure::none || !execution_.now().available) return false;
  const auto made = numbers_.madeAt(kind, opAt(index.row()));
  return made && *made >= execution_.now().position;
}

int TraceTableModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(ops_.size());
}

QVariant TraceTableModel::data(const QModelIndex& index, int role) const {
  const auto op = opAt(index.row());
  if (!op || !document_) return {};
  switch (role) {
    case Qt::DisplayRole:
    case Qt::ToolTipRole:
    case Qt::AccessibleTextRole: {
      const auto kind = figureOf(index.column());
      if (kind == OpFigure::none) return textOf(*document_->analysis->document, op, index.column());
      const auto number = numberText(kind, numbers_.number(kind, op));
      return role != Qt::DisplayRole && !number.isEmpty() && isOfLastRun(index) ? tr("%1 of the last run").arg(number)
                                                                                : number;
    }
    case Qt::TextAlignmentRole:
      return QVariant(index.column() >= figures ? Qt::AlignRight | Qt::AlignVCenter : Qt::AlignLeft | Qt::AlignVCenter);
    case opRole: return op.index;
    default: return {};
  }
}

QVariant TraceTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= columns) return {};
  const auto& figure = figureColumns()[figureOf(section)];
  if (role == Qt::ToolTipRole && section >= figures) return tr(figure.tip);
  if (role != Qt::DisplayRole) return {};
  static const std::array<const char*, figures> names{"#", "Op", "Module", "Output", "Type"};
  return tr(section < figures ? names[section] : figure.title);
}

void TraceTableModel::sort(int column, Qt::SortOrder order) {
  column_ = column >= 0 ? column : number;
  order_ = order;
  arrange();
}

void TraceTableModel::arrange() {
  if (!document_) return;
  const auto kind = figureOf(column_);
  std::vector<std::optional<double>> numbers;  // taken here: the run adds others meanwhile
  if (kind != OpFigure::none)
    for (const auto op : document_->trace(kind_).lines) numbers.push_back(numbers_.number(kind, op));
  job_.start([this, document = document_, trace = kind_, kind, column = column_, isDown = order_ == Qt::DescendingOrder,
              numbers = std::move(numbers)](const Progress& progress) -> PoolJob::Deliver {
    auto ops = document->trace(trace).lines;
    if (kind != OpFigure::none) ops = sortedByNumber(ops, numbers, isDown, progress);
    else if (column != number) ops = sortedByText(*document->analysis->document, ops, column, isDown, progress);
    else if (isDown) std::ranges::reverse(ops);
    return [this, ops = std::move(ops)] { setRows(ops); };
  });
}

void TraceTableModel::setRows(Ops ops) {
  Q_EMIT layoutAboutToBeChanged();
  const auto kept = persistentIndexList();
  Ops keptOps;
  for (const auto& index : kept) keptOps.push_back(opAt(index.row()));
  ops_ = std::move(ops);
  IdVector<BoundSymbolId, int> rows;
  if (!kept.isEmpty()) {
    rows.assign(document_->analysis->document->boundSymbolCount(), -1);
    for (std::size_t i = 0; i < ops_.size(); ++i) rows[ops_[i]] = static_cast<int>(i);
  }
  QModelIndexList now;
  for (qsizetype i = 0; i < kept.size(); ++i) {
    const auto op = keptOps[i];
    now << (op ? index(rows[op], kept[i].column()) : QModelIndex());
  }
  changePersistentIndexList(kept, now);
  Q_EMIT layoutChanged();
}

}  // namespace retrograd::views
