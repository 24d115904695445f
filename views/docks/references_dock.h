#pragma once
#include <QTreeView>

#include "views/models/references_model.h"
#include "views/session/pool_job.h"
#include "views/view_context.h"

namespace retrograd::views {

/// Cross references of the selected value, or of what the selected op makes and reads. Enter or a double click leads to a place; the use
/// before and after the selected op are one key away (step()).
class ReferencesDock : public QTreeView {
  Q_OBJECT

 public:
  explicit ReferencesDock(ViewContext context, QWidget* parent = nullptr);

  /// Selects the next (or previous) place of the first value shown and jumps there.
  void step(bool forward);
  /// Lets step() pass places whose op this says no to.
  void stepOnlyTo(std::function<bool(BoundSymbolId)> isStep) { isStep_ = std::move(isStep); }

 Q_SIGNALS:
  void jumpRequested(retrograd::BoundSymbolId op);

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void refresh();
  void markSelected();

  ViewContext context_;
  ReferencesModel* model_;
  PoolJob job_;
  std::function<bool(BoundSymbolId)> isStep_ = [](BoundSymbolId) { return true; };
};

}  // namespace retrograd::views
