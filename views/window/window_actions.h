#pragma once
#include <QAction>
#include <QActionGroup>
#include <QMenu>
#include <QObject>
#include <functional>
#include <map>

#include "views/session/view_context.h"

namespace retrograd::views {

/// Every command of a window as an action. update() enables each or says why it is not.
class WindowActions : public QObject {
  Q_OBJECT

 public:
  WindowActions(ViewContext context, QWidget* window);

  QAction *open, *openWindow, *reload, *inputs, *close, *quit;
  QAction *undo, *redo;
  QAction *origin, *back, *forward, *toExecution, *find, *findNext, *findPrevious, *goTo, *palette;
  QAction *references, *nextUse, *previousUse;
  QAction *resume, *resumeBack, *pause, *stop, *stepOver, *stepOverBack, *stepInto, *stepIntoBack, *stepOut,
      *stepOutBack, *toCursor, *restart, *breakpoint, *breakOnBad;
  QAction *recompute, *save, *walkToRoot, *checkRun, *checkGradient, *terms, *compare, *watch, *fill, *saveContents;
  QAction *shortNames, *foldAll, *unfoldAll, *resetLayout;
  QAction *keys, *about;
  QActionGroup *grouping, *themes;

  /// A command named "action-NAME". It shows in the palette and in the list of keys; menus are its part's business.
  QAction* add(const char* name, const QString& text, const QString& tip, const QKeySequence& key,
               const char* icon = nullptr);
  /// Has update() ask why the action cannot be used now; an empty text enables it.
  void allowUnless(QAction* action, std::function<QString()> reason);
  /// Enables each action, or notes why it is not; asked for after each change of document, selection, execution or
  /// history.
  void update();
  /// Has tooltips name the keys again.
  void refreshTips();
  /// Why a disabled action is disabled, by the key pressed; empty where no such action is.
  QString reasonFor(const QKeySequence& keys) const;
  /// To recompute the value gains nothing, as long as this document is open.
  void noteNoGain(ValueId value, const QString& reason);
  /// "It runs: stop it first (Shift+F5)", with the key that stop has now.
  QString stopFirst() const;
  const QList<QAction*>& all() const { return all_; }

 private:
  void addFileActions();
  void addGoActions();
  void addRunActions();
  void addValueActions();
  void addViewActions();
  void addChoice(QActionGroup* group, const char* name, const QString& text, int data, bool checked);
  void updateEdits();
  void updateRun();
  void updateQuestions();
  void updateIcons();
  /// Enables the action where `reason` is empty; its tooltip and status tip say what it does or why it cannot.
  static void allow(QAction* action, const QString& reason);

  ViewContext context_;
  QWidget* window_;
  QList<QAction*> all_;
  std::map<ValueId, QString> noGain_;                                   ///< what is known of values to recompute
  std::vector<std::pair<QAction*, std::function<QString()>>> reasons_;  ///< of parts' actions
};

}  // namespace retrograd::views
