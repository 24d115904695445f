#pragma once
#include <QFrame>
#include <QLabel>
#include <QPushButton>
#include <QTreeView>

#include "views/docks/panel.h"
#include "views/models/why_model.h"

namespace retrograd::views {

/// Why the chosen value is saved or has no gradient, and what another choice would change: a what-if is computed on the
/// worker, shown as now against then, and adopted or dropped.
class WhyDock : public Panel {
  Q_OBJECT

 public:
  /// The actions are shown as buttons; who owns them calls recompute() and save().
  WhyDock(ViewContext context, QAction* recompute, QAction* save, QWidget* parent = nullptr);

  /// What if the saved value that is chosen were recomputed?
  void recompute();
  /// What if the recomputed value that is chosen were saved?
  void save();
  /// What the last what-if reported; empty while there is none.
  QString verdict() const { return verdictFrame_->isHidden() ? QString() : verdict_->text(); }

  /// The last adopted choice can be taken back: until another file opens.
  bool canUndo() const { return before_ != nullptr; }
  /// Goes on with the traces as they were before it.
  void undo();

 Q_SIGNALS:
  void failed(const QString& message);
  /// There is an adopted choice to take back now, or there no longer is.
  void canUndoChanged();
  /// The partition that was tried, to be seen next to what is open.
  void compareRequested(std::shared_ptr<const retrograd::Analysis> tried, const QString& title);

 protected:
  void refresh() override;
  void forget() override;
  QString emptyText() const override;
  void activate(const QModelIndex& row) override;

 private:
  QWidget* makeButtons(QAction* recompute, QAction* save);
  void makeVerdict();
  void show(const WhyReport& report);
  /// Asks under the partition that `wish` makes of the present one.
  void tryPartition(const QString& title, std::function<PartitionOptions(const Analysis&)> wish);
  void showVerdict(const QString& title, const WhatIf& answer);
  void dropVerdict();

  WhyModel* model_;
  QTreeView* tree_;
  QFrame* verdictFrame_;
  QLabel* verdict_;
  QPushButton* adopt_;
  std::shared_ptr<const Analysis> before_;  ///< the last adoption; null: there is none to take back
  std::string beforePath_;
  std::shared_ptr<const Analysis> candidate_;
  QString candidateTitle_;
};

}  // namespace retrograd::views
