#pragma once
#include <QLabel>
#include <QTreeView>

#include "views/docks/panel.h"
#include "views/models/stage_check_model.h"

namespace retrograd::views {

struct StageCut;

/// Whether the stages of the present cut together give what the whole model gives, tensor by tensor; a row leads to the
/// op that makes it.
class StageCheckDock : public Panel {
  Q_OBJECT

 public:
  /// The actions are shown as buttons; who owns them calls check() and cancel().
  StageCheckDock(ViewContext context, QAction* check, QAction* cancel, QWidget* parent = nullptr);

  /// Runs stages and whole model in runs of their own.
  void check();
  void cancel();
  bool checking() const { return checking_; }
  QString summary() const { return summary_->text(); }

 Q_SIGNALS:
  void changed();

 protected:
  QString emptyText() const override;

 private:
  /// The findings are of another cut, or of another document.
  void planChanged();
  void clear(const QString& text);

  std::shared_ptr<const StageCut> cut_;  ///< that was checked
  StageCheckModel* model_;
  QTreeView* table_;
  QLabel* summary_;
  bool checking_ = false;
};

}  // namespace retrograd::views
