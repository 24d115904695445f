#include "core/torch/session/op_values.h"

#include <optional>

#include "core/base/id_vector.h"
#include "core/formats/files/mapping_watch.h"
#include "core/torch/analysis/input_values.h"
#include "core/torch/execution/op_clock.h"
#include "core/torch/execution/statistics.h"
#include "core/torch/reading/session_file.h"
#include "core/torch/session/kept_values.h"
#include "core/torch/session/op_moment.h"
#include "core/torch/session/run_follower.h"
#include "core/torch/session/storage_copies.h"
#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/thread_scope.h"
#include "core/trace/effects.h"

namespace retrograd {

struct OpValues::Impl : RunFollower {
  std::shared_ptr<const Analysis> analysis;
  OpValuesOptions options;
  const Document& document;
  const std::vector<BoundSymbolId>& ops;
  const Lifetimes lifetimes;
  LiveMemory memory;
  KeptValues kept;
  IdVector<BoundSymbolId, std::int32_t> positions;  ///< -1 where it does not run
  int threads;
  bool begun = false;
  std::vector<std::pair<ValueId, c10::IValue>> given;
  std::unique_ptr<Evaluator> ahead;  ///< is at kept.known(); null: made when it is needed
  OpClock clock;
  std::vector<OpMeasure> measures;  ///< of ops [0, known)
  IdVector<ValueId, std::optional<TensorStatistics>>
      statistics;  ///< where they were wanted; on a GPU, open until news()
  RunStatistics runStatistics;
  std::size_t told = 0;  ///< so many ops whose news was asked for
  std::function<void()> onNews;

  Impl(std::shared_ptr<const Analysis> a, OpValuesOptions o)
      : analysis(std::move(a)),
        options(o),
        document(*analysis->document),
        ops(analysis->joint.ops),
        lifetimes(document, analysis->joint),
        kept(document, analysis->joint, lifetimes, analysis->request.seed, options.bytes, memory, analysis->leftOut),
        positions(document.boundSymbolCount(), -1),
        threads(options.threads > 0 ? options.threads : savedThreads(*analysis).value_or(threadCount())),
        clock(analysis->device),
        statistics(document.valueCount()),
        runStatistics(document.valueCount()) {
    for (std::size_t i = 0; i < ops.size(); ++i) positions[ops[i]] = static_cast<std::int32_t>(i);
  }

  void begin() {
    if (!begun) begins(startValues(*analysis));
  }

  // What the session runs.

  void begins(const std::vector<std::pair<ValueId, c10::IValue>>& bindings) override {
    if (begun) return;
    given = bindings;
    kept.start(given);
    begun = true;
  }

  void ran(std::size_t position, const Evaluator& evaluator, const OpMeasure& measure) override {
    if (position != kept.known() || !kept.keeps()) return;
    ahead.reset();
    try {
      record(evaluator, measure);
    } catch (const std::exception&) {  // no memory for it here: who asks for values runs on from known()
    }
  }

  void willEdit(ValueId value) override {
    if (begun) kept.unshare(value);
  }

  void edited(std::size_t position, const ValueEdit& edit, const Evaluator& evaluator) override {
    if (kept.hasEdit(position, edit)) return;
    runStatistics.written(document.value(edit.value).storage);
    forgetAfter(position, false);
    kept.edited(position, edit, evaluator);
    kept.fit();
  }

  void forgotEditsFrom(std::size_t position) override {
    if (kept.editAfter(static_cast<std::ptrdiff_t>(position) - 1)) forgetAfter(position, true);
  }

  void forgetAfter(std::size_t position, bool byHand) {
    ahead.reset();
    const bool wasKnown = position <= kept.known();
    kept.forgetAfter(position, byHand);
    if (!wasKnown) return;
    runStatistics.allWritten();
    forgetNumbers(position);
  }

  // What is run here.

  void step(const Progress& progress) {
    const RunThreads scope(threads);
    if (!ahead) {
      ahead = kept.evaluator(progress);
      ahead->setSynchronous(true);
      if (kept.known() == 0) applyEdits();
      if (!ahead) return;
    }
    const auto position = kept.known();
    OpMeasure measure;
    try {
      clock.begin();
      ahead->run(ops[position]);
      clock.end(measure.seconds);
      clock.settle();
      measure.outputBytes = bytesMade(position);
      record(*ahead, measure);
    } catch (...) {
      ahead.reset();  // the op may have written before it failed
      throw;
    }
    if (!kept.keeps()) return ahead.reset();
    for (auto id : lifetimes.released(position)) ahead->release(id);
    applyEdits();
  }

