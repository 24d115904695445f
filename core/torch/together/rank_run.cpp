#include "core/torch/together/rank_run.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/formats/recording/recording.h"
#include "core/torch/session/recorded_hash.h"
#include "core/torch/session/run_follower.h"
#include "core/torch/together/data_flow.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

bool isUpdating(Phase phase) { return phase == Phase::clip || phase == Phase::optimizer; }

at::Tensor onMemoryOf(const at::Tensor& tensor, const TensorMeta& meta) {
  return at::empty({0}, tensor.options()).set_(tensor.storage(), meta.offset, meta.sizes, meta.strides);
}

/// Follows one rank's run and puts aside what the others are compared with.
class RankFollower final : public RunFollower {
 public:
  RankFollower(const RankStep& step, const DataFlow& flow, SpilledTensors& spilled, RankRun& run)
      : step_(step),
        document_(step.document()),
        recording_(step.recording()),
        ops_(step.analysis->joint.ops),
        flow_(flow),
        spilled_(spilled),
        run_(run) {
    run_.given.resize(step.collectives.size());
    for (std::size_t i = 0; i < step.collectives.size(); ++i) collectives_.emplace(step.collectives[i].op, i);
    for (const auto& name : recording_.names) names_.emplace(name.storage, &name);
    for (const auto& shard : recording_.shards) shards_.emplace(shard.storage, &shard);
    for (std::size_t i = 0; i < ops_.size(); ++i)
      for (const auto operand : writtenOperands(document_, ops_[i])) lastWrite_[document_.value(operand).storage] = i;
  }

  void begins(const std::vector<std::pair<ValueId, c10::IValue>>& given) override {
    run_.begun = given;
    for (const auto& [id, value] : given) {
      if (!value.isTensor() || value.toTensor().layout() != at::kStrided) continue;
      const auto& tensor = value.toTensor();
      const auto storage = document_.value(id).storage;
      const auto [first, last] = shards_.equal_range(storage);
      for (auto one = first; one != last; ++one)
        if (isWeight(one->second->role))
          addWeight(one->second->name, one->second->role, onMemoryOf(tensor, one->second->meta), one->second);
      if (first != last) continue;
      const auto name = names_.find(storage);
      if (name != names_.end() && isWeight(name->second->role))
        addWeight(name->second->name, name->second->role, tensor, nullptr);
      else if (name == names_.end()) unnamed_.emplace(storage, tensor);
    }
    if (!ops_.empty()) before(0, nullptr);
  }

  void ran(std::size_t position, const Evaluator& evaluator, const OpMeasure&) override {
    const auto op = ops_[position];
    const auto& recorded = recording_.op(op);
    if (const auto found = collectives_.find(op); found != collectives_.end()) keepGiven(found->second, evaluator);
    noteLowered(op, evaluator);
    if (recorded.accumulates) accumulate(position, evaluator);
    else if (recorded.number >= 0) lastAccumulated_ = {};
    if (recorded.phase == Phase::forward || recorded.phase == Phase::loss) {
      noteInputs(op, evaluator);
      if (!masks_.empty()) noteMasked(op, evaluator);
      if (document_.boundSymbol(op).effects & effect::random) noteDraw(op, evaluator);
    }
    const bool isCleared = document_.symbol(op).name.find("zero_") != std::string::npos;
    for (const auto operand : writtenOperands(document_, op)) {
      noteWrite(operand, op, position, evaluator);
      if (const auto* parameter = isCleared ? gradientOf(operand) : nullptr) making_.erase(*parameter);
    }
    if (position + 1 < ops_.size()) before(position + 1, &evaluator);
  }

 private:
  struct Making {
    at::Tensor sum, last, prior;
    std::int32_t parts = 0, backward = -1;
    bool isMixed = false, isKnown = true, wasRead = false;
    BoundSymbolId made;
    at::ScalarType dtype = at::kFloat;
  };

