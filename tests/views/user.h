#pragma once
#include <QTreeView>

#include "tests/views/window_fixture.h"

namespace retrograd::views {

/// Someone before the window: has a keyboard and a mouse, and sees what is on the screen. No method does for them what
/// hands would do.
class User {
 public:
  explicit User(WindowFixture& fixture) : f_(fixture), window_(fixture.window()) {}

  // The keyboard: what is pressed goes to the widget with the focus.
  void press(int key, Qt::KeyboardModifiers modifiers = Qt::NoModifier);
  void type(const QString& text);
  /// Presses a key until the line that the focus is on says all of the words; false when it never does.
  bool pressUntil(int key, const QStringList& words, Qt::KeyboardModifiers modifiers = Qt::NoModifier);

  // The mouse.
  void click(QWidget* widget, QPoint at = {});
  void clickButton(QWidget& root, const QString& text);
  /// Along menus: "File", "Open...".
  void clickMenu(const QStringList& path);
  void clickTool(const QString& tip);
  void clickTab(const QString& title);
  void choose(class QComboBox* box, const QString& text);
  /// Into the first line with all of the words, below those on the screen too; the wheel brings it up. With `word`, on
  /// that word.
  bool clickLine(TraceKind kind, const QStringList& words, const QString& word = {});
  void doubleClickRow(QTreeView& tree, const QString& text);
  /// A file from the desktop, which delivers it to the window; that finds the widget under the pointer (none: the
  /// window's middle).
  void drop(const QString& path, const QWidget* onto = nullptr);

  // The eyes.
  /// The window that is in front, as a window manager leaves it when others close: a dialog, or the main window.
  QWidget* front();
  /// The line under the cursor of the listing with the focus as it is heard; empty where no listing has it.
  QString line() const;
  QString focus() const;  ///< accessible name of what has the focus
  /// Lines on the screen that say all of the words.
  QStringList lines(TraceKind kind, const QStringList& words) const;
  /// The text above a listing: "Backward  ·  12 of 122 ops".
  QString title(TraceKind kind) const;
  QString label(const QString& name) const;
  QString status() const;
  /// All that a tree shows, a row a line; empty where it is behind another.
  QStringList rows(const QString& tree) const;

 private:
  WindowFixture& f_;
  MainWindow& window_;
};

}  // namespace retrograd::views
