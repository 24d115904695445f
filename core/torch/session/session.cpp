#include "core/torch/session/session.h"

#include <atomic>

#include "core/base/id_vector.h"
#include "core/formats/files/mapping_watch.h"
#include "core/questions/intended_infinities.h"
#include "core/stepping/run_breakpoints.h"
#include "core/torch/analysis/input_values.h"
#include "core/torch/analysis/results.h"
#include "core/torch/execution/evaluator.h"
#include "core/torch/execution/op_clock.h"
#include "core/torch/execution/statistics.h"
#include "core/torch/reading/session_file.h"
#include "core/torch/session/kept_values.h"
#include "core/torch/session/op_moment.h"
#include "core/torch/session/run_follower.h"
#include "core/torch/session/run_forecast.h"
#include "core/torch/session/storage_copies.h"
#include "core/torch/tracing/thread_scope.h"
#include "core/trace/effects.h"

namespace retrograd {

struct Session::Impl {
  std::shared_ptr<const Analysis> analysis;
  SessionOptions options;
  const Document& document;
  std::vector<BoundSymbolId> program;
  IdVector<BoundSymbolId, std::int32_t> positions;  // -1 where it does not run
  const Lifetimes lifetimes;
  const IntendedInfinities intended;
  Evaluator evaluator;
  OpClock clock;
  std::vector<std::pair<ValueId, c10::IValue>> given;  // inputs and cotangents, uploaded once
  LiveMemory memory;
  KeptValues kept;  // knows [0, position), where it keeps
  int threads;
  std::size_t position = 0;
  std::vector<OpMeasure> measures;
  RunBreakpoints breakpoints;
  RunFollower* follower = nullptr;
  std::atomic<bool> breakOnBadNumber = false;
  IdVector<ValueId, char> computedOnce;  // distinguishes "not computed yet" from "released"
  RunForecast forecast;

  Impl(std::shared_ptr<const Analysis> a, SessionOptions o)
      : analysis(std::move(a)),
        options(o),
        document(*analysis->document),
        program(analysis->joint.ops),
        lifetimes(document, analysis->joint),
        intended(*analysis),
        evaluator(document, analysis->request.seed),
        clock(analysis->device),
        given(startValues(*analysis)),
        kept(document, analysis->joint, lifetimes, analysis->request.seed, options.historyBytes, memory,
             analysis->leftOut),
        threads(options.threads > 0 ? options.threads : savedThreads(*analysis).value_or(threadCount())),
        breakpoints(*analysis),
        forecast(*analysis) {
    evaluator.setSynchronous(options.synchronous);
    evaluator.setLeftOut(analysis->leftOut);
    positions.assign(document.boundSymbolCount(), -1);
    for (std::size_t i = 0; i < program.size(); ++i) positions[program[i]] = static_cast<std::int32_t>(i);
    reset();
  }

  void reset() {
    memory = {};
    for (const auto value : document.valueIds()) evaluator.bind(value, {});
    evaluator.seed(analysis->request.seed);
    StorageCopies copies;  // a recorded step writes to what it was given
    for (const auto& [id, value] : given) {
      evaluator.bind(id, analysis->file.recording ? copies.copyOf(value) : value);
      memory.exclude(evaluator.value(id));
    }
    kept.start(given);
    clock.forget();
    position = 0;
    measures.assign(program.size(), {});
    computedOnce.assign(document.valueCount(), 0);
  }

  /// `again`: on the way back, over ops that were measured before.
  void runOne(bool again = false) {
    const RunThreads scope(threads);
    if (follower) clock.interrupted();
    try {
      runAndKeep(program[position], again);
    } catch (...) {
      takeBack(program[position]);
      throw;
    }
    if (follower) follower->ran(position, evaluator, measures[position]);
    for (auto id : lifetimes.released(position)) {
      if (!evaluator.has(id)) continue;
      memory.remove(evaluator.value(id));
      evaluator.release(id);
    }
    ++position;
    kept.fit();
  }

