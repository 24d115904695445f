#pragma once
#include <QDockWidget>
#include <QLabel>
#include <QMainWindow>
#include <QSettings>
#include <functional>

#include "views/canvases/first_lines_view.h"
#include "views/docks/panel.h"
#include "views/session/breakpoint_key.h"
#include "views/widgets/busy_panel.h"
#include "views/widgets/message_bar.h"
#include "views/window/listings_area.h"
#include "views/window/recent_files.h"
#include "views/window/start_page.h"
#include "views/window/window_actions.h"

namespace retrograd::views {

class QuickOpen;

/// What all windows of the program share.
struct Shared {
  std::shared_ptr<Worker> worker;
  std::shared_ptr<Engine> engine;
  Theme* theme = nullptr;
  QSettings* settings = nullptr;
};

/// The window of one file: listings in the middle, docks around, commands in menus and tool bar. It owns the shared
/// objects that the views subscribe to and wires commands to them; it knows nothing of how a trace is shown. What can
/// be apart from it is a WindowPart, which adds its docks, commands and menu entries from a file of its own.
class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  explicit MainWindow(Shared shared);
  ~MainWindow() override;

  /// Opens in this window, instead of what is open.
  void openFile(const QString& path);
  /// A dropped file is given to this first; true: it was used otherwise than as a document to open. One part of the
  /// window sets it.
  void setDropHandler(std::function<bool(const QString& path)> handler) { takesDrop_ = std::move(handler); }
  /// openFile() asks this first about a path; true: it is not a document, and was taken. One part of the window sets
  /// it.
  void setOpener(std::function<bool(const QString& path)> opener) { opensOtherwise_ = std::move(opener); }
  /// Into the menu of files opened recently.
  void addRecent(const QString& path) { recent_->add(path); }
  /// While no document is open, the panel has the window to itself instead of the start page; null gives it back.
  /// `path`: the file that it shows.
  void showAlone(Panel* panel, const QString& path);
  bool hasPanelAlone() const { return alone_ != nullptr; }
  /// The start page in the place of what is open, which stays open; Esc, a jump or the command again brings it back.
  void showStartPage(bool on);
  bool showsStartPage() const { return startWanted_; }
  /// Jumps to the origin of the op, or back from where the last such jump led.
  void goToOrigin(BoundSymbolId op);

  /// A dock around the panel, listed in View > Docks. `behind` is a panel whose place it shares.
  template <class P>
  P* addPanel(P* panel, const QString& title, Qt::DockWidgetArea area, const Panel* behind = nullptr) {
    panels_.insert(&P::staticMetaObject, panel);
    placePanel(panel, title, area, behind);
    return panel;
  }
  /// A panel that another one is made with, and shows as a part of itself.
  template <class P>
  P* addPart(P* panel) {
    panels_.insert(&P::staticMetaObject, panel);
    connect(panel, &Panel::jumpRequested, this, &MainWindow::jumpTo);
    return panel;
  }
  /// The panel of this class; there from when its part is installed.
  template <class P>
  P& panel() const {
    return *static_cast<P*>(panels_.value(&P::staticMetaObject));
  }
  /// The shared objects for a dock of this name that can be pinned: with a PinnedSelection instead of the window's.
  /// Commands in `releasing` ask about what is selected in the window, and so end it.
  ViewContext pinnable(const char* dock, const QList<QAction*>& releasing = {});
  /// "file", "view", "go", "run", "value" or "help"; another name makes a menu with that title before Help.
  QMenu* menu(const char* name, const QString& title = {});
  /// Brings the panel's dock to the front, opened if need be.
  void showPanel(const Panel& panel);
  /// The same for the panel of this name; false where there is none.
  bool showPanel(const QString& name);
  /// Has the command bring the panel to the front and then ask it this.
  template <class P, class Ask = void (*)(P*)>
  void runIn(QAction* action, P* panel, Ask ask = [](P*) {}) {
    connect(action, &QAction::triggered, panel, [this, panel, ask] {
      showPanel(*panel);
      std::invoke(ask, panel);
    });
  }
  /// Where docks are and which listings are shown, as bytes for the settings.
  QByteArray arrangement() const;
  /// False, and nothing changes, where these are not bytes of arrangement().
  bool arrange(const QByteArray& arrangement);
  /// Listings and docks as they come with the program for the kind of the open file.
  void resetLayout();
  /// Of the open file, else of the last one.
  FileKind layoutKind() const { return layoutKind_; }
  /// Shows the op, and remembers where the jump came from.
  void jumpTo(BoundSymbolId op);
  const Shared& shared() const { return shared_; }
  const QList<QDockWidget*>& docks() const { return docks_; }