  static bool isWeight(const std::string& role) { return role == "parameter" || role == "buffer"; }

  void addWeight(const std::string& name, const std::string& role, const at::Tensor& tensor,
                 const RecordedShard* shard) {
    RankWeight weight{.isBuffer = role == "buffer", .shard = shard, .sizes = tensor.sizes().vec()};
    weight.before = recordedHashOf(tensor);
    weight.value = spilled_.put(tensor);
    weight.isConstant = tensor.numel() > 0 && tensor.eq(tensor.flatten()[0]).all().item<bool>();
    run_.weights.try_emplace(name, std::move(weight));
  }

  void keepGiven(std::size_t collective, const Evaluator& evaluator) {
    for (const auto value : step_.collectives[collective].given) {
      const auto tensor = evaluator.tensorOrNone(value);
      run_.given[collective].push_back(tensor.defined() && tensor.layout() == at::kStrided ? spilled_.put(tensor)
                                                                                           : SpilledTensors::Place());
    }
  }

  /// A gradient that is brought to a lower precision on its way to its parameter, as FSDP2 does for its reduction: what
  /// it was before counts.
  void noteLowered(BoundSymbolId op, const Evaluator& evaluator) {
    const auto operands = document_.operands(op), outputs = document_.outputs(op);
    if (recording_.op(op).phase != Phase::backward || outputs.empty() || operands.empty()) return;
    if (!document_.symbol(op).name.starts_with("aten._to_copy.")) return;
    const auto from = evaluator.tensorOrNone(operands[0]), to = evaluator.tensorOrNone(outputs[0]);
    if (!from.defined() || !to.defined() || !from.is_floating_point() || !to.is_floating_point()) return;
    constexpr std::size_t most = 16;
    if (lowered_.size() >= most) lowered_.clear();
    if (to.element_size() < from.element_size()) lowered_[outputs[0]] = from;
  }

  /// The first op of a node that accumulates: it adds to what is there, or takes the place of what was.
  void accumulate(std::size_t position, const Evaluator& evaluator) {
    const auto op = ops_[position];
    const auto& recorded = recording_.op(op);
    const std::pair now(recorded.accumulates, recorded.backward);
    if (std::exchange(lastAccumulated_, now) == now) return;  // what hooks of the node do, as DDP's
    const std::string parameter(document_.text(recorded.accumulates));
    const auto operands = document_.operands(op);
    const auto& name = document_.symbol(op).name;
    const bool adds = name.starts_with("aten.add") && operands.size() >= 2;
    auto& making = making_[parameter];
    auto part = operands.empty() ? at::Tensor() : evaluator.tensorOrNone(operands[adds ? 1 : 0]);
    if (const auto lowered = operands.empty() ? lowered_.end() : lowered_.find(operands[adds ? 1 : 0]);
        lowered != lowered_.end()) {
      part = lowered->second;
      lowered_.clear();
    }
    if (!adds) making = {.prior = making.wasRead ? at::Tensor() : making.sum};
    if (!part.defined() || (adds && making.sum.defined() && making.sum.sizes() != part.sizes()))
      return void(making.isKnown = false);
    if (!adds) {
      making.sum = part.detach().clone();
    } else if (making.sum.defined()) {
      making.sum = making.sum.to(at::kDouble) + part.to(at::kDouble);
      making.last = part.detach().clone();
    } else if (const auto all = evaluator.tensorOrNone(operands[0]); all.defined()) {
      making.sum = all.detach().clone();  // with what was there before the recording began
    }
    making.dtype = part.scalar_type();
    ++making.parts;
    making.isMixed |= flow_.isMixed(position);
    if (!making.made) making.made = op;
  }

