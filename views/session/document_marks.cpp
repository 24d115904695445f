// What the user marks in a document: breakpoints, watches, contents of values.
#include "views/models/format.h"
#include "views/session/document_controller.h"

namespace retrograd::views {
namespace {

const QString breakTag = QStringLiteral("breakpoints");

/// The op of the joint that a breakpoint stands at by itself; none for one of a kind, a module or anywhere.
BoundSymbolId placeOf(const Analysis& analysis, const Breakpoint& breakpoint) {
  if (breakpoint.where == Breakpoint::Where::op) return breakpoint.op;
  if (breakpoint.where != Breakpoint::Where::value) return {};
  const auto& ops = analysis.joint.ops;
  const auto at = std::find_if(ops.begin(), ops.end(), [&](BoundSymbolId op) { return concerns(analysis, breakpoint, op); });
  return at == ops.end() ? BoundSymbolId() : *at;
}

BreakpointMark markOf(const Breakpoint& breakpoint) {
  if (!breakpoint.enabled) return BreakpointMark::disabled;
  return looksAtOutputs(breakpoint) || breakpoint.skip > 0 ? BreakpointMark::conditional : BreakpointMark::always;
}

}  // namespace

bool DocumentController::toggleBreakpoint(BoundSymbolId op, QString* problem) {
  const auto target = document_ ? document_->program.executed(op) : BoundSymbolId();
  if (!target) {
    if (problem) *problem = tr("This op is not among those that run, so it takes no breakpoint");
    return false;
  }
  auto breakpoints = execution_->breakpoints();
  const bool had = std::erase_if(breakpoints, [&](const Breakpoint& b) { return placeOf(*document_->analysis, b) == target; }) > 0;
  if (!had) {
    Breakpoint breakpoint;
    breakpoint.op = target;
    breakpoints.push_back(breakpoint);
  }
  setBreakpoints(std::move(breakpoints));
  return true;
}

void DocumentController::addBreakpoint(const QString& words, std::function<void(const QString&)> done) {
  const auto question = [this, done, words = words.toStdString()](const Bench& bench, const Progress&) -> Worker::Deliver {
    const auto breakpoint = parseBreakpoint(*bench.document.analysis, words);
    return [this, done, breakpoint] {
      auto breakpoints = execution_->breakpoints();
      breakpoints.push_back(breakpoint);
      setBreakpoints(std::move(breakpoints));
      done({});
    };
  };
  ask(this, {}, {}, question, done);
}

void DocumentController::removeBreakpoint(std::size_t index) {
  auto breakpoints = execution_->breakpoints();
  if (index >= breakpoints.size()) return;
  breakpoints.erase(breakpoints.begin() + static_cast<std::ptrdiff_t>(index));
  setBreakpoints(std::move(breakpoints));
}

void DocumentController::enableBreakpoint(std::size_t index, bool on) {
  auto breakpoints = execution_->breakpoints();
  if (index >= breakpoints.size() || breakpoints[index].enabled == on) return;
  breakpoints[index].enabled = on;
  setBreakpoints(std::move(breakpoints));
}

void DocumentController::setBreakpoints(std::vector<Breakpoint> breakpoints) {
  std::map<BoundSymbolId, BreakpointMark> marks;
  for (const auto& breakpoint : breakpoints)
    if (const auto op = placeOf(*document_->analysis, breakpoint)) marks[op] = std::max(marks[op], markOf(breakpoint));
  execution_->setBreakpoints(breakpoints, std::move(marks));
  onRunner(breakTag, [this, slot = slot_, breakpoints = std::move(breakpoints)](Runner& runner) -> Worker::Deliver {
    slot->breakpoints = breakpoints;
    runner.setBreakpoints(breakpoints);
    return [this, hits = runner.breakpointHits()] {
      auto execution = execution_->now();
      execution.hits = hits;
      execution_->set(execution);
    };
  });
}

void DocumentController::noteBadValues(const ValueReport& report) {
  auto bad = execution_->badValues();
  for (const auto& row : report.rows) {
    if (!row.statistics) continue;
    if (row.statistics->nan + row.statistics->inf > 0)
      bad.insert(row.value);
    else
      bad.erase(row.value);
  }
  execution_->setBadValues(std::move(bad));
}

void DocumentController::fillValue(ValueId value, double number) {
  if (!document_ || !execution_->now().available || execution_->now().running) return;
  const auto question = [this, value, number](const Bench& bench, const Progress&) -> Worker::Deliver {
    bench.runner->fill(value, number);
    return [this] { execution_->set(execution_->now()); };  // views of values ask anew
  };
  ask(this, QStringLiteral("fill"), tr("Fill"), question, [this](const QString& message) {
    if (!message.isEmpty()) Q_EMIT runFailed(message);
  });
}

void DocumentController::addWatch(ValueId value) {
  auto watches = execution_->watches();
  if (!value || !document_ || std::find(watches.begin(), watches.end(), value) != watches.end()) return;
  watches.push_back(value);
  execution_->setWatches(std::move(watches));
}

void DocumentController::removeWatch(ValueId value) {
  auto watches = execution_->watches();
  std::erase(watches, value);
  execution_->setWatches(std::move(watches));
}

}  // namespace retrograd::views
