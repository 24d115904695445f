#pragma once
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLabel>
#include <QSpinBox>
#include <QTreeView>

#include "views/canvases/schedule_view.h"
#include "views/docks/panel.h"
#include "views/engine/pool_job.h"
#include "views/models/schedule_ranks_model.h"

namespace retrograd::views {

/// A pipeline schedule over time: a published one or a CSV file, simulated with the times of the open model's stages
/// where they fit.
class ScheduleDock : public Panel {
  Q_OBJECT

 public:
  /// `save` is shown as a button; who owns it runs it.
  ScheduleDock(ViewContext context, QAction* save, QWidget* parent = nullptr);

  /// Shows the schedule of a CSV file instead of a published one.
  void openFile(const QString& path);
  /// As the suffix says: .svg the drawing, .json all figures, else CSV, on request with the sends and receives that it
  /// implies. Throws Error(io), Error(badUse) where it has these already.
  void save(const QString& path, bool withTransfers = false) const;
  /// The newest run; null before the first.
  const std::shared_ptr<const ScheduleRun>& run() const { return run_; }
  QString message() const { return message_->text(); }
  bool isSimulating() const { return job_.busy(); }

 Q_SIGNALS:
  void changed();

 protected:
  void refresh() override;

 private:
  QWidget* makeControls();
  QWidget* makeParts();  ///< the drawing and the table of ranks
  QSpinBox* makeSpin(const char* object, const QString& name, const QString& suffix, int most, int value);
  QDoubleSpinBox* makeLink();
  void kindChosen(int index);
  void askForFile();
  void change(const ScheduleRequest& request);
  void start();
  void show(const std::shared_ptr<const ScheduleRun>& run);
  void showRequest();

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
  int stages_ = 0;                             ///< of the cut that the ranks were fitted to
  bool outdated_ = true, refreshing_ = false;  ///< outdated: the request or the cut is another than what was simulated
};

}  // namespace retrograd::views
