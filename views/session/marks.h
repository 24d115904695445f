#pragma once
#include <QObject>
#include <QThreadPool>
#include <functional>

#include "views/session/open_document.h"
#include "views/session/value_report.h"

namespace retrograd::views {

/// What the user marks in the open document: breakpoints and watches, which it writes to the ExecutionState. A run that
/// goes on heeds each change of the breakpoints before its next op.
class Marks : public QObject {
  Q_OBJECT

 public:
  Marks(OpenState& state, QObject* parent) : QObject(parent), state_(state) { words_.setMaxThreadCount(1); }

  /// Takes away the breakpoints at this op, or sets one. Returns false, and says why in `problem`, where the op never
  /// runs.
  bool toggleBreakpoint(BoundSymbolId op, QString* problem = nullptr);
  /// Sets one from words, as parseBreakpoint() reads them; `done` gets the reason why not, or an empty text.
  void addBreakpoint(const QString& words, std::function<void(const QString&)> done);
  /// Has another condition for one, in words as withCondition() reads them; returns why not, or an empty text.
  QString setCondition(std::size_t index, const QString& words);
  void removeBreakpoint(std::size_t index);
  void enableBreakpoint(std::size_t index, bool on);

  void addWatch(ValueId value);
  /// Watches the values of these names; `done` gets the names that no value has.
  void addWatches(const QStringList& names, std::function<void(const QStringList&)> done);
  void removeWatch(ValueId value);

  /// Breakpoints and watches of the open document that `now` has too, found by their keys.
  struct Kept {
    std::vector<Breakpoint> breakpoints;
    std::vector<ValueId> watches;
  };
  Kept keptIn(const OpenDocument& now) const;
  void restore(Kept kept);
  /// Lets go of all marks: their document goes.
  void clear();
  /// Notes which values have a NaN or Inf in them, and which have none any more.
  void noteBadValues(const ValueReport& report);

 private:
  void setBreakpoints(std::vector<Breakpoint> breakpoints);
  /// Reads words apart from the thread of the window: that walks the traces, but needs no LibTorch, so it does not wait
  /// for the worker either, where a long run may be under way. `read` returns what is then done in the window's thread
  /// if the same document is open.
  void readApart(std::function<std::function<void(Marks&)>(const Analysis&)> read);

  OpenState& state_;
  QThreadPool words_;  ///< one thread: breakpoints are read from their words, and set, in the order in which they were
                       ///< asked for
};

}  // namespace retrograd::views
