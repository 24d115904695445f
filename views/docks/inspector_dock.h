#pragma once
#include <QSet>
#include <QTreeView>

#include "views/docks/panel.h"
#include "views/models/inspector_model.h"

namespace retrograd::views {

/// The selected op in full; Enter shows the whole text of a row, Ctrl+Enter or a double click leads where the row
/// does: to another op, to a module, to a line of the source. A heading folds.
class InspectorDock : public Panel {
  Q_OBJECT

 public:
  explicit InspectorDock(ViewContext context, QWidget* parent = nullptr);
  QVariantMap saveState() const override;
  void restoreState(const QVariantMap& state) override;

 Q_SIGNALS:
  void moduleChosen(const QString& path);
  /// Of the selected op's source, counted from the innermost.
  void frameChosen(int frame);

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
