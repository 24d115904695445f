#include "core/torch/session/replay.h"

#include <ATen/Version.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <set>

#include "core/base/id_vector.h"
#include "core/formats/recording/recording.h"
#include "core/questions/intended_infinities.h"
#include "core/torch/execution/statistics.h"
#include "core/torch/session/recorded_hash.h"
#include "core/torch/session/run_follower.h"
#include "core/torch/session/session.h"
#include "core/torch/session/unwritten_memory.h"
#include "core/torch/tracing/thread_scope.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

constexpr std::size_t mostNamed = 10;
constexpr auto aView = "a view, whose memory another result holds";

std::string withoutBuild(const std::string& version) { return version.substr(0, version.find('+')); }

std::vector<std::string> whatDiffers(const Analysis& analysis) {
  const auto& then = analysis.file.recording->settings;
  std::vector<std::string> found;
  const auto compare = [&](const std::string& recorded, const std::string& here, const char* what) {
    if (!recorded.empty() && recorded != here)
      found.push_back(fmt::format("it was recorded with {} {}, and here is {}", what, recorded, here));
  };
  compare(withoutBuild(then.torch), withoutBuild(libTorchVersion()), "PyTorch");
  compare(then.cpu, at::get_cpu_capability(), "the instruction set");
  utsname system{};
  if (uname(&system) == 0) compare(then.machine, system.machine, "a processor of kind");
  const bool wasOnGpu = analysis.file.recording->device == "cuda", isOnGpu = analysis.device.type == Device::Type::cuda;
  if (wasOnGpu != isOnGpu)
    found.push_back(wasOnGpu ? "it was recorded on a GPU, and runs on the CPU here"
                             : "it was recorded on the CPU, and runs on a GPU here");
  if (!then.matmulPrecision.empty() && then.matmulPrecision != "highest")
    found.push_back("float32 products had the precision '" + then.matmulPrecision + "'");
  return found;
}

/// Compares what each op gave, and looks at numbers on their way to the weights.
class Comparison final : public RunFollower {
 public:
  Comparison(const Analysis& analysis, ReplayResult& result, const std::vector<RunFollower*>& beside)
      : analysis_(analysis),
        beside_(beside),
        document_(*analysis.document),
        recording_(*analysis.file.recording),
        result_(result),
        unwritten_(document_, recording_),
        lastWrite_(document_.storageCount(), -1),
        names_(document_.storageCount(), nullptr),
        hasUpdate_(std::ranges::any_of(
            analysis.joint.ops, [this](BoundSymbolId op) { return recording_.op(op).phase == Phase::optimizer; })) {
    for (const auto& name : recording_.names)
      if (!names_[name.storage]) names_[name.storage] = &name;
    const auto& ops = analysis.joint.ops;
    for (std::size_t i = 0; i < ops.size(); ++i)
      for (const auto operand : writtenOperands(document_, ops[i]))
        if (const auto storage = document_.value(operand).storage) lastWrite_[storage] = static_cast<std::int64_t>(i);
  }

  void begins(const std::vector<std::pair<ValueId, c10::IValue>>& given) override {
    for (auto* one : beside_) one->begins(given);
    for (const auto& [id, value] : given)
      if (value.isTensor() && isWeight(id))
        judge(value.toTensor(), nameOf(id), nameOf(id) + " as the step began", isBuffer(id));
  }

  void ran(std::size_t position, const Evaluator& evaluator, const OpMeasure& measure) override {
    for (auto* one : beside_) one->ran(position, evaluator, measure);
    const auto op = analysis_.joint.ops[position];
    const auto& recorded = recording_.op(op);
    if (recorded.opaque) {
      result_.notRun.push_back(op);
      result_.notCompared["the recorded values, of an op that cannot run again"] += document_.outputs(op).size();
      unwritten_.putRecorded(op);
    } else {
      ++result_.ran;
      compare(op, recorded, evaluator);
    }
    if (recorded.phase == Phase::optimizer) lookAtGradients(op, recorded, evaluator);
    for (const auto output : document_.outputs(op))
      if (std::ranges::find(recording_.losses, output) != recording_.losses.end())
        if (const auto tensor = evaluator.tensorOrNone(output); tensor.defined())
          judge(tensor, "loss", fmt::format("the loss of step {}", recorded.step));
    if (position + 1 == analysis_.joint.ops.size() && !hasUpdate_)
      for (const auto& [name, gradient] : recording_.gradients)
        if (const auto tensor = evaluator.tensorOrNone(gradient); tensor.defined() && tensor.layout() == at::kStrided)
          judge(tensor, name, "the gradient of " + name);
    for (const auto operand : writtenOperands(document_, op)) {
      const auto storage = document_.value(operand).storage;
      if (!storage || lastWrite_[storage] != static_cast<std::int64_t>(position) || !isWeight(operand)) continue;
      if (const auto tensor = evaluator.tensorOrNone(operand); tensor.defined())
        judge(tensor, nameOf(operand), nameOf(operand) + " after its last update", isBuffer(operand));
    }
  }

