#pragma once
#include <QTreeView>

#include "views/models/inspector_model.h"
#include "views/view_context.h"

namespace retrograd::views {

/// The selected op in full; Enter or a double click on a row that names another op leads there.
class InspectorDock : public QTreeView {
  Q_OBJECT

 public:
  explicit InspectorDock(ViewContext context, QWidget* parent = nullptr);

 Q_SIGNALS:
  void jumpRequested(retrograd::BoundSymbolId op);

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void refresh();

  ViewContext context_;
  InspectorModel* model_;
};

}  // namespace retrograd::views
