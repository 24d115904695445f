#pragma once
#include <QTreeView>

#include "views/docks/panel.h"
#include "views/engine/pool_job.h"
#include "views/models/modules_model.h"

namespace retrograd::views {

/// The modules with what they cost, and bars behind the numbers; Enter or a double click leads to the first op of one,
/// and the selected op's module is marked. Rows have their module as moduleRole.
class ModulesDock : public Panel {
  Q_OBJECT

 public:
  explicit ModulesDock(ViewContext context, QWidget* parent = nullptr);
  /// Has the keyboard at the selected op's module.
  void takeFocus() { tree_->setFocus(); }
  /// With the column that the rows are sorted by: what takes most is at the top again after the next start.
  QVariantMap saveState() const override;
  void restoreState(const QVariantMap& state) override;

 protected:
  void refresh() override;
  void forget() override;
  void leave() override;
  QString emptyText() const override {
    return job_.busy() ? QString() : unlessClosed(tr("The model names no modules"));
  }

 private:
  void list(const std::shared_ptr<const OpenDocument>& document);
  void follow();
  void measure();
  /// The columns of numbers are as wide as these need.
  void fitNumbers();
  int widthOf(int column) const;

  ModulesModel* model_;
  QTreeView* tree_;
  class SortedRows* rows_ = nullptr;
  class NamesFirst* columns_ = nullptr;
  QString chosen_;  ///< path of the module that was clicked
  std::shared_ptr<const OpenDocument> shown_;
  PoolJob job_;  ///< finds the ops of each module
};

}  // namespace retrograd::views
