#pragma once
#include <QTreeView>

#include "views/models/modules_model.h"
#include "views/view_context.h"

namespace retrograd::views {

/// The modules; Enter or a double click leads to the first op of one, and the selected op's module is marked.
class ModulesDock : public QTreeView {
  Q_OBJECT

 public:
  explicit ModulesDock(ViewContext context, QWidget* parent = nullptr);

 Q_SIGNALS:
  void jumpRequested(retrograd::BoundSymbolId op);

 private:
  void follow();

  ViewContext context_;
  ModulesModel* model_;
};

}  // namespace retrograd::views