  void runAndKeep(BoundSymbolId op, bool again) {
    auto& measure = measures[position];
    if (!again) clock.begin();
    evaluator.run(op);
    if (!again) clock.end(measure.seconds);
    if (!again && options.synchronous) clock.settle();
    std::int64_t outputBytes = 0;
    for (auto output : document.outputs(op)) {
      if (!output || !evaluator.has(output)) continue;  // what depends on an opaque op is not there
      computedOnce[output] = 1;
      if (!lifetimes.isExternal(output)) outputBytes += memory.add(evaluator.value(output));
    }
    if (!again) {
      measure.outputBytes = outputBytes;
      measure.liveBytes = memory.bytes();
    }
    if (kept.ran(evaluator, measure.seconds)) clock.interrupted();  // copies were made
  }

  /// What the op made and wrote before it failed.
  void takeBack(BoundSymbolId op) {
    for (auto output : document.outputs(op)) {
      if (!output || !evaluator.has(output)) continue;
      memory.remove(evaluator.value(output));
      evaluator.release(output);
      computedOnce[output] = 0;
    }
    if (kept.keeps()) return kept.takeBack(evaluator);
    if (options.historyBytes <= 0 || writtenOperands(document, op).empty()) return;
    const auto failed = position;
    startAgain();
    runAgainTo(failed, {});
  }

  /// To an earlier position: at once, or from the start where too little is kept. Stops between ops where that is
  /// wanted.
  void rewindTo(std::size_t target, const Progress& progress = {}) {
    const RunThreads scope(threads);
    if (kept.keeps()) {
      try {
        goBack(target, progress);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::cancelled) throw;
      }
    } else {
      announce(progress, position - 1, 0);
      if (progress.stopRequested()) return;
      startAgain();
      runAgainTo(target, progress);
    }
    forgetEditsAfter(static_cast<std::ptrdiff_t>(position));
  }

  void goBack(std::size_t target, const Progress& progress) {
    announce(progress, position - 1, 0);
    progress.check();
    kept.goBack(evaluator, target, progress);
    for (; position > target; --position)
      for (auto output : document.outputs(program[position - 1]))
        if (output) computedOnce[output] = 0;
  }

  void runAgainTo(std::size_t target, const Progress& progress) {
    while (position < target && !progress.stopRequested()) {
      announce(progress, position, static_cast<double>(position) / static_cast<double>(target));
      runOne(true);
      applyEdits();
    }
  }

  void forgetEditsAfter(std::ptrdiff_t at) {
    const auto first = kept.editAfter(at);
    if (first) kept.forgetAfter(*first, true);
    if (first && follower) follower->forgotEditsFrom(*first);
  }

  void startAgain() {
    clock.settle();
    const auto measured = measures;
    const auto peak = memory.peak();
    reset();
    measures = measured;
    memory.raisePeak(peak);
    applyEdits();
  }

  /// Names the op that is about to run or to be undone, before it takes its time.
  void announce(const Progress& progress, std::size_t at, double fraction) const {
    if (!progress.stopRequested()) progress.at(document.symbol(program[at]).name, fraction);
  }

  bool isFault(ValueId value, const at::Tensor& tensor) const {
    if (!hasBadNumber(tensor)) return false;
    return !intended.mayHold(value) || intended.isFault(value, computeStatistics(tensor));
  }

  bool madeBadNumber(std::size_t at) {
    clock.interrupted();
    if (leavesUninitialised(document, program[at])) return false;
    for (auto output : document.outputs(program[at]))
      if (const auto tensor = evaluator.tensorOrNone(output); tensor.defined() && isFault(output, tensor)) return true;
    return false;
  }

  void applyEdits() {
    const auto here = kept.editsAt(position);
    for (const auto& edit : std::vector(here.begin(), here.end())) put(edit);
  }

  /// One step back over this place takes it back.
  void put(const ValueEdit& edit) {
    const auto tensor = present(edit.value);
    kept.unshare(edit.value);
    if (follower) follower->willEdit(edit.value);
    if (lifetimes.isExternal(edit.value))
      evaluator.bind(edit.value, edit.content.to(tensor.device(), /*non_blocking=*/false, /*copy=*/true));
    else tensor.copy_(edit.content);
    kept.edited(position, edit, evaluator);
    kept.fit();
    if (follower) follower->edited(position, edit, evaluator);
  }