  const ViewContext& context() const { return context_; }
  ListingsArea& listings() { return *listings_; }
  WindowActions& actions() { return *actions_; }
  MessageBar& messages() { return *messages_; }
  BusyPanel& busy() { return *busy_; }
  QuickOpen& quickOpen() { return *quickOpen_; }
  /// "forward 212/535 · live 3.1 MiB", as in the tool bar.
  QString positionText() const { return position_->text(); }

 Q_SIGNALS:
  /// The docks are there again: the first file has taken the place of the start page, which has the window to itself.
  void docksBack();
  /// Docks and listings are in their default places, in sizes that may be any.
  void layoutReset();

 protected:
  void closeEvent(QCloseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

 private:
  void makeCentre();
  /// The listings, else the first lines of what is being opened, else the start page.
  void showCentre();
  void makeMenus();
  void makeToolBar();
  void makeStatusBar();
  void connectCommands();
  void connectRun();
  void connectFinding();
  void connectMarks();
  void connectState();
  void closePopups();
  void documentChanged();
  void keepDocksAway(bool away);
  void executionChanged();
  void askForFile(bool newWindow);
  void editInputs();
  void placePanel(Panel* panel, const QString& title, Qt::DockWidgetArea area, const Panel* behind);
  static QDockWidget* dockOf(const Panel& panel) { return panel.dock(); }
  /// "Stopped at the breakpoint 'kind mm after 2'".
  QString badNumberText() const;
  QString hitText() const;
  void toggleBreakpoint(BoundSymbolId op);
  void saveState();
  void restoreState();
  /// The layout as a person left it for this kind of file, else as it comes; that of the last kind is kept.
  void useLayoutOf(FileKind kind);

  Shared shared_;
  ExecutionState execution_;
  Selection selection_;
  JumpHistory history_;
  ViewContext context_;
  DocumentController* controller_;
  WindowActions* actions_ = nullptr;
  ListingsArea* listings_ = nullptr;
  StartPage* startPage_ = nullptr;
  FirstLinesView* firstLines_ = nullptr;
  MessageBar* messages_ = nullptr;
  BusyPanel* busy_ = nullptr;
  QLabel* position_ = nullptr;
  QLabel* inputsLabel_ = nullptr;
  QuickOpen* quickOpen_ = nullptr;
  RecentFiles* recent_ = nullptr;
  QList<QDockWidget*> docks_;
  QHash<const QMetaObject*, Panel*> panels_;  ///< by class
  QMap<QByteArray, QMenu*> menus_;
  QByteArray defaultLayout_;
  FileKind layoutKind_ = FileKind::model;
  std::optional<QByteArray> withoutDocks_;  ///< while the start page has the window to itself: where the docks will be
  std::vector<OpKey> selectedKey_;          ///< of the selected op, to find it after a reload
  QString openPath_;
  std::function<bool(const QString&)> takesDrop_, opensOtherwise_;
  bool startWanted_ = false;  ///< the start page, though something is open
  Panel* alone_ = nullptr;    ///< has the window to itself while no document is open
};

}  // namespace retrograd::views