  std::int64_t bytesMade(std::size_t position) const {
    std::int64_t bytes = 0;
    for (auto output : document.outputs(ops[position])) {
      const auto storage = output ? document.value(output).storage : StorageId();
      if (storage && document.storage(storage).first == output && !document.storage(storage).external)
        bytes += document.storage(storage).bytes;
    }
    return bytes;
  }

  void applyEdits() {
    const auto position = kept.known();
    const auto here = kept.editsAt(position);
    for (const auto& edit : std::vector(here.begin(), here.end())) {
      kept.unshare(edit.value);
      put(*ahead, edit);
      runStatistics.written(document.value(edit.value).storage);
      kept.edited(position, edit, *ahead);
      if (!kept.fit()) return ahead.reset();
    }
  }

  void put(Evaluator& evaluator, const ValueEdit& edit) const {
    if (!evaluator.has(edit.value)) return;
    const auto tensor = evaluator.tensor(edit.value);
    if (lifetimes.isExternal(edit.value))
      evaluator.bind(edit.value, edit.content.to(tensor.device(), /*non_blocking=*/false, /*copy=*/true));
    else tensor.copy_(edit.content);
  }

  // Both.

  void record(const Evaluator& evaluator, const OpMeasure& measure) {
    const auto position = kept.known();
    for (auto operand : writtenOperands(document, ops[position]))
      runStatistics.written(document.value(operand).storage);
    if (options.statistics) {
      if (position == 0)
        for (const auto& [id, value] : given) note(id, value);
      for (auto output : document.outputs(ops[position]))
        if (output && evaluator.has(output)) note(output, evaluator.value(output));
      runStatistics.endOp();
    }
    kept.ran(evaluator, measure.seconds);
    if (!kept.fit()) return forgetNumbers(0);
    measures.push_back(measure);
    tell();
  }

  void note(ValueId id, const c10::IValue& value) {
    if (value.isTensor() && value.toTensor().defined())
      runStatistics.add(document.value(id).storage, value.toTensor(), statistics[id].emplace());
  }

  void forgetNumbers(std::size_t position) {
    measures.resize(std::min(measures.size(), position));
    told = std::min(told, position);
    tell();
  }

  void tell() {
    if (onNews) onNews();
  }

  RunNews news() {
    runStatistics.settle();
    RunNews news{.begin = told};
    news.end = told = measures.size();
    news.measures.assign(measures.begin() + news.begin, measures.end());
    const auto add = [&](ValueId value) {
      if (value && statistics[value]) news.values.emplace_back(value, *statistics[value]);
    };
    if (news.begin == 0 && news.end > 0)
      for (const auto& [id, value] : given) add(id);
    for (auto i = news.begin; i < news.end; ++i)
      for (auto output : document.outputs(ops[i])) add(output);
    return news;
  }

  void setBytes(std::int64_t bytes) {
    kept.setBudget(bytes);
    if (begun && !kept.keeps()) kept.start(given);
  }

  struct Place {
    std::size_t first = 0, last = 0;
  };
  std::optional<Place> placeOf(BoundSymbolId op) const {
    if (!positions.contains(op)) return std::nullopt;
    if (const auto at = positions[op]; at >= 0)
      return Place{static_cast<std::size_t>(at), static_cast<std::size_t>(at)};
    std::optional<Place> place;
    for (auto derived : analysis->links.derived(op)) {
      if (!positions.contains(derived) || positions[derived] < 0 ||
          document.boundSymbol(derived).origin.role != Role::forward)
        continue;
      const std::size_t at = positions[derived];
      if (!place) place = {at, at};
      place->last = std::max(place->last, at);
    }
    return place;
  }

  void runAhead(std::size_t target, const Progress& progress) {
    const RunThreads scope(threads);
    begin();
    const auto from = kept.known();
    while (kept.keeps() && kept.known() < std::min(target, ops.size())) {
      const auto done = kept.known() - from;
      progress.at(document.opName(ops[kept.known()]), static_cast<double>(done) / static_cast<double>(target - from));
      step(progress);
    }
  }

  std::vector<ValueId> operandsOf(BoundSymbolId op) const { return valid(document.operands(op)); }
  std::vector<ValueId> outputsOf(BoundSymbolId op) const { return valid(document.outputs(op)); }
  static std::vector<ValueId> valid(std::span<const ValueId> values) {
    std::vector<ValueId> found;
    for (auto value : values)
      if (value) found.push_back(value);
    return found;
  }

