#pragma once
#include <QDockWidget>
#include <QLabel>
#include <QMainWindow>
#include <QSettings>
#include <span>

#include "views/busy_panel.h"
#include "views/file_watch.h"
#include "views/listings_area.h"
#include "views/message_bar.h"
#include "views/recent_files.h"
#include "views/welcome_page.h"
#include "views/window_actions.h"

namespace retrograd::views {

class ChecksDock;
class CompareDock;
class FindingsDock;
class QuickOpen;
class ReferencesDock;
class WhyDock;

/// What all windows of the program share.
struct Shared {
  std::shared_ptr<Worker> worker;
  std::shared_ptr<Engine> engine;
  Theme* theme = nullptr;
  QSettings* settings = nullptr;
};

/// The window of one file: listings in the middle, docks around, commands in menus and tool bar. It owns the shared objects that
/// the views subscribe to and wires commands to them; it knows nothing of how a trace is shown. What can stand by itself is a WindowPart,
/// which adds its docks, commands and menu entries from a file of its own.
class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  explicit MainWindow(Shared shared);
  ~MainWindow() override;

  /// Opens in this window, in place of what is open.
  void openFile(const QString& path);
  /// Jumps to the origin of the op, or back from where the last such jump led.
  void goToOrigin(BoundSymbolId op);

  /// A dock around the content, which gets a jumpRequested(BoundSymbolId) signal connected where it has one; listed in View > Docks.
  /// `behind` is the object name of a dock that it shares a place with.
  template <class Content>
  QDockWidget* addDock(Content* content, const QString& title, const char* name, Qt::DockWidgetArea area, const char* behind = nullptr) {
    if constexpr (requires { &Content::jumpRequested; }) connect(content, &Content::jumpRequested, this, &MainWindow::jumpTo);
    return placeDock(content, title, name, area, behind);
  }
  /// The shared objects for a dock of this name that can be pinned: with a PinnedSelection in place of the window's. Commands in `releasing`
  /// ask about what is selected in the window, and so end it.
  ViewContext pinnable(const char* dock, const QList<QAction*>& releasing = {});
  /// "file", "view", "go", "run", "value" or "help"; another name makes a menu with that title before Help.
  QMenu* menu(const char* name, const QString& title = {});
  /// Brings the dock of this content to the front, opened if need be.
  void showDock(QWidget* content);
  /// Where docks stand and which listings are shown, as bytes for the settings.
  QByteArray arrangement() const;
  /// False, and nothing changes, where these are no bytes of arrangement().
  bool arrange(const QByteArray& arrangement);
  /// Listings and docks as they come with the program; all docks are there.
  void resetLayout();
  /// Shows the op, and remembers where the jump came from.
  void jumpTo(BoundSymbolId op);
  const Shared& shared() const { return shared_; }
  const QList<QDockWidget*>& docks() const { return docks_; }

  const ViewContext& context() const { return context_; }
  ListingsArea& listings() { return *listings_; }
  WindowActions& actions() { return *actions_; }
  MessageBar& messages() { return *messages_; }
  BusyPanel& busy() { return *busy_; }
  WhyDock& why() { return *why_; }
  FindingsDock& findings() { return *findings_; }
  QuickOpen& quickOpen() { return *quickOpen_; }
  ChecksDock& checks() { return *checks_; }
  CompareDock& compare() { return *compare_; }
  /// "forward 212/535 · live 3.1 MiB", as in the tool bar.
  QString positionText() const { return position_->text(); }

 protected:
  void closeEvent(QCloseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

 private:
  void makeMenus();
  void makeToolBar();
  void makeDocks();
  /// Which docks share a place, which stand in front, how wide they are.
  void arrangeDocks();
  void makeStatusBar();
  void connectCommands();
  void connectRun();
  void connectQuestions();
  void connectFinding();
  void connectMarks();
  void connectState();
  void documentChanged();
  void executionChanged();
  void askForFile(bool newWindow);
  void editInputs();
  /// From the selected value where it is known to be bad, else from another bad value of the selected op, else from any.
  void walkToRoot();
  void fillValue();
  void saveContents();
  QDockWidget* placeDock(QWidget* content, const QString& title, const char* name, Qt::DockWidgetArea area, const char* behind);
  /// "Stopped at the breakpoint 'kind mm after 2'".
  QString hitText() const;
  void toggleBreakpoint(BoundSymbolId op);
  void saveState();
  void restoreState();

  Shared shared_;
  ExecutionState execution_;
  Selection selection_;
  JumpHistory history_;
  ViewContext context_;
  DocumentController* controller_;
  WindowActions* actions_ = nullptr;
  ListingsArea* listings_ = nullptr;
  WelcomePage* welcome_ = nullptr;
  MessageBar* messages_ = nullptr;
  BusyPanel* busy_ = nullptr;
  QLabel* position_ = nullptr;
  QLabel* inputsLabel_ = nullptr;
  WhyDock* why_ = nullptr;
  FindingsDock* findings_ = nullptr;
  ReferencesDock* references_ = nullptr;
  QuickOpen* quickOpen_ = nullptr;
  ChecksDock* checks_ = nullptr;
  CompareDock* compare_ = nullptr;
  RecentFiles* recent_ = nullptr;
  FileWatch watch_;
  QList<QDockWidget*> docks_;
  QMap<QByteArray, QMenu*> menus_;
  QByteArray defaultLayout_;
  std::vector<OpKey> selectedKey_;  ///< of the selected op, to find it after a reload
  QString openPath_;
};

}  // namespace retrograd::views
