#include "views/session/tour.h"

#include "views/session/why_report.h"

namespace retrograd::views {

Tour::Tour(ViewContext context, QObject* parent) : QObject(parent), context_(context) {
  connect(context_.selection, &Selection::changed, this, &Tour::watch);
  connect(context_.execution, &ExecutionState::changed, this, &Tour::watch);
  connect(context_.controller, &DocumentController::documentAboutToChange, this, &Tour::end);
}

QString Tour::whyNot(const OpenDocument* document) {
  if (!document) return tr("No file is open");
  if (!document->analysis->derived()) return tr("This file has no backward");
  return document->noRunReason;
}

void Tour::start() {
  if (!whyNot(context_.controller->document().get()).isEmpty()) return;
  active_ = true;
  finished_ = false;
  go(0);
}

void Tour::end() {
  if (!active_) return;
  active_ = false;
  Q_EMIT changed();
}

void Tour::skip() {
  if (active_ && !finished_) go(static_cast<int>(step_) + 1);
}

void Tour::go(int to) {
  finished_ = to >= count;
  if (!finished_) step_ = static_cast<Step>(to);
  positionThen_ = context_.execution->now().position;
  opThen_ = context_.selection->op();
  valueThen_ = context_.selection->value();
  Q_EMIT changed();
}

void Tour::watch() {
  const auto& now = context_.execution->now();
  if (!active_ || finished_ || now.running || !context_.controller->document()) return;
  if (!done()) return;
  if (step_ == Step::chooseBackward) chosen_ = context_.selection->op();
  go(static_cast<int>(step_) + 1);
}

bool Tour::done() const {
  const auto& document = *context_.controller->document();
  const auto& analysis = *document.analysis;
  const auto& tables = *analysis.document;
  const auto& now = context_.execution->now();
  const auto op = context_.selection->op();
  const auto isBackward = [&](BoundSymbolId id) { return id && isBackwardRole(tables.boundSymbol(id).origin.role); };
  const auto inBackward = [&](std::size_t position) { return position >= now.forwardSize; };  // the op that runs next
  switch (step_) {
    case Step::chooseBackward: return isBackward(op) && analysis.links.forwardOf(tables, op);
    case Step::toOrigin:
      // By the jump, not by a click on what happens to be there.
      return op && !isBackward(op) && context_.history->returnFrom(op);
    case Step::andBack: return isBackward(op) && (!chosen_ || op == chosen_ || context_.history->returnFrom(op));
    case Step::crossBorder: return inBackward(now.position) != inBackward(positionThen_);
    case Step::whySaved: {
      // What Why is about: a value that was chosen, or one that the chosen line saves. The selection goes along with
      // the run, which is in the backward.
      const auto value = context_.selection->value();
      const bool isChosenNow = op != opThen_ || value != valueThen_;
      return isChosenNow && (value || !isBackward(op)) && document.saved.contains(savedValueOf(document, op, value));
    }
    case Step::stepBack: return now.position < positionThen_;
  }
  return false;
}

}  // namespace retrograd::views
