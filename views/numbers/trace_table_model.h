#pragma once
#include <QAbstractTableModel>
#include <memory>

#include "views/engine/pool_job.h"
#include "views/session/execution_state.h"
#include "views/session/open_document.h"
#include "views/text/run_numbers.h"

namespace retrograd::views {

/// All ops of a trace, one a row, with their numbers; sortable by each column. Unknown numbers are last, whichever
/// way it is sorted. Rows are sorted in the background: there may be hundreds of thousands.
class TraceTableModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  /// From `figures` on: all of figureColumns() but "none".
  enum Column { number, opName, module, output, type, figures, columns = figures + static_cast<int>(figureCount) - 1 };
  /// OpFigure::none for columns that are not numbers of a run.
  static OpFigure figureOf(int column) {
    return column < figures ? OpFigure::none : static_cast<OpFigure>(column - figures + 1);
  }
  static int columnOf(OpFigure kind) { return figures + static_cast<int>(kind) - 1; }

  TraceTableModel(const RunNumbers& numbers, const ExecutionState& execution, QObject* parent = nullptr)
      : QAbstractTableModel(parent), numbers_(numbers), execution_(execution) {}

  void show(std::shared_ptr<const OpenDocument> document, TraceKind kind);
  /// The numbers are other ones. No dataChanged() comes of it, for which a view would look for each row: who shows the
  /// table paints it again.
  void update();
  BoundSymbolId opAt(int row) const;
  int rowOf(BoundSymbolId op) const;  ///< -1 when it is not here
  /// A number that the run has not made up to its present position: it is of an earlier run, or of the run ahead.
  bool isOfLastRun(const QModelIndex& index) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override { return parent.isValid() ? 0 : columns; }
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  void sort(int column, Qt::SortOrder order) override;

 private:
  /// Sorts the rows by the column, a little later.
  void arrange();
  void setRows(std::vector<BoundSymbolId> ops);

  const RunNumbers& numbers_;
  const ExecutionState& execution_;
  std::shared_ptr<const OpenDocument> document_;
  TraceKind kind_ = TraceKind::joint;
  std::vector<BoundSymbolId> ops_;
  int column_ = number;
  Qt::SortOrder order_ = Qt::AscendingOrder;
  PoolJob job_;  ///< sorts
};

}  // namespace retrograd::views
