// What the user marks in a document: breakpoints, watches, contents of values.
#include <QCoreApplication>
#include <QPointer>
#include <QThreadPool>

#include "core/formats/npy.h"
#include "core/formats/safetensors.h"
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
  if (!document_) return;
  // Walks the traces and needs no LibTorch: beside the worker, where a long run may be under way.
  const auto answer = [self = QPointer(this), generation = generation_, done = std::move(done)](const Breakpoint& breakpoint, const QString& problem) {
    if (!self || generation != self->generation_) return;
    if (problem.isEmpty()) {
      auto breakpoints = self->execution_->breakpoints();
      breakpoints.push_back(breakpoint);
      self->setBreakpoints(std::move(breakpoints));
    }
    done(problem);
  };
  QThreadPool::globalInstance()->start([document = document_, answer, words = words.toStdString()] {
    Breakpoint breakpoint;
    QString problem;
    try {
      breakpoint = parseBreakpoint(*document->analysis, words);
    } catch (const std::exception& error) {
      problem = QString::fromStdString(messageOf(error));
    }
    QMetaObject::invokeMethod(QCoreApplication::instance(), [answer, breakpoint, problem] { answer(breakpoint, problem); }, Qt::QueuedConnection);
  });
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
  if (slot_ && slot_->runner) slot_->runner->setBreakpoints(breakpoints);  // first: a run may be on its way there
  execution_->setBreakpoints(std::move(breakpoints), std::move(marks));
  onRunner(breakTag, [this](Runner& runner) -> Worker::Deliver {
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

void DocumentController::saveValue(ValueId value, const QString& path, std::function<void(const QString&)> done) {
  if (!document_ || !value) return;
  const auto question = [value, path = path.toStdString(), done](const Bench& bench, const Progress&) -> Worker::Deliver {
    if (!bench.runner) throw Error(ErrorCode::badUse, "the document cannot be run");
    const auto contents = bench.runner->contents(value);
    if (path.ends_with(".npy")) writeNpy(path, contents);
    else writeSafetensors(path, {{bench.document.analysis->document->displayName(value), contents}});
    return [done] { done({}); };
  };
  ask(this, QStringLiteral("save value"), tr("Saving the value"), question, done);
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