  void fill(OpMoment& moment, Place place, const Progress& progress) {
    const auto operands = operandsOf(moment.op), outputs = outputsOf(moment.op);
    runAhead(place.first, progress);
    if (!kept.keeps()) return fillFromTheStart(moment, place, progress);
    const RunThreads scope(threads);
    const auto before = kept.contents(operands, place.first, progress);
    for (std::size_t i = 0; i < operands.size(); ++i) moment.before[operands[i]] = before[i];
    try {
      runAhead(place.last + 1, progress);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::execution) throw;
      moment.failure = error.what();
      return;
    }
    if (!kept.keeps()) return fillFromTheStart(moment, place, progress);
    auto wanted = outputs;
    for (auto operand : operands)
      if (kept.changes(operand, place.first, place.last + 1)) wanted.push_back(operand);
    const auto after = kept.contents(wanted, place.last + 1, progress);
    for (std::size_t i = 0; i < wanted.size(); ++i) moment.after[wanted[i]] = after[i];
  }

  /// A run of its own that keeps nothing.
  void fillFromTheStart(OpMoment& moment, Place place, const Progress& progress) {
    const RunThreads scope(threads);
    Evaluator evaluator(document, analysis->request.seed);
    evaluator.setLeftOut(analysis->leftOut);
    StorageCopies copies;  // a recorded step writes to what it was given
    for (const auto& [id, value] : given) evaluator.bind(id, analysis->file.recording ? copies.copyOf(value) : value);
    const auto edit = [&](std::size_t position) {
      for (const auto& there : kept.editsAt(position)) put(evaluator, there);
    };
    edit(0);
    const auto operands = operandsOf(moment.op);
    for (std::size_t i = 0; i <= place.last; ++i) {
      progress.at(document.opName(ops[i]), static_cast<double>(i) / static_cast<double>(place.last + 1));
      if (i == place.first)
        for (auto operand : operands)
          if (evaluator.has(operand)) moment.before[operand] = StorageCopies().copyOf(evaluator.value(operand));
      try {
        evaluator.run(ops[i]);
      } catch (const Error& error) {
        if (i < place.first || error.code() != ErrorCode::execution) throw;
        moment.failure = error.what();
        return;
      }
      if (i == place.last) break;
      for (auto id : lifetimes.released(i)) evaluator.release(id);
      edit(i + 1);
    }
    for (auto output : outputsOf(moment.op))
      if (evaluator.has(output)) moment.after[output] = evaluator.value(output);
    for (auto operand : operands)
      if (evaluator.has(operand) && changed(place, operand)) moment.after[operand] = evaluator.value(operand);
  }

  bool changed(Place place, ValueId operand) const {
    const auto storage = document.value(operand).storage;
    for (auto i = place.first; i <= place.last; ++i)
      for (auto written : writtenOperands(document, ops[i]))
        if (written == operand || (storage && document.value(written).storage == storage)) return true;
    return false;
  }
};

OpValues::OpValues(std::shared_ptr<const Analysis> analysis, OpValuesOptions options)
    : impl_(std::make_unique<Impl>(std::move(analysis), options)) {}
OpValues::~OpValues() = default;
RunFollower& OpValues::follower() { return *impl_; }
std::size_t OpValues::size() const { return impl_->ops.size(); }
std::size_t OpValues::known() const { return impl_->kept.known(); }
void OpValues::runAhead(std::size_t position, const Progress& progress) { impl_->runAhead(position, progress); }

std::shared_ptr<const Moment> OpValues::at(BoundSymbolId op, const Progress& progress) {
  auto moment = std::make_shared<OpMoment>();
  moment->op = op;
  moment->analysis = impl_->analysis;
  if (const auto place = impl_->placeOf(op)) impl_->fill(*moment, *place, progress);
  else moment->failure = "no op of the run comes from it";
  return moment;
}

std::shared_ptr<const Moment> OpValues::of(ValueId value, const Progress& progress) {
  const auto producer = impl_->lifetimes.producedAt(value);
  if (producer >= 0) return at(impl_->ops[producer], progress);
  impl_->begin();
  auto moment = std::make_shared<OpMoment>();
  moment->analysis = impl_->analysis;
  for (const auto& [id, content] : impl_->given)
    if (id == value) moment->before[id] = content;
  return moment;
}

RunNews OpValues::news() { return impl_->news(); }
void OpValues::setOnNews(std::function<void()> onNews) { impl_->onNews = std::move(onNews); }
void OpValues::setBytes(std::int64_t bytes) { impl_->setBytes(bytes); }
bool OpValues::keeps() const { return !impl_->begun || impl_->kept.keeps(); }
std::int64_t OpValues::bytes() const { return impl_->kept.bytes(); }
std::size_t OpValues::letGo() const { return impl_->kept.letGo(); }
double OpValues::longest() const { return impl_->kept.longest(); }

}  // namespace retrograd
