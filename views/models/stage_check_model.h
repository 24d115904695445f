#pragma once
#include "core/torch/checking/stage_check.h"
#include "views/models/table_model.h"
#include "views/session/document_controller.h"

namespace retrograd::views {

/// What a check of pipeline stages found, a row each for what was compared, what differs first. A row of a gradient
/// leads to the op that makes it, one of an output to the output's op.
class StageCheckModel : public TableModel {
  Q_OBJECT

 public:
  enum Column { name, what, verdict, difference, relative, columns };

  explicit StageCheckModel(QObject* parent = nullptr);

  void clear() { show(nullptr, {}); }
  /// Claims as compareStages() makes them.
  void show(std::shared_ptr<const OpenDocument> document, Report report);

  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::size_t rows() const override { return claims_.size(); }
  /// The value that a row leads to; none where it leads nowhere.
  ValueId target(const Claim& claim) const;

  std::shared_ptr<const OpenDocument> document_;
  std::vector<Claim> claims_;
  std::vector<ValueId> targets_;
};

}  // namespace retrograd::views
