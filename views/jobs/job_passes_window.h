#pragma once
#include <QHBoxLayout>
#include <QLabel>
#include <QPlainTextEdit>
#include <QStandardItemModel>
#include <QTreeView>
#include <memory>

#include "views/canvases/diff_view.h"
#include "views/engine/pool_job.h"
#include "views/engine/torch_calls.h"

namespace retrograd::views {

/// The graphs of a compile as a chain of passes, in a window of its own: a list with what each pass changed, and below
/// it the chosen graph next to the one that the pass was given. The op under the cursor is followed: the list says what
/// it is in each pass. The window stays when another file opens.
class JobPassesWindow : public QWidget {
  Q_OBJECT

 public:
  enum Column { pass, ops, against, changed, gone, added, moved, followed, columnCount };

  JobPassesWindow(Theme* theme, std::shared_ptr<const JobPasses> passes, const QString& title, QWidget* parent);

  const QString& title() const { return title_; }
  /// Brings the window to the front with this graph of the attempt, else with the first pass that changed something.
  void showGraph(std::optional<std::size_t> graph);
  DiffView& view() const { return *view_; }
  QString summary() const { return summary_->text(); }
  QString details() const { return details_->toPlainText(); }

 private:
  void addActions();
  void fillList();
  void choose(std::size_t pass);
  void shown(std::size_t pass, const std::shared_ptr<const Comparison>& comparison);
  void step(int by);
  /// The op under the cursor becomes the one that is followed.
  void follow();
  /// Shows the followed op in the chosen pass, or where it was before it went.
  void reveal();

  std::shared_ptr<const JobPasses> passes_;
  QString title_;
  std::size_t chosen_ = 0;
  std::vector<FollowedOp> followed_;  ///< by pass; empty: no op
  QTreeView* list_;
  QStandardItemModel* model_;
  DiffView* view_;
  QPlainTextEdit* details_;
  QLabel* summary_;
  QHBoxLayout* tools_;
  PoolJob* job_;
};

}  // namespace retrograd::views