 private:
  const RecordedName* recordedName(ValueId id) const {
    const auto storage = document_.value(id).storage;
    return storage ? names_[storage] : nullptr;
  }

  bool isWeight(ValueId id) const {
    const auto* name = recordedName(id);
    return name && (name->role == "parameter" || name->role == "buffer");
  }

  std::string nameOf(ValueId id) const {
    const auto* name = recordedName(id);
    return name ? name->name : document_.displayName(id);
  }

  bool isBuffer(ValueId id) const {
    const auto* name = recordedName(id);
    return name && name->role == "buffer";
  }

  void judge(const at::Tensor& tensor, const std::string& subject, const std::string& what, bool mayBeMask = false) {
    if (!tensor.is_floating_point() && !tensor.is_complex()) return;
    if (!hasBadNumber(tensor)) return;
    const auto statistics = computeStatistics(tensor);
    if (mayBeMask && statistics.nan == 0 && !(statistics.max > 0)) return;
    if (!judged_.insert(what).second) return;
    result_.unhealthy.push_back({.by = Producer::health,
                                 .kind = "not-finite",
                                 .subject = subject,
                                 .sentence = fmt::format("{} has {} NaN and {} infinities among {} elements", what,
                                                         statistics.nan, statistics.inf, tensor.numel())});
  }

  void lookAtGradients(BoundSymbolId op, const StepOp& recorded, const Evaluator& evaluator) {
    for (const auto operand : document_.operands(op)) {
      const auto* name = operand && document_.isTensor(operand) ? recordedName(operand) : nullptr;
      if (!name || name->role != "gradient" || !gradientsRead_.emplace(recorded.step, name->name).second) continue;
      const auto tensor = evaluator.tensorOrNone(operand);
      if (!tensor.defined() || tensor.layout() != at::kStrided) continue;
      judge(tensor, name->name, fmt::format("the gradient of {} in step {}", name->name, recorded.step));
      const bool isZero = tensor.numel() > 0 && computeStatistics(tensor).zeros == tensor.numel();
      if (isZero && zeroGradients_.insert(name->name).second)  // said of its first such step
        addZero(name->name, recorded.step);
    }
  }

  void addZero(const std::string& parameter, std::int32_t step) {
    const auto sentence = fmt::format("the gradient is zero everywhere in step {}", step);
    const auto same = std::ranges::find(result_.unhealthy, sentence, &Claim::sentence);
    if (same != result_.unhealthy.end()) {
      same->parameters.push_back(parameter);
      return;
    }
    result_.unhealthy.push_back({.by = Producer::health,
                                 .severity = Severity::note,
                                 .kind = "zero-gradient",
                                 .sentence = sentence,
                                 .parameters = {parameter}});
  }

  std::string causeOf(BoundSymbolId op) const {
    if (document_.boundSymbol(op).effects & effect::random)
      return "it draws random numbers, and its generator gives others here";
    if (!result_.notComparable.empty()) return result_.notComparable.front();
    return "all that it reads is as recorded, so its kernel gives other bits here: another library, number of threads "
           "or setting than when it was recorded";
  }

  void compare(BoundSymbolId op, const StepOp& recorded, const Evaluator& evaluator) {
    if (leavesUninitialised(document_, op)) {
      result_.notCompared["memory that nobody has written yet"] += document_.outputs(op).size();
      return unwritten_.leave(op);
    }
    const bool readsUnwritten = unwritten_.isReadBy(op);
    if (recorded.checkCount == 0 && recorded.number >= 0) countWithoutHash(op);
    for (const auto& check : std::span(recording_.checks).subspan(recorded.checksBegin, recorded.checkCount)) {
      unwritten_.grow(check.value);
      const auto tensor = evaluator.tensorOrNone(check.value);
      if (!check.hash || !tensor.defined()) {
        ++result_.notCompared[isView(op) ? aView : "a kernel's workspace, or a view of what another op made"];
        continue;
      }
      ++result_.compared;
      const bool isSame = recordedHashOf(tensor) == *check.hash;
      const bool isChance = !isSame && readsUnwritten;
      unwritten_.setWritten(check.value, !isChance);
      if (isChance && result_.afterUninitialized++ == 0) firstChance_ = op;
      if (!isSame && !isChance) differs(op, check.value);
    }
    if (readsUnwritten && firstChance_) chanceReaches(op, recorded);
  }

