#pragma once
#include <QFrame>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QMenu>
#include <QPointer>
#include <QStringListModel>
#include <QTimer>

#include "views/session/view_context.h"

namespace retrograd::views {

/// What hangs below the filter's line while one types: what is wrong, and words that could be there.
class FilterHelp : public QFrame {
  Q_OBJECT

 public:
  explicit FilterHelp(QWidget* window);

  void showProblem(const QString& text);
  void showCandidates(const QStringList& words);
  /// What there is to show below `line`; hides where there is nothing.
  void place(const QWidget& line);
  QString problem() const { return problem_->text(); }
  QListView& list() { return *list_; }
  /// The word that is chosen, or the first one with `orFirst`; empty where there is none.
  QString chosen(bool orFirst) const;
  void move(int by);

 Q_SIGNALS:
  void clicked(const QString& word);

 private:
  QLabel* problem_;
  QListView* list_;
  QStringListModel* model_;
};

/// The line that the window's filter is typed into, with the menu of filters next to it. What is typed applies at once;
/// Enter keeps it and goes to the listing, Escape clears it and goes back.
class FilterBox : public QWidget {
  Q_OBJECT

 public:
  FilterBox(ViewContext context, QMenu* menu, QWidget* window);

  /// Gives the line the focus, which Escape gives back.
  void open();
  QLineEdit& line() { return *line_; }
  FilterHelp& help() { return *help_; }

 Q_SIGNALS:
  /// Enter: the filter stays, and the listings have the focus.
  void entered();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  bool keyPressed(int key, Qt::KeyboardModifiers modifiers);
  void edited();
  void applyNow();
  void accept(const QString& word);
  void complete();
  void showWords();
  void showProblem(const std::optional<OpFilter::Problem>& problem);
  /// The fault of the line, unless it is just being written and `words` could complete it.
  void judge(const QStringList& words);
  void leave(bool clear);

  ViewContext context_;
  QLineEdit* line_;
  QAction* warning_;
  FilterHelp* help_;
  QTimer soon_;
  PoolJob job_;
  int wordBegin_ = 0, wordEnd_ = 0;  ///< characters that a candidate takes the place of
  QPointer<QWidget> focusBefore_;
};

}  // namespace retrograd::views
