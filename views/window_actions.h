#pragma once
#include <QAction>
#include <QActionGroup>
#include <QMenu>
#include <QObject>

#include "views/view_context.h"

namespace retrograd::views {

/// Every command of a window as an action. update() enables each or says why it is not.
class WindowActions : public QObject {
  Q_OBJECT

 public:
  WindowActions(ViewContext context, QWidget* window);

  QAction *open, *openWindow, *reload, *inputs, *close, *quit;
  QAction *origin, *back, *forward, *toExecution, *find, *findNext, *findPrevious, *goTo, *palette;
  QAction *references, *nextUse, *previousUse;
  QAction *resume, *resumeBack, *pause, *stop, *stepOver, *stepOverBack, *stepInto, *stepIntoBack, *stepOut, *stepOutBack, *toCursor, *restart, *breakpoint,
      *breakOnBad;
  QAction *recompute, *save, *walkToRoot, *checkRun, *checkGradient, *terms, *compare, *watch, *fill, *saveContents;
  QAction *shortNames, *foldAll, *unfoldAll, *resetLayout;
  QAction *keys, *about;
  QActionGroup *grouping, *themes;

  void update();
  /// Why a disabled action is disabled, by the key pressed; empty where no such action is.
  QString reasonFor(const QKeySequence& keys) const;
  const QList<QAction*>& all() const { return all_; }

 private:
  QAction* add(const char* name, const QString& text, const QString& tip, const QKeySequence& key, const char* icon = nullptr);
  void addFileActions();
  void addGoActions();
  void addRunActions();
  void addValueActions();
  void addViewActions();
  void addChoice(QActionGroup* group, const char* name, const QString& text, int data, bool checked);
  void updateRun();
  void updateQuestions();
  void updateIcons();
  /// Enables the action where `reason` is empty; its tooltip and status tip tell what it does or why it cannot.
  static void allow(QAction* action, const QString& reason);

  ViewContext context_;
  QWidget* window_;
  QList<QAction*> all_;
};

}  // namespace retrograd::views