  /// Chance in a gradient, a parameter or the loss is a fault of the op that read what nobody had written.
  void chanceReaches(BoundSymbolId op, const StepOp& recorded) {
    std::string what;
    for (const auto output : document_.outputs(op))
      if (std::ranges::find(recording_.losses, output) != recording_.losses.end()) what = "the loss";
    if (recorded.accumulates) what = "the gradient of " + std::string(document_.text(recorded.accumulates));
    for (const auto written : writtenOperands(document_, op))
      if (isWeight(written)) what = nameOf(written);
    if (what.empty() || std::exchange(chanceReached_, true)) return;
    const auto& made = document_.boundSymbol(firstChance_);
    std::string why;
    for (const auto operand : document_.operands(firstChance_))
      if (const auto producer = operand ? document_.value(operand).producer : BoundSymbolId();
          recording_.has(producer) && recording_.op(producer).phase == Phase::recompute &&
          leavesUninitialised(document_, producer))
        why = "; the recomputation of its checkpoint stopped before an op wrote it";
    Claim claim{.by = Producer::replay,
                .kind = "unwritten-memory",
                .sentence = fmt::format("{} reads memory that nobody had written, and {} depends on it{}",
                                        document_.symbol(firstChance_).name, what, why),
                .remedy = why.empty() ? "fill the memory before it is read"
                                      : "leave that op out of the checkpointed region, or put an op behind it there",
                .line = recordedLine(document_, firstChance_),
                .op = firstChance_,
                .command = "source"};
    if (recording_.has(made.origin.op)) claim.also.push_back(made.origin.op);
    if (recorded.accumulates) claim.parameters.emplace_back(document_.text(recorded.accumulates));
    result_.unhealthy.push_back(std::move(claim));
  }

  bool isView(BoundSymbolId op) const { return (document_.boundSymbol(op).effects & effect::view) != 0; }

  void countWithoutHash(BoundSymbolId op) {
    const auto outputs = document_.outputs(op);
    const auto tensors = std::ranges::count_if(outputs, [&](ValueId v) { return v && document_.isTensor(v); });
    if (tensors > 0) result_.notCompared[isView(op) ? aView : "an alias of what another op made"] += tensors;
    else ++result_.notCompared["a number, which other results depend on"];
  }

  void differs(BoundSymbolId op, ValueId value) {
    if (result_.differing++ == 0 || result_.first.size() < mostNamed)
      result_.first.push_back({op, value, result_.first.empty() ? causeOf(op) : std::string()});
  }

  const Analysis& analysis_;
  const std::vector<RunFollower*>& beside_;
  const Document& document_;
  const StepRecording& recording_;
  ReplayResult& result_;
  UnwrittenMemory unwritten_;
  IdVector<StorageId, std::int64_t> lastWrite_;
  IdVector<StorageId, const RecordedName*> names_;
  std::set<std::pair<std::int32_t, std::string>> gradientsRead_;
  std::set<std::string> zeroGradients_;
  std::set<std::string> judged_;
  BoundSymbolId firstChance_;   ///< the op that read what nobody had written
  bool chanceReached_ = false;  ///< what the step is for
  bool hasUpdate_;              ///< else gradients count that no optimizer reads
};

}  // namespace

ReplayResult replay(const std::shared_ptr<const Analysis>& analysis, const Progress& progress,
                    const std::vector<RunFollower*>& beside) {
  ReplayResult result{.ops = analysis->joint.ops.size(), .notComparable = whatDiffers(*analysis)};
  Comparison comparison(*analysis, result, beside);
  std::unique_ptr<Session> session;
  try {
    session = std::make_unique<Session>(analysis, SessionOptions{.historyBytes = 0});
    session->setFollower(&comparison);
    if (session->runTo(session->size(), progress) == StopReason::cancelled)
      throw Error(ErrorCode::cancelled, "cancelled");
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) throw;
    result.stopped = error.what();
    if (session) result.stoppedAt = session->opAt(session->position());
  }
  return result;
}

}  // namespace retrograd