  bool stopsHere() {
    const auto ran = position > 0 ? program[position - 1] : BoundSymbolId(),
               next = position < program.size() ? program[position] : BoundSymbolId();
    return breakpoints.stopBetween(ran, next, [&](const Breakpoint& condition) { return outputsMeet(condition, ran); });
  }

  bool outputsMeet(const Breakpoint& condition, BoundSymbolId op) {
    clock.interrupted();
    for (auto output : document.outputs(op)) {
      if (!evaluator.hasTensor(output) || !document.isTensor(output)) continue;
      const auto tensor = evaluator.tensor(output);
      if (!tensor.defined()) continue;
      const auto statistics = condition.when == Breakpoint::When::meta ? TensorStatistics() : computeStatistics(tensor);
      if (meets(condition, statistics, metaOf(tensor), document.meta(output))) return true;
    }
    return false;
  }

  at::Tensor present(ValueId id) const {
    if (!evaluator.hasTensor(id))
      throw Error(ErrorCode::badUse, "it has no tensor at this position", document.displayName(id));
    return evaluator.tensor(id);
  }

  /// What `ask` finds out about a tensor, unless it lies in a file that changed: that is thrown away.
  template <class Ask>
  auto read(ValueId id, Ask&& ask) const {
    const auto tensor = present(id);
    auto answer = ask(tensor);
    requireUnchanged(hostMemoryOf(tensor));
    return answer;
  }
};

Session::Session(std::shared_ptr<const Analysis> analysis, SessionOptions options)
    : impl_(std::make_unique<Impl>(std::move(analysis), options)) {}
Session::~Session() = default;
void Session::requireRunnable(const Analysis& analysis) { requireInputValues(analysis); }

const Analysis& Session::analysis() const { return *impl_->analysis; }
std::size_t Session::size() const { return impl_->program.size(); }
std::size_t Session::forwardSize() const { return impl_->analysis->joint.forwardCount; }
std::size_t Session::position() const { return impl_->position; }
BoundSymbolId Session::opAt(std::size_t position) const {
  return position < size() ? impl_->program[position] : BoundSymbolId();
}

std::optional<std::size_t> Session::positionOf(BoundSymbolId op) const {
  if (!impl_->positions.contains(op)) return std::nullopt;
  const auto position = impl_->positions[op];
  return position < 0 ? std::nullopt : std::optional<std::size_t>(position);
}

StopReason Session::step() {
  if (impl_->position >= size()) return StopReason::end;
  impl_->clock.interrupted();  // by whoever took their time since the last step
  impl_->runOne();
  if (impl_->breakOnBadNumber && impl_->madeBadNumber(impl_->position - 1)) return StopReason::badNumber;
  return impl_->position == size() ? StopReason::end : StopReason::step;
}

StopReason Session::stepBack(const Progress& progress) {
  if (impl_->position == 0) return StopReason::start;
  impl_->rewindTo(impl_->position - 1, progress);
  if (progress.stopRequested()) return StopReason::cancelled;
  return impl_->position == 0 ? StopReason::start : StopReason::step;
}

StopReason Session::runTo(std::size_t target, const Progress& progress) {
  const auto begin = impl_->position;
  target = std::min(target, size());
  if (target < begin) impl_->rewindTo(target, progress);
  impl_->forecast.requireRoom(impl_->position, target);
  const RunThreads scope(impl_->threads);
  while (impl_->position < target && !progress.stopRequested()) {
    impl_->announce(progress, impl_->position, double(impl_->position - begin) / double(target - begin));
    impl_->runOne();
  }
  impl_->clock.settle();
  return impl_->position == target ? StopReason::cursor : StopReason::cancelled;
}

