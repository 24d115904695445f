#pragma once
#include <QLabel>
#include <QTreeView>

#include "views/docks/finding_cards.h"
#include "views/docks/panel.h"
#include "views/findings/findings_model.h"
#include "views/models/nan_model.h"

namespace retrograd::views {

/// All findings of the document, the most severe first, each with one action; and below them, once it was walked, the
/// way from a NaN or Inf to its root, every step a link.
class FindingsDock : public Panel {
  Q_OBJECT

 public:
  /// The actions are shown as buttons; who owns them calls walk().
  FindingsDock(ViewContext context, QAction* walk, QAction* check, QWidget* parent = nullptr);

  /// Records a run, walks from the value, selects the root and shows its line of Python; an invalid value represents
  /// any bad one of the run.
  void walk(ValueId value) { ask(value, true); }
  /// The same without going anywhere; of a recorded step the whole check.
  void check();
  QString summary() const { return summary_->text(); }

  /// How the one action of a claim reads.
  QString titleOf(const Claim& claim) const;
  /// To the claim's place.
  void lead(const Claim& claim);
  /// The claim's one action.
  void act(const Claim& claim);

 Q_SIGNALS:
  /// What a person chose to do about a finding, whose op and value are selected: Claim::command.
  void commandChosen(const QString& command);

 protected:
  void forget() override;
  QString emptyText() const override;
  void activate(const QModelIndex& row) override;

 private:
  void ask(ValueId value, bool select);
  /// What was seen of the run so far, until a walk says more.
  void tell();
  bool lookedAtAll() const;
  void show(const NanWalk& walk, const QString& element);

  void prepareList();
  QWidget* makeWay();
  void list();
  /// The whole check of a recorded step, as on the command line.
  void checkStep();

  FindingBoard& board_;
  FindingsModel* findings_;
  FindingCards* list_;
  QAction* walk_;
  NanModel* model_;
  QTreeView* tree_;
  QLabel* root_;  ///< what the walk found, over its tree
  QWidget* way_;  ///< both
  QLabel* summary_;
  bool walked_ = false;
};

}  // namespace retrograd::views
