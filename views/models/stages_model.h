#pragma once
// The stages of a cut as a table.
#include <memory>

#include "views/models/table_model.h"
#include "views/models/tree_model.h"
#include "views/stages/stage_cut.h"

namespace retrograd::views {

/// What the rows of the pipeline's tables say besides ItemRole.
enum StageRole {
  stageRole = Qt::UserRole + 40,  ///< int: the stage that a row is or leads to; -1 none
  swatchRole,                     ///< int: the stage whose colour is before the text; none where no colour does
};

/// The stages of a cut, a row each: what it weighs, and in every figure a bar relative to the heaviest. A row leads to
/// the stage's first op.
class StagesModel : public TableModel {
  Q_OBJECT

 public:
  enum Column { stage, ops, time, parameters, activations, saved, from, columns };

  explicit StagesModel(QObject* parent = nullptr);

  /// Null shows nothing.
  void show(std::shared_ptr<const StageCut> cut) {
    reset([&] { cut_ = std::move(cut); });
  }
  const std::shared_ptr<const StageCut>& cut() const { return cut_; }

  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

  /// The figure of a stage in a column; 0 where the column has none.
  static double amount(const StageFacts& facts, int column);
  /// "1.20 ms" where it was measured, "24 %" of all where it is estimated.
  static QString timeText(const StageCut& cut, double time);

 private:
  std::size_t rows() const override { return cut_ ? cut_->split.stages.size() : 0; }
  std::shared_ptr<const StageCut> cut_;
};

/// What crosses from stage to stage, and which inputs of the model go where. A row leads to the op that makes the
/// value.
class StageEdgesModel : public TableModel {
  Q_OBJECT

 public:
  enum Column { source, destination, value, type, bytes, allBytes, gradient, columns };

  explicit StageEdgesModel(QObject* parent = nullptr);

  void show(std::shared_ptr<const StageCut> cut) {
    reset([&] { cut_ = std::move(cut); });
  }
  /// How often each value is sent in a step of training.
  void setMicrobatches(int count);

  QVariant data(const QModelIndex& index, int role) const override;

 private:
  std::size_t rows() const override { return cut_ ? cut_->edges.size() : 0; }
  std::shared_ptr<const StageCut> cut_;
  int microbatches_ = 1;
};

/// Parameters that several stages use.
class SharedParametersModel : public TableModel {
  Q_OBJECT

 public:
  enum Column { names, stages, use, bytes, columns };

  explicit SharedParametersModel(QObject* parent = nullptr);

  void show(std::shared_ptr<const StageCut> cut) {
    reset([&] { cut_ = std::move(cut); });
  }
  const SharedParameter& at(int row) const { return cut_->split.shared[row]; }
  /// The row of a parameter, by any of its names; -1 where it is not among them.
  int rowOf(const std::string& name) const;

  QVariant data(const QModelIndex& index, int role) const override;

 private:
  std::size_t rows() const override { return cut_ ? cut_->split.shared.size() : 0; }
  std::shared_ptr<const StageCut> cut_;
};

}  // namespace retrograd::views
