#pragma once
#include <QObject>

#include "views/session/view_context.h"

namespace retrograd::views {

/// The first journey through a trace, in steps. It watches what is really done, by whatever key, menu or click, and
/// goes on when a step's aim is reached.
class Tour : public QObject {
  Q_OBJECT

 public:
  enum class Step { chooseBackward, toOrigin, andBack, crossBorder, whySaved, stepBack };
  static constexpr int count = 6;

  explicit Tour(ViewContext context, QObject* parent = nullptr);

  /// Of the open document, from the first step on.
  void start();
  void end();
  /// To the next step without its being done.
  void skip();
  bool active() const { return active_; }
  Step step() const { return step_; }
  /// All steps are done; the tour is active until it is ended.
  bool finished() const { return finished_; }
  /// Why the open document has no tour; empty where it has one.
  static QString whyNot(const OpenDocument* document);

 Q_SIGNALS:
  /// Begun, a step further, or over.
  void changed();

 private:
  void watch();
  bool done() const;
  void go(int to);

  ViewContext context_;
  bool active_ = false, finished_ = false;
  Step step_ = Step::chooseBackward;
  BoundSymbolId chosen_;          ///< the backward op of the first step
  std::size_t positionThen_ = 0;  ///< where execution was when the step began
  BoundSymbolId opThen_;          ///< what was selected then
  ValueId valueThen_;
};

}  // namespace retrograd::views
