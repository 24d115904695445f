#pragma once
#include <QByteArray>
#include <QLockFile>
#include <QSettings>
#include <QString>
#include <memory>
#include <optional>
#include <vector>

#include "core/cut/cut_request.h"
#include "views/engine/engine.h"
#include "views/settings/settings.h"

namespace retrograd::views {

/// What a window showed, to be shown again at the next start. Execution is not part of it: a restored document begins
/// at its start.
struct WindowRecord {
  OpenRequest request;
  QByteArray geometry;
  QByteArray arrangement;          ///< as MainWindow::arrangement()
  QString selected;                ///< as opText() writes it; empty: none
  int active = 0;                  ///< TraceKind of the listing that had the focus
  std::optional<CutRequest> cuts;  ///< the pipeline stages; none where nothing was cut
};

/// The windows of the last session in the settings, in the order in which they were opened.
class LastSession {
 public:
  explicit LastSession(QSettings* settings);

  /// Whether they are opened again at a start without files; they are unless the user said otherwise.
  bool isWanted() const { return kept::reopensSession.of(*settings_); }
  void setWanted(bool on) { kept::reopensSession.keep(*settings_, on); }
  /// Writes nothing while another instance of the program opens the windows of the session.
  void save(const std::vector<WindowRecord>& windows);
  /// What cannot be read any more is left out.
  std::vector<WindowRecord> windows() const;

  /// A start that ends between these two has failed, and the next one does not try again. While it has not ended, it is
  /// not failed: another instance that starts meanwhile leaves the session alone.
  void beginRestoring();
  /// Does nothing while another instance is between the two.
  void endRestoring();
  bool failedToRestore() const { return kept::restoringSession.of(*settings_) && !isRestoredElsewhere(); }
  bool isRestoredElsewhere() const;

 private:
  QSettings* settings_;
  std::unique_ptr<QLockFile>
      lock_;  ///< held while this instance restores; the system knows whether its process still runs
};

/// An op in words that find it again in a later derivation; empty for none.
QString opText(const Analysis& analysis, BoundSymbolId op);
/// The op of those words; an invalid id where it is no longer there.
BoundSymbolId opOfText(const Analysis& analysis, const QString& text);

}  // namespace retrograd::views