  /// The name of the gradient that this tensor is; null: of none.
  const std::string* gradientOf(ValueId value) const {
    if (!value || !document_.isTensor(value)) return nullptr;
    const auto storage = document_.value(value).storage;
    const auto [first, last] = shards_.equal_range(storage);
    for (auto one = first; one != last; ++one) {
      const auto& shard = *one->second;
      const auto& meta = document_.meta(value);
      if (shard.role == "gradient" && shard.meta.offset == meta.offset && shard.meta.sizes == meta.sizes)
        return &shard.name;
    }
    if (first != last) return nullptr;
    const auto name = names_.find(storage);
    return name != names_.end() && name->second->role == "gradient" ? &name->second->name : nullptr;
  }

  /// What the op that follows is about to read of gradients, and may write.
  void before(std::size_t position, const Evaluator* evaluator) {
    const auto op = ops_[position];
    const auto& recorded = recording_.op(op);
    if (!evaluator || !isUpdating(recorded.phase) || recorded.number < 0) return;
    for (const auto operand : document_.operands(op)) {
      const auto* parameter = gradientOf(operand);
      if (!parameter || !read_.emplace(recorded.step, *parameter).second) continue;
      const auto tensor = evaluator->tensorOrNone(operand);
      if (!tensor.defined() || tensor.layout() != at::kStrided) continue;
      RankGradient gradient{.step = recorded.step, .read = spilled_.put(tensor), .readBy = op};
      if (tensor.numel() > 0) gradient.largest = tensor.abs().max().item<double>();
      if (const auto found = making_.find(*parameter); found != making_.end()) {
        auto& making = found->second;
        making.wasRead = true;
        gradient.parts = making.parts;
        gradient.dtype = making.dtype;
        gradient.isMixed = making.isMixed;
        gradient.made = making.made;
        if (making.isKnown && making.sum.defined() && making.sum.layout() == at::kStrided) {
          gradient.own = spilled_.put(making.sum);
          if (making.prior.defined()) gradient.prior = spilled_.put(making.prior);
          if (making.last.defined()) gradient.last = spilled_.put(making.last);
        }
      }
      run_.gradients[*parameter].push_back(std::move(gradient));
    }
  }

  void noteInputs(BoundSymbolId op, const Evaluator& evaluator) {
    for (const auto operand : document_.operands(op)) {
      const auto storage = operand && document_.isTensor(operand) ? document_.value(operand).storage : StorageId();
      const auto found = unnamed_.find(storage);
      if (found == unnamed_.end() || document_.value(operand).version > 0) continue;
      if (const auto tensor = evaluator.tensorOrNone(operand); tensor.defined() && tensor.numel() > 1)
        run_.inputs.emplace(fmt::format("{}", run_.inputs.size()), recordedHashOf(tensor));
      unnamed_.erase(found);
    }
  }

  void noteDraw(BoundSymbolId op, const Evaluator& evaluator) {
    RankDraw draw{.op = op};
    const auto operands = document_.operands(op);
    const auto written = writtenOperands(document_, op);
    if (!written.empty()) masks_[document_.value(written[0]).storage] = run_.draws.size();
    if (!operands.empty() && written.empty())
      if (const auto read = evaluator.tensorOrNone(operands[0]); read.defined()) draw.read = recordedHashOf(read);
    for (const auto output : document_.outputs(op))
      if (const auto made = evaluator.tensorOrNone(output); made.defined()) draw.drawn = recordedHashOf(made);
    run_.draws.push_back(draw);
  }

  /// What a mask that was drawn in place, as dropout's, is laid over.
  void noteMasked(BoundSymbolId op, const Evaluator& evaluator) {
    const auto operands = document_.operands(op);
    const auto storageOf = [&](ValueId value) {
      return value && document_.isTensor(value) ? document_.value(value).storage : StorageId();
    };
    for (const auto mask : operands) {
      const auto found = masks_.find(storageOf(mask));
      if (found == masks_.end()) continue;
      for (const auto other : operands) {
        const auto tensor =
            storageOf(other) && storageOf(other) != found->first ? evaluator.tensorOrNone(other) : at::Tensor();
        if (!tensor.defined() || tensor.numel() < 2) continue;
        run_.draws[found->second].read = recordedHashOf(tensor);
        masks_.erase(found);
        return;
      }
    }
  }

