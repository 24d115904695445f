#pragma once
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLabel>
#include <QSpinBox>
#include <QTreeView>
#include <QWidget>

#include "views/canvases/schedule_view.h"
#include "views/models/schedule_ranks_model.h"
#include "views/session/pool_job.h"
#include "views/view_context.h"

namespace retrograd::views {

/// A pipeline schedule over time: a published one or a CSV file, simulated with the times of the open model's stages where they fit.
class ScheduleDock : public QWidget {
  Q_OBJECT

 public:
  /// `save` is shown as a button; who owns it runs it.
  ScheduleDock(ViewContext context, QAction* save, QWidget* parent = nullptr);

  /// Nothing is computed while it cannot be seen.
  void setInSight(bool on);
  /// Shows the schedule of a CSV file in place of a published one.
  void openFile(const QString& path);
  /// As the suffix says: .svg the drawing, .json all figures, else CSV, on request with the sends and receives that it implies. Throws Error(io),
  /// Error(badUse) where it has these already.
  void save(const QString& path, bool withTransfers = false) const;
  /// The newest run; null before the first.
  const std::shared_ptr<const ScheduleRun>& run() const { return run_; }
  QString message() const { return message_->text(); }
  bool busy() const { return job_.busy(); }

 Q_SIGNALS:
  void jumpRequested(retrograd::BoundSymbolId op);
  void changed();

 private:
  QWidget* makeControls(QAction* save);
  QSpinBox* makeSpin(const char* object, const QString& name, const QString& suffix, int most, int value);
  QDoubleSpinBox* makeLink();
  void kindChosen(int index);
  void askForFile();
  /// The cut or what is known of it has changed.
  void planChanged();
  void ask(const ScheduleRequest& request);
  void start();
  void show(const std::shared_ptr<const ScheduleRun>& run);
  void showRequest();

  ViewContext context_;
  ScheduleRequest request_;
  std::shared_ptr<const StageCut> cut_;
  std::shared_ptr<const ScheduleRun> run_;
  PoolJob job_;
  QComboBox* kind_;
  QSpinBox *ranks_, *each_, *microbatches_;
  QDoubleSpinBox* link_;
  QLabel *message_, *cell_;
  ScheduleView* view_;
  QTreeView* table_;
  ScheduleRanksModel* model_;
  int stages_ = 0;  ///< of the cut that the ranks were fitted to
  bool inSight_ = false, stale_ = true, refreshing_ = false;
};

}  // namespace retrograd::views
