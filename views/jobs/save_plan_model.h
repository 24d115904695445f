#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/derivation/analysis.h"
#include "core/formats/jobs/save_plan.h"
#include "views/models/tree_model.h"

namespace retrograd::views {

/// A save plan as rows of a tree, with the op of the open model that makes each value.
class SavePlanRows {
 public:
  enum Column { value, type, bytes, op, policy, fate, line, columnCount };
  struct Row : TreePlace {
    std::array<QString, columnCount> cells;
    std::optional<std::int64_t> size;  ///< what `bytes` says
    BoundSymbolId op;
    bool isHeading = false;  ///< of a section, with its sentence over the whole row where it has no other cell
  };

  /// Takes its time for a large plan; for any thread. `analysis`: the forward of the plan's compile, opened as a model.
  SavePlanRows(const SavePlan& plan, const Analysis& analysis);

  const FlatTree<Row>& tree() const { return rows_; }

 private:
  void addSentences(const SavePlan& plan);
  void addTable(const SavePlan& plan, const PlanTable& table, int section, bool ofInputs);
  void addEveryTensor(const SavePlan& plan);
  void addPolicies(const SavePlan& plan);
  Row rowOf(const SavePlan& plan, const PlanValue& value) const;
  BoundSymbolId opOf(const std::string& value) const;

  FlatTree<Row> rows_;
  std::unordered_map<std::string, BoundSymbolId> ops_;
};

/// SavePlanRows for views: findings first, then what is saved, what is in memory anyway, all tensors of the forward,
/// and the policies.
class SavePlanModel : public FlatTreeModel {
  Q_OBJECT

 public:
  using FlatTreeModel::FlatTreeModel;

  /// Null: nothing.
  void show(std::shared_ptr<const SavePlanRows> rows);

  int columnCount(const QModelIndex& = {}) const override { return SavePlanRows::columnCount; }
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  const TreePlace& placeOf(int row) const override;

  std::shared_ptr<const SavePlanRows> rows_;
};

/// "saved 3072 bytes in 9 values, all saved 4608 bytes in 12 values".
QString totalsText(const SavePlan& plan);

}  // namespace retrograd::views
