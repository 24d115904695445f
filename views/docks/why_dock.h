#pragma once
#include <QCheckBox>
#include <QFrame>
#include <QLabel>
#include <QPushButton>
#include <QSlider>
#include <QToolButton>
#include <QTreeView>

#include "core/questions/memory_timeline.h"
#include "views/docks/panel.h"
#include "views/docks/why_card.h"
#include "views/models/why_model.h"

namespace retrograd::views {

/// All that is known of the selected op, in one column: why its value is saved or has no gradient as a sentence with
/// links, then the Inspector; and what another choice would change: a what-if is computed on the worker, shown as now
/// against then, and adopted or dropped.
class WhyDock : public Panel {
  Q_OBJECT

 public:
  /// The actions are shown as buttons; who owns them calls recompute() and save().
  WhyDock(ViewContext context, QAction* recompute, QAction* save, Panel* inspector, QWidget* parent = nullptr);

  /// What if the saved value that is chosen were recomputed?
  void recompute();
  /// What if the recomputed value that is chosen were saved?
  void save();
  /// What if each block were recomputed from its input, as people do it in PyTorch?
  void checkpointBlocks();
  /// What if no more than this were saved? A slider goes from the fewest bytes to those that the formulas ask for.
  void tryBudgets();
  /// All that is known, as a tree below the card: folded until a person wants it.
  void showDetails(bool on);
  QVariantMap saveState() const override;
  void restoreState(const QVariantMap& state) override;
  /// What the last what-if reported; empty while there is none.
  QString verdict() const { return verdictFrame_->isHidden() ? QString() : verdict_->text(); }

  /// This command is a button next to what was adopted, while that is what it takes back.
  void setUndo(QAction* undo);

 Q_SIGNALS:
  /// The line of Python of the selected op is wanted.
  void sourceWanted();
  void failed(const QString& message);
  /// To recompute the value would save no memory.
  void nothingGained(retrograd::ValueId value, const QString& reason);
  /// The memory of the choice that is tried; null where none is any more.
  void triedChanged(const std::shared_ptr<const retrograd::MemoryTimeline>& memory, std::size_t forwardSize);
  /// The partition that was tried, to be seen next to what is open.
  void compareRequested(std::shared_ptr<const retrograd::Analysis> tried, const QString& title);

 protected:
  void refresh() override;
  void forget() override;
  QString emptyText() const override;
  void activate(const QModelIndex& row) override;

 private:
  /// What is tried: the partition that it makes of the present one, and whether equal layers can follow it.
  struct Wish {
    QString title;
    std::function<PartitionOptions(const OpenDocument&)> partition;
    bool isOfALayer = false;
  };
  struct Answer;

  QWidget* makeButtons(QAction* recompute, QAction* save);
  void makeVerdict();
  QWidget* makeAdopted();
  void showAdopted();
  QWidget* makeBudget();
  void show(const WhyReport& report);
  /// The tree is there while it is wanted, and where it says why it is empty.
  void foldDetails();
  void tryWish(const Wish& wish);
  void askWish(const Wish& wish);
  void tryBudget(int step);
  void showVerdict(const QString& title, const Answer& answer);
  void dropVerdict();

  WhyModel* model_;
  WhyCard* card_;
  QToolButton* details_;
  QTreeView* tree_;
  QToolButton* toForward_ = nullptr;  ///< for a value of the backward
  QFrame* verdictFrame_;
  QLabel* verdict_;
  QPushButton* adopt_;
  QCheckBox* equalLayers_ = nullptr;
  QWidget* budgetRow_ = nullptr;
  QSlider* budget_ = nullptr;
  QTimer budgetSoon_;
  std::int64_t leastSaved_ = 0, mostSaved_ = 0;  ///< the ends of the slider
  Wish wish_;
  QWidget* adoptedRow_ = nullptr;  ///< what was adopted, and the button that takes it back
  QLabel* adopted_ = nullptr;
  std::shared_ptr<const Analysis> candidate_;
  QString candidateTitle_;
};

}  // namespace retrograd::views
