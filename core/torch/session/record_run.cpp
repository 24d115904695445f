#include "core/torch/session/record_run.h"

#include <deque>
#include <set>

#include "core/torch/analysis/input_values.h"
#include "core/torch/execution/evaluator.h"
#include "core/torch/execution/op_clock.h"
#include "core/torch/execution/placement.h"
#include "core/torch/execution/statistics.h"
#include "core/torch/session/run_forecast.h"
#include "core/torch/tracing/thread_scope.h"
#include "core/trace/effects.h"
#include "core/trace/last_use.h"

namespace retrograd {
namespace {

/// Other contents with the same statistics are as good as the same.
bool same(const TensorStatistics& a, const TensorStatistics& b) {
  return a.nan == b.nan && a.inf == b.inf && a.zeros == b.zeros && a.min == b.min && a.max == b.max &&
         a.mean == b.mean && a.norm == b.norm;
}

}  // namespace

struct MeasuredRun::Impl {
  const Analysis& analysis;
  const Document& document;
  RecordOptions options;
  Evaluator evaluator;
  OpClock clock;
  LastUses lastUses;
  RunStatistics statistics;
  RunRecord record;
  std::set<StorageId> changed;  // written since the first value on them was made
  struct Reading {
    std::size_t position;
    ValueId value;
    TensorStatistics statistics;
  };
  std::deque<Reading> readings;  // of values on them; their statistics may be open
  std::size_t compared = 0;      // of the readings
  std::size_t position = 0;

  Impl(const Analysis& a, RecordOptions o)
      : analysis(a),
        document(*a.document),
        options(std::move(o)),
        evaluator(document, a.request.seed),
        clock(a.device),
        lastUses(document, a.joint),
        statistics(valuesOf(document, a.joint)) {
    evaluator.setLeftOut(analysis.leftOut);
    record.values.resize(document.valueCount());
    record.seconds.assign(analysis.joint.ops.size(), 0);
    for (const auto& [id, value] : startValues(analysis)) {
      evaluator.bind(id, value);
      made(id);
    }
    statistics.endOp();
  }

  /// That are recorded at most.
  static std::size_t valuesOf(const Document& document, const Trace& joint) {
    auto count = joint.inputs.size();
    for (auto op : joint.ops) count += document.outputs(op).size();
    return count;
  }

  void made(ValueId id) {
    if (!evaluator.hasTensor(id)) return;
    if (const auto replacement = options.replaced.find(id); replacement != options.replaced.end())
      replace(id, replacement->second);
    const auto tensor = evaluator.tensor(id);
    if (!tensor.defined()) return;
    auto& entry = record.values[id];
    entry.recorded = true;
    statistics.add(document.value(id).storage, tensor, entry.statistics);
    if (options.each) options.each(position, id, copyOut(tensor));
  }

  /// The content changes, the storage stays: views and aliases see it too. Memory of the file or of the caller is never
  /// written.
  void replace(ValueId id, const TensorData& data) {
    const auto tensor = evaluator.tensor(id);
    auto content = Placement().place(data, toDevice(tensor.device()));
    if (content.sizes() != tensor.sizes() || content.scalar_type() != tensor.scalar_type())
      throw Error(ErrorCode::badUse,
                  "the replacement is " + typeComment(data.meta) + ", the value " + typeComment(metaOf(tensor)),
                  document.displayName(id));
    const auto storage = document.value(id).storage;
    if (storage && document.storage(storage).external) return evaluator.bind(id, content);
    tensor.copy_(content);
    written(storage);
  }

  void read(ValueId id) {
    if (!id || !record.of(id).recorded || !changed.contains(document.value(id).storage)) return;
    if (!evaluator.hasTensor(id)) return;
    const auto tensor = evaluator.tensor(id);
    if (!tensor.defined()) return;
    readings.push_back({position, id, {}});
    statistics.add(document.value(id).storage, tensor, readings.back().statistics);
  }

  void readResults() {
    for (auto id : analysis.joint.outputs) read(id);
    for (const auto& [input, id] : analysis.mutated) read(id);
  }

  void written(StorageId storage) {
    statistics.written(storage);
    if (storage) changed.insert(storage);
  }

  void step() {
    const auto op = analysis.joint.ops.at(position);
    for (auto operand : document.operands(op)) read(operand);
    statistics.endOp();
    clock.begin();
    evaluator.run(op);
    clock.end(record.seconds[position]);
    for (auto operand : writtenOperands(document, op)) written(document.value(operand).storage);
    for (auto output : document.outputs(op)) made(output);
    statistics.endOp();
    clock.interrupted();
    evaluator.releaseOwn(lastUses.values(position));
    if (++position == analysis.joint.ops.size()) readResults();
  }

  const RunRecord& settled() {
    clock.settle();
    statistics.settle();
    for (; compared < readings.size(); ++compared) {
      const auto& [at, value, now] = readings[compared];
      if (!same(now, record.of(value).statistics)) record.readLater.insert_or_assign({at, value}, now);
    }
    return record;
  }
};

MeasuredRun::MeasuredRun(const Analysis& analysis, RecordOptions options)
    : impl_(std::make_unique<Impl>(analysis, std::move(options))) {}
MeasuredRun::~MeasuredRun() = default;
std::size_t MeasuredRun::position() const { return impl_->position; }
void MeasuredRun::step() { impl_->step(); }
const RunRecord& MeasuredRun::record() const { return impl_->settled(); }

std::optional<TensorData> MeasuredRun::tensor(ValueId value) const {
  if (!impl_->evaluator.hasTensor(value)) return std::nullopt;
  const auto tensor = impl_->evaluator.tensor(value);
  return tensor.defined() ? std::optional(copyOut(tensor)) : std::nullopt;
}

RunRecord recordRun(const Analysis& analysis, const RecordOptions& options, const Progress& progress) {
  RunForecast(analysis).requireRoom(0, analysis.joint.ops.size());
  MeasuredRun recording(analysis, options);
  const RunThreads threads(0);
  const auto size = analysis.joint.ops.size();
  while (recording.position() < size) {
    progress.check();
    progress.at(analysis.document->opName(analysis.joint.ops[recording.position()]),
                static_cast<double>(recording.position()) / static_cast<double>(size));
    recording.step();
  }
  return recording.record();
}

}  // namespace retrograd
