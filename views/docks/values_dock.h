#pragma once
#include <QLabel>
#include <QSpinBox>
#include <QTableView>
#include <QTimer>
#include <QTreeView>
#include <QWidget>

#include "views/canvases/histogram_view.h"
#include "views/models/slice_model.h"
#include "views/models/values_model.h"
#include "views/view_context.h"

namespace retrograd::views {

/// Values of the selected op at the present position: statistics of each, and of the chosen one the histogram and a slice of its
/// contents. Asks the worker only while it is visible and nothing runs.
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
  void clearDetail(const QString& reason);
  void makeSpinBoxes();
  ValueId chosen() const;

  ViewContext context_;
  ValuesModel* model_;
  SliceModel* slice_;
  QTreeView* table_;
  QTableView* contents_;
  HistogramView* histogram_;
  QLabel* title_;
  QLabel* leadingLabel_;
  QWidget* leading_;
  QTimer soon_;
  BoundSymbolId op_;
};

}  // namespace retrograd::views