StopReason Session::continueTo(std::size_t target, const Progress& progress) {
  target = std::min(target, size());
  const auto begin = impl_->position;
  const auto length = double(std::max(begin, target) - std::min(begin, target));
  impl_->breakpoints.forgetHit();
  impl_->clock.interrupted();
  impl_->forecast.requireRoom(begin, target);
  const RunThreads scope(impl_->threads);
  while (impl_->position != target) {
    if (progress.stopRequested()) return StopReason::cancelled;
    const bool forward = target > begin;
    const auto done = forward ? impl_->position - begin : begin - impl_->position;
    impl_->announce(progress, forward ? impl_->position : impl_->position - 1, double(done) / length);
    if (forward) impl_->runOne();
    else if (stepBack(progress) == StopReason::cancelled) return StopReason::cancelled;
    if (impl_->stopsHere()) return StopReason::breakpoint;
    if (impl_->breakOnBadNumber && impl_->position > 0 && impl_->madeBadNumber(impl_->position - 1))
      return StopReason::badNumber;
  }
  return target == size() ? StopReason::end : target == 0 ? StopReason::start : StopReason::step;
}

void Session::restart() {
  impl_->breakpoints.forgetHits();
  impl_->forgetEditsAfter(-1);
  impl_->reset();
}

void Session::setBreakpoints(std::vector<Breakpoint> breakpoints) { impl_->breakpoints.set(std::move(breakpoints)); }
const std::optional<BreakpointHit>& Session::hitBreakpoint() const { return impl_->breakpoints.hit(); }
const std::vector<std::int64_t>& Session::breakpointHits() { return impl_->breakpoints.hits(); }

void Session::setContents(ValueId value, const TensorData& contents) {
  const auto tensor = impl_->present(value);
  const auto content = borrowTensor(contents);
  if (content.sizes() != tensor.sizes() || content.scalar_type() != tensor.scalar_type())
    throw Error(ErrorCode::badUse,
                "the new content is " + typeComment(contents.meta) + ", the value " + typeComment(metaOf(tensor)),
                impl_->document.displayName(value));
  impl_->put({value, content.clone()});
}

void Session::setFollower(RunFollower* follower) {
  impl_->follower = follower;
  if (follower) follower->begins(impl_->given);
}

void Session::setBreakOnBadNumber(bool on) { impl_->breakOnBadNumber = on; }

ValueState Session::state(ValueId value) const {
  const auto& evaluator = impl_->evaluator;
  const bool wasComputed = impl_->computedOnce.contains(value) && impl_->computedOnce[value];
  return stateOf(analysis(), value, evaluator.has(value) ? &evaluator.value(value) : nullptr,
                 wasComputed ? "released after its last use" : "not computed yet");
}

TensorStatistics Session::statistics(ValueId value) const { return impl_->read(value, computeStatistics); }
TensorData Session::contents(ValueId value) const { return impl_->read(value, copyOut); }
std::vector<std::int64_t> Session::histogram(ValueId value, int bins) const {
  return impl_->read(value, [bins](const at::Tensor& tensor) { return computeHistogram(tensor, bins); });
}
std::vector<std::int64_t> Session::magnitudes(ValueId value) const { return impl_->read(value, computeMagnitudes); }
std::int64_t Session::liveBytes() const { return impl_->memory.bytes(); }
std::int64_t Session::peakBytes() const { return impl_->memory.peak(); }
const std::vector<OpMeasure>& Session::measures() const {
  impl_->clock.settle();
  return impl_->measures;
}

Session::HistoryState Session::history() const {
  const auto& kept = impl_->kept;
  const auto position = impl_->position;
  if (!kept.keeps())  // each step back begins at the start
    return {0, impl_->options.historyBytes, std::min<std::size_t>(position, 1), position > 0 ? position - 1 : 0};
  return {kept.bytes(), impl_->options.historyBytes, position, kept.reruns()};
}
void Session::setHistoryBytes(std::int64_t bytes) {
  impl_->options.historyBytes = bytes;
  impl_->kept.setBudget(bytes);
}
int Session::threads() const { return impl_->threads; }

TensorMap Session::gradients() const { return gradientsOf(analysis(), impl_->evaluator); }
std::vector<std::optional<TensorData>> Session::results() const { return resultsOf(analysis(), impl_->evaluator); }
TensorMap Session::mutated() const { return mutatedOf(analysis(), impl_->evaluator); }

}  // namespace retrograd
