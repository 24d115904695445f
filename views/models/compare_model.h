#pragma once
#include <QAbstractTableModel>
#include <memory>

#include "core/torch/experiments/compare_runs.h"
#include "views/session/note_book.h"

namespace retrograd::views {

/// Two runs op by op: a row for each value that both have, in the order of the first run. A row leads to its op.
class CompareModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { value, relative, largest, normA, normB, op, columns };

  using QAbstractTableModel::QAbstractTableModel;

  void show(std::shared_ptr<const OpenDocument> document, std::shared_ptr<const RunComparison> comparison);
  void clear() { show(nullptr, nullptr); }
  /// Calls values as the notes do, now and whenever they change.
  void followNotes(const NoteBook* notes);
  /// The row where the runs diverge first; -1 where they do not.
  int firstDivergence() const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::shared_ptr<const OpenDocument> document_;
  const NoteBook* notes_ = nullptr;
  std::shared_ptr<const RunComparison> comparison_;  ///< null where nothing is shown
};

}  // namespace retrograd::views
