#pragma once
#include <QAbstractItemView>
#include <QDockWidget>
#include <QLabel>
#include <QMenu>
#include <QTimer>
#include <QVariantMap>
#include <QWidget>

#include "core/questions/update_numbers.h"
#include "views/session/view_context.h"

namespace retrograd::views {

/// A panel of the window: what a dock holds, one view of the open document.
///
/// The contract, kept here so that no panel keeps it by hand:
/// - A panel works only in sight. Not in sight are a closed dock, one behind another's tab, and those of a hidden
/// window.
/// - What changes meanwhile is remembered (invalidate()) and shown once the panel comes into sight.
/// - It shows nothing of a document that is closed or was replaced: forget() is called before the document goes, and
/// answers for it are dropped.
/// - It has one question of a name at a time. A newer one takes the place of an older, of which nothing more is heard.
/// - Where its list is empty, emptyText() says why.
/// - saveState() and restoreState() keep what a person arranged in it from one start to the next.
/// - It writes the selection when a person chooses something in it, never because the selection or a value changed.
class Panel : public QWidget {
  Q_OBJECT

 public:
  /// `name` is that of its dock ("dock-NAME"), its settings and its questions.
  Panel(ViewContext context, const char* name, QWidget* parent = nullptr);
  ~Panel() override;

  const QString& name() const { return name_; }
  /// The dock that it is in, alone or as a part of another panel; null where it is in none.
  QDockWidget* dock() const;
  /// A person who looks at the window sees it.
  bool inSight() const { return inSight_; }
  /// It is about to refresh, or waits for an answer.
  virtual bool busy() const;

  /// What a person arranged: the widths of columns, and what panels add.
  virtual QVariantMap saveState() const;
  /// Ignores what is missing or does not fit.
  virtual void restoreState(const QVariantMap& state);

 Q_SIGNALS:
  void jumpRequested(retrograd::BoundSymbolId op);
  /// The context menu of a row of the panel's list, to which others may add.
  void menuAboutToShow(QMenu* menu, const QModelIndex& row);

 protected:
  /// What a question is for.
  enum class Asked {
    inSight,  ///< to fill the panel: nobody wants the answer once it is out of sight
    anyhow    ///< a person wants to know
  };
  enum class QuestionState { none, asked, answered, failed, cancelled };
  using Failed = std::function<void(const QString&)>;

  /// Says that what the panel shows is out of date: refresh() follows, at once or after `delay()`, or when the panel
  /// comes into sight.
  void invalidate();
  /// Has several changes within this time followed by one refresh().
  void setDelay(int milliseconds) { soon_.setInterval(milliseconds); }
  /// Shows the document, the selection and the run as they are now. Called in sight only.
  virtual void refresh() {}
  /// Lets go of all that is of the document, which is about to go.
  virtual void forget() {}
  /// The panel goes out of sight. Its questions for this have been cancelled.
  virtual void leave() {}

  /// The open document if the selection is of it; null while none is open or another is about to take its place.
  std::shared_ptr<const OpenDocument> document() const;

  /// Asks on the worker. `question` names what is asked, for this panel; `title` shows in the status bar. `failed`
  /// hears why there is no answer, and an empty text where the question was cancelled.
  void ask(Asked asked, const QString& question, const QString& title, Questions::Question work, Failed failed = {});
  /// The same for a person, with a line that says how far it is: `busy` while it is asked; "Cancelled", or the error
  /// behind "! ", where there is no answer.
  void askAloud(QLabel* line, const QString& question, const QString& title, const QString& busy,
                Questions::Question work);
  using Updates = std::map<std::string, UpdateNumbers>;
  /// Asks once, when the run of a recorded step is known, what the last update of its optimizer did.
  void askForUpdates(const std::shared_ptr<const Analysis>& analysis, std::function<void(const Updates&)> told);
  void cancel(const QString& question) { context_.controller->questions().cancel(tag(question)); }
  QuestionState state(const QString& question) const { return questions_.value(question).state; }

  /// Has the widget fill the panel.
  void fillWith(QWidget* widget);
  /// A list of the panel. A row that names an op leads there by Enter or a double click; its actions are in its context
  /// menu, which can be extended.
  void addList(QAbstractItemView* list);
  /// The list that the panel is about: also, emptyText() shows over it while it has no rows, and the widths of its
  /// columns are kept.
  void setList(QAbstractItemView* list);
  /// A click on a row selects its op and, where it names one, its value.
  void selectByClick(QAbstractItemView* list);
  /// Why the list is empty.
  virtual QString emptyText() const { return {}; }
  /// Has emptyText() asked again.
  void updateEmptyText();
  /// "No file is open" while that is so, else the text.
  QString unlessClosed(const QString& text) const;
  /// A double click or Enter. The op of the row by default; an invalid one leads nowhere.
  virtual void activate(const QModelIndex& row);

  bool event(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

  const ViewContext context_;

 private:
  struct AskedQuestion {
    Asked asked = Asked::anyhow;
    QuestionState state = QuestionState::none;
  };

  QString tag(const QString& question) const { return name_ + QLatin1Char('/') + question; }
  void followDock();
  void updateSight();
  void showMenu(QAbstractItemView* list, class QContextMenuEvent* event);

  QString name_;
  QTimer soon_;
  QList<QMetaObject::Connection> dockConnections_;
  bool inFront_ = true;  ///< its dock, if it has one, is not behind another's tab
  bool inSight_ = false;
  bool stale_ = true;
  QHash<QString, AskedQuestion> questions_;
  QList<QAbstractItemView*> lists_;
  QAbstractItemView* list_ = nullptr;  ///< of lists_, the one that the panel is about
  QLabel* empty_ = nullptr;
};

}  // namespace retrograd::views
