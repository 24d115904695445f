#pragma once
#include <QStandardItemModel>
#include <QTreeView>

#include "views/docks/panel.h"
#include "views/engine/pool_job.h"

namespace retrograd::views {

/// What the open log of torch.compile holds: ranks, compiles, attempts and graphs, with the number of ops, times, failures and what is missing.
class JobDock : public Panel {
  Q_OBJECT

 public:
  enum Column { what, ops, note, columnCount };

  explicit JobDock(ViewContext context, QWidget* parent = nullptr);

 protected:
  /// Enter and double click on a compile or on what is below it: its forward graph opens as the model.
  void activate(const QModelIndex& row) override;
  void refresh() override;
  void forget() override;
  QString emptyText() const override;

 private:
  void clear(const QString& why);

  QStandardItemModel* model_;
  QTreeView* tree_;
  PoolJob job_;
  std::shared_ptr<const OpenDocument> shown_;  ///< whose log is in the tree or on its way there
  QString why_;                                ///< the tree is empty
};

}  // namespace retrograd::views
