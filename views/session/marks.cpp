#include "views/session/marks.h"

#include <QCoreApplication>
#include <QPointer>

#include "core/questions/why.h"
#include "views/session/breakpoint_key.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

/// The op of the joint that a breakpoint is at by itself; none for one of a kind, a module or anywhere.
BoundSymbolId placeOf(const Analysis& analysis, const Breakpoint& breakpoint) {
  if (breakpoint.where == Breakpoint::Where::op) return breakpoint.op;
  if (breakpoint.where != Breakpoint::Where::value) return {};
  const auto& ops = analysis.joint.ops;
  const auto at = std::ranges::find_if(ops, [&](BoundSymbolId op) { return concerns(analysis, breakpoint, op); });
  return at == ops.end() ? BoundSymbolId() : *at;
}

BreakpointMark markOf(const Breakpoint& breakpoint) {
  if (!breakpoint.enabled) return BreakpointMark::disabled;
  return looksAtOutputs(breakpoint) || breakpoint.skip > 0 ? BreakpointMark::conditional : BreakpointMark::always;
}

}  // namespace

bool Marks::toggleBreakpoint(BoundSymbolId op, QString* problem) {
  const auto target = state_.document ? state_.document->program.executed(op) : BoundSymbolId();
  if (!target) {
    if (problem) *problem = tr("This op is not among those that run, so it takes no breakpoint");
    return false;
  }
  auto breakpoints = state_.execution->breakpoints();
  const bool had = std::erase_if(breakpoints, [&](const Breakpoint& b) {
                     return placeOf(*state_.document->analysis, b) == target;
                   }) > 0;
  if (!had) {
    Breakpoint breakpoint;
    breakpoint.op = target;
    breakpoints.push_back(breakpoint);
  }
  setBreakpoints(std::move(breakpoints));
  return true;
}

void Marks::addBreakpoint(const QString& words, std::function<void(const QString&)> done) {
  readApart([done = std::move(done), words = words.toStdString()](const Analysis& analysis) {
    Breakpoint breakpoint;
    QString problem;
    try {
      breakpoint = parseBreakpoint(analysis, words);
    } catch (const std::exception& error) {
      problem = toQt(messageOf(error));
    }
    return [done, breakpoint, problem](Marks& marks) {
      if (problem.isEmpty()) {
        auto breakpoints = marks.state_.execution->breakpoints();
        breakpoints.push_back(breakpoint);
        marks.setBreakpoints(std::move(breakpoints));
      }
      done(problem);
    };
  });
}

void Marks::readApart(std::function<std::function<void(Marks&)>(const Analysis&)> read) {
  if (!state_.document) return;
  words_.start([self = QPointer(this), slot = state_.slot, document = state_.document, read = std::move(read)] {
    QMetaObject::invokeMethod(
        QCoreApplication::instance(),
        [self, slot, finish = read(*document->analysis)] {
          if (self && slot == self->state_.slot) finish(*self);
        },
        Qt::QueuedConnection);
  });
}

QString Marks::setCondition(std::size_t index, const QString& words) {
  auto breakpoints = state_.execution->breakpoints();
  if (index >= breakpoints.size()) return {};
  try {
    const auto changed = withCondition(*state_.document->analysis, breakpoints[index], words.toStdString());
    if (changed == breakpoints[index]) return {};
    breakpoints[index] = changed;
  } catch (const std::exception& error) {
    return toQt(messageOf(error));
  }
  setBreakpoints(std::move(breakpoints));
  return {};
}

void Marks::removeBreakpoint(std::size_t index) {
  auto breakpoints = state_.execution->breakpoints();
  if (index >= breakpoints.size()) return;
  breakpoints.erase(breakpoints.begin() + index);
  setBreakpoints(std::move(breakpoints));
}

void Marks::enableBreakpoint(std::size_t index, bool on) {
  auto breakpoints = state_.execution->breakpoints();
  if (index >= breakpoints.size() || breakpoints[index].enabled == on) return;
  breakpoints[index].enabled = on;
  setBreakpoints(std::move(breakpoints));
}

void Marks::setBreakpoints(std::vector<Breakpoint> breakpoints) {
  std::map<BoundSymbolId, BreakpointMark> marks;
  for (const auto& breakpoint : breakpoints)
    if (const auto op = placeOf(*state_.document->analysis, breakpoint))
      marks[op] = std::max(marks[op], markOf(breakpoint));
  if (state_.slot && state_.slot->runner)
    state_.slot->runner->setBreakpoints(breakpoints);  // first: a run may be on its way there
  state_.execution->setBreakpoints(std::move(breakpoints), std::move(marks));
  state_.onRunner(QStringLiteral("breakpoints"), [this](Runner& runner) -> Worker::Deliver {
    return [this, hits = runner.breakpointHits()] {
      auto execution = state_.execution->now();
      execution.hits = hits;
      state_.execution->set(execution);
    };
  });
}

void Marks::noteBadValues(const ValueReport& report) {
  auto bad = state_.execution->badValues();
  for (const auto& row : report.rows) {
    if (!row.statistics) continue;
    if (state_.document->intended.isFault(row.value, *row.statistics)) bad.insert(row.value);
    else bad.erase(row.value);
  }
  state_.execution->setBadValues(std::move(bad));
}

Marks::Kept Marks::keptIn(const OpenDocument& now) const {
  Kept kept;
  if (!state_.document) return kept;
  const auto& before = *state_.document->analysis;
  kept.breakpoints = findKeys(*now.analysis, keysOf(before, state_.execution->breakpoints()));
  std::erase_if(kept.breakpoints,
                [&](const Breakpoint& b) { return b.where == Breakpoint::Where::op && !now.program.executed(b.op); });
  std::vector<ValueKey> keys;
  for (auto value : state_.execution->watches()) keys.push_back(keyOf(before, value));
  kept.watches = findKeys(*now.analysis, keys);
  std::erase_if(kept.watches, [](ValueId value) { return !value; });
  return kept;
}

void Marks::restore(Kept kept) {
  setBreakpoints(std::move(kept.breakpoints));
  state_.execution->setWatches(std::move(kept.watches));
}

void Marks::clear() {
  state_.execution->setBreakpoints({}, {});
  state_.execution->setWatches({});
  state_.execution->setBadValues({});
}

void Marks::addWatch(ValueId value) {
  auto watches = state_.execution->watches();
  if (!value || !state_.document || std::ranges::find(watches, value) != watches.end()) return;
  watches.push_back(value);
  state_.execution->setWatches(std::move(watches));
}

void Marks::addWatches(const QStringList& names, std::function<void(const QStringList&)> done) {
  readApart([names, done = std::move(done)](const Analysis& analysis) {
    std::vector<ValueId> found;
    QStringList missing;
    for (const auto& name : names)
      if (const auto value = findValue(analysis, name.toStdString())) found.push_back(*value);
      else missing << name;
    return [found, missing, done](Marks& marks) {
      for (auto value : found) marks.addWatch(value);
      done(missing);
    };
  });
}

void Marks::removeWatch(ValueId value) {
  auto watches = state_.execution->watches();
  std::erase(watches, value);
  state_.execution->setWatches(std::move(watches));
}

}  // namespace retrograd::views
