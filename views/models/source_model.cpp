#include "views/models/source_model.h"

#include <QFileInfo>
#include <QFont>
#include <array>

#include "core/trace/source.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

constexpr std::array<TableColumn, SourceLinesModel::columns> lineColumns{
    {{"Line", nullptr, true}, {"Ops", nullptr, true}, {"Source"}}};

constexpr std::array<TableColumn, FramesModel::columns> frameColumns{{{"Function"}, {"Line"}}};

}  // namespace

FramesModel::FramesModel(QObject* parent) : TableModel(frameColumns, parent) {}

void FramesModel::set(const SourceStack& stack) {
  beginResetModel();
  frames_.assign(stack.rbegin(), stack.rend());
  const auto* shown = shownFrame(stack);
  shown_ = shown ? static_cast<int>(stack.data() + stack.size() - 1 - shown) : -1;
  endResetModel();
}

QVariant FramesModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto& one = frame(index.row());
  const auto file = toQt(one.file);
  switch (role) {
    case Qt::DisplayRole:
      return index.column() == function ? toQt(one.function)
                                        : QStringLiteral("%1:%2").arg(QFileInfo(file).fileName()).arg(one.line);
    case Qt::ToolTipRole:
      return QStringLiteral("%1:%2, %3\n%4").arg(file).arg(one.line).arg(toQt(one.function), toQt(one.code));
    case Qt::FontRole: {
      QFont font;
      font.setItalic(true);
      // Those inside the one that the op is known by are PyTorch's.
      return index.row() < shown_ ? QVariant(font) : QVariant();
    }
    default: return {};
  }
}

SourceLinesModel::SourceLinesModel(QObject* parent) : TableModel(lineColumns, parent) {}

void SourceLinesModel::set(const QStringList& lines, OpsByLine ops) {
  if (lines == lines_ && ops == ops_) return;
  beginResetModel();
  lines_ = lines;
  spans_ = pythonSpans(lines);
  ops_ = std::move(ops);
  current_ = 0;
  width_ = 0;
  for (const auto& line : lines_) width_ = std::max(width_, static_cast<int>(line.size()));
  endResetModel();
}

void SourceLinesModel::setCurrent(int line) {
  const int before = currentRow();
  current_ = line;
  for (int row : {before, currentRow()})
    if (row >= 0) Q_EMIT dataChanged(index(row, 0), index(row, columns - 1));
}

const std::vector<BoundSymbolId>& SourceLinesModel::opsAt(int row) const {
  static const std::vector<BoundSymbolId> none;
  const auto found = ops_.find(row + 1);
  return found == ops_.end() ? none : found->second;
}

QVariant SourceLinesModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const bool current = index.row() == currentRow();
  const auto count = opsAt(index.row()).size();
  switch (role) {
    case currentRole: return current;
    case Qt::TextAlignmentRole: return alignmentOf(index.column());
    case Qt::ToolTipRole:
      return count ? tr("Ops of the computation from this line: %1. Enter goes to the next of them").arg(count)
                   : QVariant();
    case Qt::AccessibleTextRole:
      if (index.column() == number)
        return current ? tr("line %1, of the selected op").arg(index.row() + 1) : tr("line %1").arg(index.row() + 1);
      [[fallthrough]];
    case Qt::DisplayRole: break;
    default: return {};
  }
  if (index.column() == number)
    return (current ? QStringLiteral("\u25b6 %1") : QStringLiteral("%1")).arg(index.row() + 1);
  if (index.column() == ops) return count ? QString::number(count) : QString();
  return lines_[index.row()];
}

}  // namespace retrograd::views
