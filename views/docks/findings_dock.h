#pragma once
#include <QLabel>
#include <QTreeView>
#include <QWidget>

#include "views/models/nan_model.h"
#include "views/view_context.h"

namespace retrograd::views {

/// Where a NaN or Inf came to be: the way from a bad value to its root, every step a link.
class FindingsDock : public QWidget {
  Q_OBJECT

 public:
  /// The actions are shown as buttons; who owns them calls walk().
  FindingsDock(ViewContext context, QAction* walk, QAction* check, QWidget* parent = nullptr);

  /// Records a run and walks from the value; an invalid one stands for any bad value of the run.
  void walk(ValueId value);
  QString summary() const { return summary_->text(); }

 Q_SIGNALS:
  void jumpRequested(retrograd::BoundSymbolId op);

 private:
  void show(const NanWalk& walk);
  void clear();

  ViewContext context_;
  NanModel* model_;
  QTreeView* tree_;
  QLabel* summary_;
};

}  // namespace retrograd::views
