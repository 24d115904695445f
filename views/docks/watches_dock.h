#pragma once
#include <QTimer>
#include <QTreeView>

#include "views/models/values_model.h"
#include "views/view_context.h"

namespace retrograd::views {

/// Values that stay in sight: state and statistics of each after every stop. Enter or a double click leads to the op that makes one,
/// Delete takes it away. Asks the worker only while it is visible and nothing runs.
class WatchesDock : public QTreeView {
  Q_OBJECT

 public:
  explicit WatchesDock(ViewContext context, QWidget* parent = nullptr);

 Q_SIGNALS:
  void jumpRequested(retrograd::BoundSymbolId op);

 protected:
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  void refresh();
  void ask();
  void request();
  void show(const std::shared_ptr<const ValueReport>& report);

  ViewContext context_;
  ValuesModel* model_;
  QTimer soon_;
};

}  // namespace retrograd::views
