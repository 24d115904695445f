#pragma once
#include <QStandardItemModel>
#include <QTreeView>

#include "views/docks/panel.h"
#include "views/jobs/open_job_log.h"
#include "views/jobs/opinion_model.h"
#include "views/widgets/dock_tree.h"

namespace retrograd::views {

/// What the open log of torch.compile holds: ranks, compiles, attempts and graphs, with the number of ops, times,
/// failures and what is missing. Next to it the second opinion on a compile, once it was asked for.
class JobDock : public Panel {
  Q_OBJECT

 public:
  enum Column { what, ops, note, columnCount };

  /// The actions are shown as buttons; who owns them calls showOwnGraphs(), askPasses() and askOpinion().
  struct Actions {
    QAction *ownGraphs = nullptr, *passes = nullptr, *opinion = nullptr;
  };
  JobDock(ViewContext context, OpenJobLog* log, const Actions& actions, QWidget* parent = nullptr);

  /// Opens the texts of the chosen compile; where none is chosen, of the one that is open as a model.
  void showOwnGraphs();
  /// Compares each graph of the chosen compile with the one that its pass was given, in a window of its own.
  void askPasses();
  /// Compares the backward of the chosen compile with the one that is derived from its forward.
  void askOpinion();
  QString summary() const { return summary_->text(); }

 protected:
  /// Enter and double click. On a compile or on what is below it: its forward graph opens as the model. On a finding of
  /// the second opinion: to its op.
  void activate(const QModelIndex& row) override;
  void refresh() override;
  void forget() override;
  QString emptyText() const override { return unlessClosed(why_); }

 private:
  /// A compile of the log, and what of it is chosen.
  struct Choice {
    jobs::GraphChoice place;
    std::string compile;               ///< as chooseCompile() takes it: with the attempt where that is chosen
    std::optional<std::size_t> graph;  ///< into the attempt's
    bool isOpen = false;               ///< it is the model
  };

  void openModel(const QModelIndex& row);
  void openFinding(const QModelIndex& row);
  /// Opens the texts at a line of the backward; without one at the chosen graph, else at the forward.
  void openGraphs(const Choice& choice, int backwardLine);
  /// Of a row of the tree. Without a compile in it where the row belongs to none.
  Choice choiceAt(const QModelIndex& row) const;
  /// The current row's, else the compile that is open as the model.
  Choice chosen() const;
  Choice open() const;
  void showTree();
  /// The line below the buttons; nothing takes no room.
  void say(const QString& text);
  void clear(const QString& why);
  void ask(const Choice& choice);
  void openPasses(const Choice& choice);
  /// "0/0 of rank 1  language_step - trace"
  QString titleOf(const Choice& choice) const;

  OpenJobLog* log_;
  QStandardItemModel* model_;
  QTreeView* tree_;
  OpinionModel* findings_;
  QTreeView* findingsTree_;
  QLabel* summary_;
  ColumnFitter* columns_;
  std::shared_ptr<const jobs::JobLog> shown_;  ///< in the tree
  Choice asked_;                               ///< that the findings are of
  QString why_;                                ///< the tree is empty
};

}  // namespace retrograd::views
