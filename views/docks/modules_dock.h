#pragma once
#include <QMenu>
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
  /// The context menu of a module, to which others may add.
  void menuAboutToShow(QMenu* menu, const QString& module);

 protected:
  void contextMenuEvent(QContextMenuEvent* event) override;

 private:
  void follow();

  ViewContext context_;
  ModulesModel* model_;
};

}  // namespace retrograd::views
