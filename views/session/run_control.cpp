#include "views/session/run_control.h"

#include <utility>

namespace retrograd::views {

/// What came of a command.
struct RunControl::Outcome : Stop {
  std::uint64_t number = 0;
  std::size_t goal = 0;

  /// Elsewhere than where it was meant to lead.
  bool stopped() const {
    return reason == StopReason::badNumber || reason == StopReason::error || reason == StopReason::cancelled ||
           (reason == StopReason::breakpoint && position != goal);
  }
};

namespace {

const QString runTag = QStringLiteral("run");

}  // namespace

RunControl::RunControl(OpenState& state, QObject* parent) : QObject(parent), state_(state) {}

void RunControl::reset() {
  goal_ = 0;
  stops_ = 0;
  settled_ = commandNumber_;
}

void RunControl::step(Step step) {
  if (!state_.document) return;
  const auto stops = state_.execution->stops();
  const auto goal =
      state_.document->program.steps().goal(step, goal_, [&](BoundSymbolId op) { return stops.contains(op); });
  command(tr("Step"), true, goal, &Runner::continueTo);
}

void RunControl::runTo(BoundSymbolId op) {
  if (!state_.document) return;
  const auto position = state_.document->program.positionOf(op);
  if (!position) return;
  const bool back = *position < state_.execution->now().position;
  const auto& breakpoints = state_.execution->breakpoints();
  const bool stops = state_.execution->now().breakOnBadNumber ||
                     std::ranges::any_of(breakpoints, [](const Breakpoint& each) { return each.enabled; });
  if (back && !stops) return runToPosition(*position);  // at once, not op by op
  command(tr("Run to cursor"), false, *position, &Runner::continueTo);
}

void RunControl::restart() {
  command(tr("Restart"), false, 0, [](Runner& runner, std::size_t, const Progress&) {
    runner.restart();
    return StopReason::start;
  });
}

void RunControl::pause() { state_.worker->cancel(state_.owner, runTag); }

void RunControl::command(const QString& title, bool walking, std::size_t goal, Command command) {
  if (!state_.document || !state_.execution->now().available) return;
  goal_ = goal;
  auto execution = state_.execution->now();
  execution.running = true;
  execution.walking = walking;
  execution.error.clear();
  execution.failed = {};
  state_.execution->set(execution);
  Q_EMIT leavesPosition();
  Worker::Job job;
  job.tag = runTag;
  job.title = title;
  job.work = [this, slot = state_.slot, number = ++commandNumber_, stops = stops_, goal,
              command = std::move(command)](const Progress& progress) -> Worker::Deliver {
    // Asked for before it was known here that an earlier command stopped early: it was meant from elsewhere.
    if (slot->stops != stops) return {};
    Outcome outcome;
    outcome.number = number;
    outcome.goal = goal;
    try {
      outcome.reason = command(*slot->runner, goal, progress);
    } catch (const Error& e) {
      outcome.reason = e.code() == ErrorCode::cancelled ? StopReason::cancelled : StopReason::error;
      if (outcome.reason == StopReason::error) outcome.error = QString::fromStdString(e.what());
    }
    outcome.position = slot->runner->position();
    if (outcome.stopped()) ++slot->stops;
    outcome.liveBytes = slot->runner->liveBytes();
    outcome.peakBytes = slot->runner->peakBytes();
    outcome.hits = slot->runner->breakpointHits();
    if (outcome.reason == StopReason::breakpoint) outcome.hit = slot->runner->hitBreakpoint();
    return [this, slot, outcome] {
      if (slot == state_.slot) commandDone(outcome);
    };
  };
  job.failed = [this, slot = state_.slot, number = commandNumber_](const Error&) {
    if (slot == state_.slot) commandDropped(number);
  };
  state_.worker->post(state_.owner, std::move(job));
}

void RunControl::commandDone(const Outcome& outcome) {
  // Commands run in order, and one that was replaced is not heard of: what came of one settles those before it. One
  // that stopped early settles those after it too, as they will not run.
  settled_ = std::max(settled_, outcome.stopped() ? commandNumber_ : outcome.number);
  stops_ += outcome.stopped();
  auto execution = state_.execution->now();
  execution.running = !outcome.stopped() && (settled_ < commandNumber_ || state_.worker->busy(state_.owner, runTag));
  if (!execution.running) goal_ = outcome.position;
  static_cast<Stop&>(execution) = outcome;
  execution.current = state_.document->program.opAt(outcome.position);
  execution.failed = outcome.error.isEmpty() ? BoundSymbolId() : execution.current;
  if (outcome.reason == StopReason::badNumber && outcome.position > 0)
    execution.bad.insert(state_.document->program.opAt(outcome.position - 1));
  state_.execution->set(execution);
  if (!outcome.error.isEmpty()) Q_EMIT failed(outcome.error);
}

void RunControl::commandDropped(std::uint64_t number) {
  settled_ = std::max(settled_, number);
  if (settled_ < commandNumber_ || state_.worker->busy(state_.owner, runTag)) return;
  auto execution = state_.execution->now();
  execution.running = false;
  execution.reason = StopReason::cancelled;
  goal_ = execution.position;
  state_.execution->set(execution);
}

void RunControl::setBreakOnBadNumber(bool on) {
  auto execution = state_.execution->now();
  execution.breakOnBadNumber = on;
  state_.execution->set(execution);
  if (state_.slot && state_.slot->runner) state_.slot->runner->setBreakOnBadNumber(on);
}

void RunControl::setHistoryBytes(std::int64_t bytes) {
  historyBytes_ = bytes;
  state_.onRunner(QStringLiteral("history"), [bytes](Runner& runner) -> Worker::Deliver {
    runner.setHistoryBytes(bytes);
    return {};
  });
}

}  // namespace retrograd::views