  void noteWrite(ValueId operand, BoundSymbolId op, std::size_t position, const Evaluator& evaluator) {
    const auto storage = document_.value(operand).storage;
    if (const auto last = lastWrite_.find(storage); last == lastWrite_.end() || last->second != position) return;
    const auto tensor = evaluator.tensorOrNone(operand);
    if (!tensor.defined() || tensor.layout() != at::kStrided) return;
    const auto [first, end] = shards_.equal_range(storage);
    for (auto one = first; one != end; ++one)
      if (isWeight(one->second->role)) wrote(one->second->name, onMemoryOf(tensor, one->second->meta), op);
    const auto name = names_.find(storage);
    if (first == end && name != names_.end() && isWeight(name->second->role)) wrote(name->second->name, tensor, op);
  }

  void wrote(const std::string& name, const at::Tensor& tensor, BoundSymbolId op) {
    const auto found = run_.weights.find(name);
    if (found == run_.weights.end()) return;
    found->second.after = recordedHashOf(tensor);
    found->second.written = op;
  }

  const RankStep& step_;
  const Document& document_;
  const StepRecording& recording_;
  const std::vector<BoundSymbolId>& ops_;
  const DataFlow& flow_;
  SpilledTensors& spilled_;
  RankRun& run_;
  std::unordered_map<BoundSymbolId, std::size_t> collectives_;
  std::unordered_map<StorageId, const RecordedName*> names_;
  std::unordered_multimap<StorageId, const RecordedShard*> shards_;
  std::unordered_map<StorageId, std::size_t> lastWrite_;
  std::unordered_map<StorageId, at::Tensor> unnamed_;
  std::map<std::string, Making> making_;
  std::unordered_map<StorageId, std::size_t> masks_;  ///< memory that draws filled, by their number
  std::pair<StringId, std::int32_t> lastAccumulated_;
  std::unordered_map<ValueId, at::Tensor> lowered_;  ///< what the latest casts in a backward had before
  std::set<std::pair<std::int32_t, std::string>> read_;
};

}  // namespace

bool holdSamePart(const RecordedShard& shard, std::int64_t a, std::int64_t b) {
  const auto coordinate = [&](std::int64_t rank) {
    std::vector<std::int64_t> found;
    auto place = std::ranges::find(shard.mesh, rank) - shard.mesh.begin();
    for (auto i = shard.meshSizes.size(); i-- > 0;) {
      if (shard.placements[i] != "replicate") found.push_back(place % shard.meshSizes[i]);
      place /= shard.meshSizes[i];
    }
    return found;
  };
  if (shard.mesh.empty()) return true;
  return std::ranges::find(shard.mesh, b) != shard.mesh.end() && coordinate(a) == coordinate(b);
}

RankRun runRank(const RankStep& step, SpilledTensors& spilled, const Progress& progress) {
  RankRun run;
  const DataFlow flow(step);
  run.mixing = {flow.mixing().begin(), flow.mixing().end()};
  RankFollower follower(step, flow, spilled, run);
  run.replay = replay(step.analysis, progress, {&follower});
  return run;
}

bool isWhole(const RankStep& step, const RankRun& run) {
  return step.recording().damage.empty() && step.recording().error.empty() && run.replay.stopped.empty();
}

std::string gapIn(const std::vector<RankStep>& ranks, const std::vector<RankRun>& runs) {
  if (std::cmp_less(ranks.size(), ranks.front().recording().ranks)) return "not all ranks of the run were recorded";
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (!isWhole(ranks[i], runs[i]))
      return fmt::format("not all that rank {} did is known, and the others' gradients need its part", ranks[i].rank);
  return {};
}

}  // namespace retrograd
