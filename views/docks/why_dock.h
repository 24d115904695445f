#pragma once
#include <QFrame>
#include <QLabel>
#include <QPushButton>
#include <QTimer>
#include <QTreeView>
#include <QWidget>

#include "views/models/why_model.h"
#include "views/view_context.h"

namespace retrograd::views {

/// Why the chosen value is saved or has no gradient, and what another choice would change: a what-if is computed on the worker, shown as
/// now against then, and adopted or dropped. Asks only while it is visible.
class WhyDock : public QWidget {
  Q_OBJECT

 public:
  /// The actions are shown as buttons; who owns them calls recompute() and save().
  WhyDock(ViewContext context, QAction* recompute, QAction* save, QWidget* parent = nullptr);

  /// What if the saved value that is chosen were recomputed?
  void recompute();
  /// What if the recomputed value that is chosen were saved?
  void save();
  /// What the last what-if told; empty while there is none.
  QString verdict() const { return verdictFrame_->isHidden() ? QString() : verdict_->text(); }

 Q_SIGNALS:
  void jumpRequested(retrograd::BoundSymbolId op);
  void failed(const QString& message);
  /// What was tried, to be seen beside what is open.
  void compareRequested(std::shared_ptr<const retrograd::Analysis> tried, const QString& title);

 protected:
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;

 private:
  QWidget* makeButtons(QAction* recompute, QAction* save);
  void makeVerdict();
  void ask();
  void request();
  void show(const WhyReport& report);
  /// Asks under the partition that `wish` makes of the present one.
  void tryPartition(const QString& title, std::function<PartitionOptions(const Analysis&)> wish);
  void showVerdict(const QString& title, const WhatIf& answer);
  void dropVerdict();

  ViewContext context_;
  WhyModel* model_;
  QTreeView* tree_;
  QFrame* verdictFrame_;
  QLabel* verdict_;
  QPushButton* adopt_;
  std::shared_ptr<const Analysis> candidate_;
  QString candidateTitle_;
  QTimer soon_;
};

}  // namespace retrograd::views
