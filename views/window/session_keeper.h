#pragma once
#include <QPointer>
#include <QTimer>
#include <optional>

#include "views/settings/last_session.h"

namespace retrograd::views {

class MainWindow;
struct Shared;

/// Keeps the last session of the windows that share settings, and knows them in the order in which they were opened.
/// Windows that close in one go, as when the program ends, are of one session; one that closes while others stay is no
/// longer part of it.
class SessionKeeper : public QObject {
  Q_OBJECT

 public:
  /// The one of these settings, made when first asked for; it lives as long as they do.
  static SessionKeeper& of(QSettings* settings);

  LastSession& session() { return session_; }
  QList<MainWindow*> windows() const;
  void add(MainWindow* window);
  /// Opens the record's file in the window and, once it is there, shows of it what was shown.
  void restore(MainWindow* window, const WindowRecord& record);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  struct Entry {
    QPointer<MainWindow> window;
    std::optional<WindowRecord> pending;  ///< while its file is still being opened
  };

  explicit SessionKeeper(QSettings* settings);
  Entry* entryOf(const MainWindow* window);
  void opened(MainWindow* window, bool well);
  /// Nothing where the window has no file.
  std::optional<WindowRecord> recordOf(const Entry& entry) const;
  void save();
  void settle();

  LastSession session_;
  std::vector<Entry> entries_;
  std::vector<WindowRecord> closing_;  ///< of windows that closed since the event loop was last idle
  bool anyClosed_ = false;             ///< and what that means for the session is not settled
  QTimer soon_;
};

/// Opens the windows of the last session, without those whose files are gone, and says in one which these are. No
/// window where there was none.
QList<MainWindow*> reopenLastSession(const Shared& shared);

}  // namespace retrograd::views
