#pragma once

#include "views/docks/panel.h"
#include "views/models/problems_model.h"

namespace retrograd::views {

/// The problems; Enter or a double click leads to the op one belongs to. The dock's title has their number, in sight or
/// not.
class ProblemsDock : public Panel {
  Q_OBJECT

 public:
  explicit ProblemsDock(ViewContext context, QWidget* parent = nullptr);

 protected:
  void forget() override { model_->setDocument(nullptr); }
  QString emptyText() const override { return unlessClosed(tr("No problems")); }

 private:
  ProblemsModel* model_;
};

}  // namespace retrograd::views
