#pragma once
#include <QByteArray>
#include <QSettings>
#include <QString>
#include <optional>
#include <vector>

#include "core/pipeline/cut_request.h"
#include "views/session/engine.h"

namespace retrograd::views {

/// What a window showed, to be shown again at the next start. Execution is not part of it: a restored document stands at its start.
struct WindowRecord {
  OpenRequest request;
  QByteArray geometry;
  QByteArray arrangement;  ///< as MainWindow::arrangement()
  QString selected;        ///< as opText() writes it; empty: none
  int active = 0;          ///< TraceKind of the listing that had the focus
  std::optional<CutRequest> cuts;  ///< the pipeline stages; none where nothing was cut
};

/// The windows of the last session in the settings, in the order in which they were opened.
class LastSession {
 public:
  explicit LastSession(QSettings* settings) : settings_(settings) {}

  /// Whether they are opened again at a start without files; they are unless the user said otherwise.
  bool isWanted() const;
  void setWanted(bool on);
  void save(const std::vector<WindowRecord>& windows);
  /// What cannot be read any more is left out.
  std::vector<WindowRecord> windows() const;

  /// A start that ends between these two has failed, and the next one does not try again.
  void beginRestoring();
  void endRestoring();
  bool failedToRestore() const;

 private:
  QSettings* settings_;
};

/// An op in words that find it again in a later derivation; empty for none.
QString opText(const Analysis& analysis, BoundSymbolId op);
/// The op of those words; an invalid id where it is no longer there.
BoundSymbolId opOfText(const Analysis& analysis, const QString& text);

}  // namespace retrograd::views
