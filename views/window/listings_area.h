#pragma once
#include <QCheckBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QSplitter>
#include <QWidget>

#include "core/base/enum_array.h"
#include "views/canvases/listing_view.h"
#include "views/widgets/elided_label.h"
#include "views/widgets/run_strip.h"
#include "views/window/graph_pane.h"

namespace retrograd::views {

/// The listings of the four traces and the graph side by side, with a row of switches over them and the find bar below.
class ListingsArea : public QWidget {
  Q_OBJECT

 public:
  ListingsArea(ViewContext context, QWidget* parent = nullptr);

  ListingView& listing(TraceKind kind) const { return *panes_[kind].view; }
  /// The listing that has or last had the focus.
  ListingView& active() const { return *active_; }
  QAction* toggleAction(TraceKind kind) const { return panes_[kind].toggle; }
  bool isShown(TraceKind kind) const { return toggleAction(kind)->isChecked(); }
  GraphView& graph() const { return graphPane_->view(); }
  GraphPane& graphPane() const { return *graphPane_; }
  RunStrip& strip() const { return *strip_; }
  QAction* graphAction() const { return graph_.toggle; }
  bool isGraphShown() const { return graph_.toggle->isChecked(); }
  /// From a listing to the selected op in the graph, and from there to its line.
  void switchGraph();
  void setGrouping(Grouping grouping);
  void setShortNames(bool on);
  void setNumbers(bool on);
  /// Which columns of words all listings show, and how wide.
  void setColumnChoices(const ColumnChoices& choices);
  const ColumnChoices& columnChoices() const { return choices_; }
  /// What the context menu of the columns' titles offers.
  void setColumnMenu(QMenu* menu) { columnMenu_ = menu; }
  /// The number next to each line of all listings.
  void setColumn(OpFigure kind, bool isChosen);
  /// Shows the op: in the active listing if it is there, else in one that shows it, opening one if need be; focuses
  /// that listing. While the graph has the focus it is shown there.
  void goTo(BoundSymbolId op);
  /// Has the keyboard where a widget that had it is no longer in sight.
  void takeFocusFrom(const QWidget* hidden);
  /// Selects the first op of the open document where none is selected; all listings show their beginning.
  void begin();
  /// Selects the op; where a listing has the focus and does not have the op, an open one that has it gets the focus.
  void follow(BoundSymbolId op);

  /// Says where the backward comes from, in its title and the title's tooltip; empty: of the trace itself.
  void setBackwardSource(const QString& source, const QString& explanation);

  /// Puts a widget at the right end of the row of switches; `stretch` is its share of the room that is left.
  void addToSwitches(QWidget* widget, int stretch = 0) { switches_->addWidget(widget, stretch); }

  void showFind();
  void findNext(bool forward);

  QByteArray saveLayout() const { return splitter_->saveState(); }
  void restoreLayout(const QByteArray& state) { splitter_->restoreState(state); }
  /// Brings the switches' states and tooltips up to date.
  void refreshToggles() { toggled(); }
  /// Forward and backward, equally wide. Joint and computation are a key away.
  void resetLayout();
  /// Of every listing that is shown: one side alone would not be what a person meant.
  void setAllFolded(bool on);

 Q_SIGNALS:
  void jumpRequested(retrograd::BoundSymbolId op);
  /// A place of the run was chosen in the strip.
  void placeChosen(retrograd::BoundSymbolId op);
  void breakpointRequested(retrograd::BoundSymbolId op);
  /// A person sized a column.
  void columnChoicesChanged();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  struct Pane {
    QWidget* frame = nullptr;
    ElidedLabel* title = nullptr;
    ListingView* view = nullptr;
    QAction* toggle = nullptr;
  };

  Pane makePane(TraceKind kind);
  void makeGraphPane();
  void placePane(Pane& pane, QWidget* content, const QString& toggleText);
  QWidget* makeHeader(ListingView* view);
  QWidget* makeSwitches();
  QWidget* makeFindBar();
  void toggled();
  void updateTitles();
  void setActive(ListingView* view);
  void findDone(bool found, bool wrapped);
  void graphFindDone(int count, int current);
  /// The request of the find bar; returns what is wrong with it.
  std::optional<LinePattern> findPattern();
  BoundSymbolId shownFor(BoundSymbolId op) const;
  /// The open listing that has the op, the active one before others.
  std::optional<TraceKind> openListingOf(BoundSymbolId op) const;

  ViewContext context_;
  QString backwardSource_, backwardExplanation_;
  EnumArray<TraceKind, Pane, 4> panes_;
  Pane graph_;  ///< without a listing
  GraphPane* graphPane_ = nullptr;
  RunStrip* strip_ = nullptr;
  ColumnChoices choices_;
  QMenu* columnMenu_ = nullptr;
  ListingView* active_ = nullptr;
  bool graphIsActive_ = false;  ///< it had the focus after the active listing: what is searched
  QSplitter* splitter_ = nullptr;
  QWidget* findBar_ = nullptr;
  QHBoxLayout* switches_ = nullptr;
  QLabel* switchesLabel_ = nullptr;
  QLineEdit* findText_ = nullptr;
  QCheckBox* findExpression_ = nullptr;
  QLabel* findState_ = nullptr;
};

}  // namespace retrograd::views
