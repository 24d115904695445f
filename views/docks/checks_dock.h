#pragma once
#include <QLabel>
#include <QLineEdit>
#include <QTreeView>

#include "views/docks/panel.h"
#include "views/models/checks_model.h"

namespace retrograd::views {

/// Whether gradients are right, and what they are summed up from.
class ChecksDock : public Panel {
  Q_OBJECT

 public:
  /// The actions are shown as buttons; who owns them calls check() and terms().
  ChecksDock(ViewContext context, QAction* check, QAction* terms, QWidget* parent = nullptr);

  /// Checks the gradient of the range in the line, or of the selected op where it is empty.
  void check();
  /// Records a run and lists the gradients that were added up to the chosen value's.
  void terms();
  QString summary() const { return summary_->text(); }

 protected:
  void forget() override;
  QString emptyText() const override {
    return unlessClosed(
        tr("Select an op, or name ops above: Check compares their gradient with differences of their results, Terms "
           "lists what was added up to it"));
  }

 private:
  /// The value whose gradient is meant: the chosen one, or where that is a gradient, the one it belongs to.
  ValueId chosen() const;

  ChecksModel* model_;
  QTreeView* tree_;
  QLineEdit* range_;
  QLabel* summary_;
};

}  // namespace retrograd::views
