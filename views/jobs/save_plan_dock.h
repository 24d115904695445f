#pragma once
#include <QStandardItemModel>
#include <QTreeView>

#include "views/docks/panel.h"
#include "views/jobs/open_job_log.h"
#include "views/jobs/save_plan_model.h"

namespace retrograd::views {

/// What the open compile of a log saves for its backward, folded over equal layers, and how layers differ; what
/// `retrograd graphs --save-plan` prints.
class SavePlanDock : public Panel {
  Q_OBJECT

 public:
  enum BudgetColumn { budget, saved, peak, recomputed, budgetColumnCount };

  /// `budgets` is shown as a button; who owns it calls askBudgets().
  SavePlanDock(ViewContext context, OpenJobLog* log, QAction* budgets, QWidget* parent = nullptr);

  /// Why there is no plan; empty where there is one, asked or not.
  QString reason() const;
  /// Splits the model at several budgets, on the worker.
  void askBudgets();
  QString summary() const { return summary_->text(); }

 Q_SIGNALS:
  void changed();

 protected:
  void refresh() override;
  void forget() override;
  QString emptyText() const override { return unlessClosed(why_); }

 private:
  void askPlan();
  /// Has a sentence, which has no other cell, take its whole row. Sections and what is just below them.
  void spanSentences(const QModelIndex& parent);
  void show(const SavePlan& plan, std::shared_ptr<const SavePlanRows> rows);

  OpenJobLog* log_;
  SavePlanModel* model_;
  QTreeView* tree_;
  QStandardItemModel* budgets_;
  QTreeView* budgetsTree_;
  QLabel* summary_;
  QString why_;  ///< there is no plan, or not yet
  bool failed_ = false;
};

}  // namespace retrograd::views
