#pragma once
#include <QLabel>
#include <QTreeView>

#include "views/docks/panel.h"
#include "views/models/nan_model.h"

namespace retrograd::views {

/// Where a NaN or Inf was made: the way from a bad value to its root, every step a link.
class FindingsDock : public Panel {
  Q_OBJECT

 public:
  /// The actions are shown as buttons; who owns them calls walk().
  FindingsDock(ViewContext context, QAction* walk, QAction* check, QWidget* parent = nullptr);

  /// Records a run and walks from the value; an invalid one stands for any bad value of the run.
  void walk(ValueId value);
  /// Records a run, walks from any bad value, and selects the root: what opening a recorded failure does.
  void goToRoot();
  QString summary() const { return summary_->text(); }

 protected:
  void forget() override;
  QString emptyText() const override {
    return unlessClosed(tr(
        "Check the Run looks for NaN and Inf in a whole run; Walk to the Root leads from one to the op that made it"));
  }

 private:
  void ask(ValueId value, bool select);
  /// What was seen of the run so far, until a walk says more.
  void tell();
  void show(const NanWalk& walk);

  NanModel* model_;
  QTreeView* tree_;
  QLabel* summary_;
  bool walked_ = false;
};

}  // namespace retrograd::views
