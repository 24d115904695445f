#pragma once
#include <QTreeView>

#include "views/docks/panel.h"
#include "views/models/optimizer_model.h"

namespace retrograd::views {

/// The listing of a recorded step's optimizers. A click selects the op and the value of a row, Enter leads there.
class OptimizerDock : public Panel {
  Q_OBJECT

 public:
  explicit OptimizerDock(ViewContext context, QWidget* parent = nullptr);

 protected:
  void refresh() override;
  void forget() override;
  QString emptyText() const override;

 private:
  void fill(const std::shared_ptr<const OpenDocument>& open);

  OptimizerModel* model_;
  QTreeView* tree_;
  OptimizerModel::Updates updates_;
  std::shared_ptr<const OpenDocument> shown_;
  std::size_t known_ = 0;  ///< ops whose numbers are shown
};

}  // namespace retrograd::views
