#pragma once
#include <QLabel>
#include <QLineEdit>
#include <QTreeView>
#include <QWidget>

#include "views/models/checks_model.h"
#include "views/view_context.h"

namespace retrograd::views {

/// Whether gradients are right, and what they are summed up from.
class ChecksDock : public QWidget {
  Q_OBJECT

 public:
  /// The actions are shown as buttons; who owns them calls check() and terms().
  ChecksDock(ViewContext context, QAction* check, QAction* terms, QWidget* parent = nullptr);

  /// Checks the gradient of the range in the line, or of the selected op where it is empty.
  void check();
  /// Records a run and tells the gradients that were added up to the chosen value's.
  void terms();
  QString summary() const { return summary_->text(); }

 Q_SIGNALS:
  void jumpRequested(retrograd::BoundSymbolId op);

 private:
  void clear();
  void failed(const QString& message);
  /// The value whose gradient is meant: the chosen one, or where that is a gradient, the one it belongs to.
  ValueId chosen() const;

  ViewContext context_;
  ChecksModel* model_;
  QTreeView* tree_;
  QLineEdit* range_;
  QLabel* summary_;
};

}  // namespace retrograd::views
