#pragma once
#include <QSet>
#include <QTreeView>

#include "views/docks/panel.h"
#include "views/models/inspector_model.h"

namespace retrograd::views {

/// The selected op in full; Enter shows the whole text of a row, Ctrl+Enter or a double click on a row that names
/// another op leads there.
class InspectorDock : public Panel {
  Q_OBJECT

 public:
  explicit InspectorDock(ViewContext context, QWidget* parent = nullptr);
  QVariantMap saveState() const override;
  void restoreState(const QVariantMap& state) override;

 protected:
  void refresh() override;
  void forget() override { model_->show(nullptr, {}); }
  QString emptyText() const override { return unlessClosed(tr("Select an op to see what is known of it")); }
  void activate(const QModelIndex& row) override;

 private:
  void expandSections();

  InspectorModel* model_;
  QTreeView* tree_;
  QSet<QString> collapsed_;  ///< sections, by their heading: they stay closed for the next op too
};

}  // namespace retrograd::views
