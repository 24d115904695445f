#pragma once
#include <QTreeView>

#include "views/models/problems_model.h"
#include "views/view_context.h"

namespace retrograd::views {

/// The problems; Enter or a double click leads to the op one belongs to.
class ProblemsDock : public QTreeView {
  Q_OBJECT

 public:
  explicit ProblemsDock(ViewContext context, QWidget* parent = nullptr);

 Q_SIGNALS:
  void jumpRequested(retrograd::BoundSymbolId op);

 private:
  ViewContext context_;
  ProblemsModel* model_;
};

}  // namespace retrograd::views
