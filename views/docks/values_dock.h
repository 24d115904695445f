#pragma once
#include <QCheckBox>
#include <QSplitter>
#include <QTreeView>

#include "views/docks/elements_view.h"
#include "views/docks/panel.h"
#include "views/models/values_model.h"
#include "views/widgets/dock_tree.h"

namespace retrograd::views {

/// Values of the selected op as they were at it, wherever execution is: statistics of each, and of the chosen one
/// the histogram and a slice of its contents as table or picture, on request with its gradient (or what it is the
/// gradient of) at the side. Asks the worker only while nothing runs.
class ValuesDock : public Panel {
  Q_OBJECT

 public:
  /// `actions` are for the context menu of the values.
  ValuesDock(ViewContext context, const QList<QAction*>& actions, QWidget* parent = nullptr);
  QVariantMap saveState() const override;
  void restoreState(const QVariantMap& state) override;

  /// Finds the element on the worker, shows it and says where it is.
  void goToElement(Element wanted);
  /// Why it cannot now; empty where it can.
  QString whyNoElement(Element wanted) const;
  void addElementActions(const QList<QAction*>& actions) { elements_->addElementActions(actions); }

 Q_SIGNALS:
  /// Other elements are shown, or none.
  void elementsChanged();
  void elementFound(const QString& words);

 protected:
  void refresh() override;
  void forget() override;
  void leave() override;
  bool eventFilter(QObject* watched, QEvent* event) override;
  void activate(const QModelIndex& row) override;

 private:
  QWidget* makeDetail();
  /// The chosen value's elements are next to the table, or below it where the table would lose statistics.
  void arrange();
  /// Gives the table what its columns need, and its elements the rest, until a person moves the border between them.
  void divideRoom();
  /// Rows of the selected op, with the selected value as the current one, else the first output, which the op is there
  /// for. Selects nothing.
  void follow();
  void choose(int row);
  void show(const std::shared_ptr<const ValueReport>& report);
  void showWhatRan();
  void showDetail(const ValueReport& report);
  /// "weight  f32[3, 4]  48 B", or why it is not there.
  void showElements(ElementsView& elements, const QString& label, const ValueDetail& detail);
  void clearDetail(const QString& reason);
  QString noOpText() const { return unlessClosed(tr("Select an op to see its values")); }
  ValueId chosen() const;

  ValuesModel* model_;
  QTreeView* table_;
  ColumnFitter* columns_;
  QSplitter* splitter_;
  ElementsView* elements_;
  ElementsView* beside_;
  QCheckBox* picture_;
  QCheckBox* withGradient_;
  BoundSymbolId op_;
  int tableWidth_ = 0;          ///< of the widest columns so far: the border does not move back and forth from op to op
  bool isShareChosen_ = false;  ///< a person moved the border
  bool following_ = false;      ///< the current row changes because the selection did
};

}  // namespace retrograd::views
