#pragma once
#include <QAbstractItemModel>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/derivation/analysis.h"
#include "core/formats/jobs/save_plan.h"
#include "views/models/tree_model.h"

namespace retrograd::views {

/// A save plan as rows of a tree, with the op of the open model that makes each value.
class SavePlanRows {
 public:
  enum Column { value, type, bytes, op, policy, fate, line, columnCount };
  struct Row {
    std::array<QString, columnCount> cells;
    std::optional<std::int64_t> size;  ///< what `bytes` says
    BoundSymbolId op;
    bool isHeading = false;  ///< of a section, with its sentence over the whole row where it has no other cell
    int parent = -1, place = 0;
    std::vector<int> children{};
  };

  /// Takes its time for a large plan; for any thread. `analysis`: the forward of the plan's compile, opened as a model.
  SavePlanRows(const SavePlan& plan, const Analysis& analysis);

  const Row& row(int index) const { return rows_[index]; }
  const std::vector<int>& top() const { return top_; }

 private:
  int add(int parent, Row row);
  void addSentences(const SavePlan& plan);
  void addTable(const SavePlan& plan, const PlanTable& table, int section, bool ofInputs);
  void addEveryTensor(const SavePlan& plan);
  void addPolicies(const SavePlan& plan);
  Row rowOf(const SavePlan& plan, const PlanValue& value) const;
  BoundSymbolId opOf(const std::string& value) const;

  std::vector<Row> rows_;
  std::vector<int> top_;
  std::unordered_map<std::string, BoundSymbolId> ops_;
};

/// SavePlanRows for views: findings first, then what is saved, what is in memory anyway, all tensors of the forward,
/// and the policies.
class SavePlanModel : public QAbstractItemModel {
  Q_OBJECT

 public:
  using QAbstractItemModel::QAbstractItemModel;

  /// Null: nothing.
  void show(std::shared_ptr<const SavePlanRows> rows);

  QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
  QModelIndex parent(const QModelIndex& child) const override;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  const std::vector<int>* childrenOf(const QModelIndex& parent) const;

  std::shared_ptr<const SavePlanRows> rows_;
};

/// "saved 3072 bytes in 9 values, all saved 4608 bytes in 12 values".
QString totalsText(const SavePlan& plan);

}  // namespace retrograd::views
