#pragma once
#include <memory>

#include "core/torch/experiments/compare_runs.h"
#include "views/models/table_model.h"
#include "views/session/note_book.h"

namespace retrograd::views {

/// Two runs op by op: a row for each value that both have, in the order of the first run. A row leads to its op.
class CompareModel : public TableModel {
  Q_OBJECT

 public:
  enum Column { value, relative, largest, normA, normB, op, columns };

  explicit CompareModel(QObject* parent = nullptr);

  void show(std::shared_ptr<const OpenDocument> document, std::shared_ptr<const RunComparison> comparison);
  void clear() { show(nullptr, nullptr); }
  /// The row where the runs diverge first; -1 where they do not.
  int firstDivergence() const;

  QVariant data(const QModelIndex& index, int role) const override;

 private:
  std::size_t rows() const override { return comparison_ ? comparison_->rows.size() : 0; }
  std::shared_ptr<const OpenDocument> document_;
  std::shared_ptr<const RunComparison> comparison_;  ///< null where nothing is shown
};

}  // namespace retrograd::views
