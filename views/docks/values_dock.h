#pragma once
#include <QCheckBox>
#include <QTimer>
#include <QTreeView>
#include <QWidget>

#include "views/docks/value_panel.h"
#include "views/models/values_model.h"
#include "views/view_context.h"

namespace retrograd::views {

/// Values of the selected op at the present position: statistics of each, and of the chosen one the histogram and a slice of its
/// contents as table or picture, on request with its gradient (or what it is the gradient of) beside. Asks the worker only while it is visible and nothing runs.
class ValuesDock : public QWidget {
  Q_OBJECT

 public:
  /// `actions` are for the context menu of the values.
  ValuesDock(ViewContext context, const QList<QAction*>& actions, QWidget* parent = nullptr);

 Q_SIGNALS:
  void jumpRequested(retrograd::BoundSymbolId op);

 protected:
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;

 private:
  QWidget* makeDetail();
  void selectionChanged();
  /// Asks again soon: several changes in a row become one question.
  void ask();
  void request();
  void choose(int row);
  void show(const std::shared_ptr<const ValueReport>& report);
  void showDetail(const ValueReport& report);
  /// "weight  f32[3, 4]  48 B", or why it is not there.
  void showPanel(ValuePanel& panel, const QString& label, const ValueDetail& detail);
  void clearDetail(const QString& reason);
  ValueId chosen() const;

  ViewContext context_;
  ValuesModel* model_;
  QTreeView* table_;
  ValuePanel* panel_;
  ValuePanel* beside_;
  QCheckBox* picture_;
  QCheckBox* withGradient_;
  QTimer soon_;
  BoundSymbolId op_;
};

}  // namespace retrograd::views
