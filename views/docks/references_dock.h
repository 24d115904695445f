#pragma once
#include <QTreeView>

#include "views/docks/panel.h"
#include "views/engine/pool_job.h"
#include "views/models/references_model.h"

namespace retrograd::views {

/// Cross references of the selected value, or of what the selected op makes and reads. Enter or a double click leads to
/// a place; the use before and after the selected op are one key away (step()).
class ReferencesDock : public Panel {
  Q_OBJECT

 public:
  explicit ReferencesDock(ViewContext context, QWidget* parent = nullptr);

  /// Selects the next (or previous) place of the first value shown and jumps there.
  void step(bool forward);
  /// Lets step() pass places whose op this says no to.
  void stepOnlyTo(std::function<bool(BoundSymbolId)> isStep) { isStep_ = std::move(isStep); }

 protected:
  void refresh() override;
  void forget() override;
  void leave() override;
  QString emptyText() const override {
    return unlessClosed(tr("Select a value or an op to see who makes and uses it"));
  }

 private:
  void markSelected();

  ReferencesModel* model_;
  QTreeView* tree_;
  PoolJob job_;
  std::function<bool(BoundSymbolId)> isStep_ = [](BoundSymbolId) { return true; };
};

}  // namespace retrograd::views
