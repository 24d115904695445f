#include "core/torch/together/derived_gradients.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "core/formats/recording/recording.h"
#include "core/torch/execution/as_recorded.h"
#include "core/torch/together/collective_values.h"
#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/generator.h"

namespace retrograd {
namespace {

/// One rank's forward under autograd, which stops at each collective of numbers.
class LiveForward {
 public:
  LiveForward(const RankStep& step, const RankRun& run)
      : step_(step), document_(step.document()), recording_(step.recording()), values_(document_.valueCount()) {
    std::unordered_map<StorageId, std::string> parameters;
    for (const auto& name : recording_.names)
      if (name.role == "parameter") parameters.emplace(name.storage, name.name);
    for (const auto& shard : recording_.shards)
      if (shard.role == "parameter") parameters.emplace(shard.storage, shard.name);
    for (const auto& [id, value] : run.begun) {
      values_[id.index] = value;
      if (!value.isTensor()) continue;
      const auto& tensor = value.toTensor();
      auto own = tensor.detach().clone();
      const auto found = parameters.find(document_.value(id).storage);
      if (found != parameters.end() && own.is_floating_point()) {
        own.requires_grad_(true);
        leaves_.emplace(found->second, own);
      }
      values_[id.index] = own;
    }
    for (std::size_t i = 0; i < step.collectives.size(); ++i) collectives_.emplace(step.collectives[i].op, i);
  }

  /// Runs up to the next collective of numbers that a gradient may go through, or to the end of the forward. None
  /// there.
  std::optional<std::size_t> go() {
    const auto& ops = step_.analysis->joint.ops;
    for (; position_ < std::min(recording_.forwardCount, ops.size()); ++position_) {
      const auto op = ops[position_];
      const auto found = collectives_.find(op);
      if (found != collectives_.end() && isLive(found->second)) return found->second;
      run(op);
    }
    return std::nullopt;
  }

  at::Tensor tensor(ValueId value) const {
    return values_[value.index].isTensor() ? values_[value.index].toTensor() : at::Tensor();
  }

  /// The collective that it stopped at gave this.
  void finish(const Collective& call, const std::vector<at::Tensor>& results) {
    const auto outputs = document_.outputs(call.op);
    for (std::size_t i = 0; i < call.results.size(); ++i) {
      const auto& meta = document_.meta(call.results[i]);
      auto result = results[i].reshape(meta.sizes).to(toScalarType(meta.dtype));
      if (auto memory = tensor(call.results[i]); memory.defined()) memory.copy_(result);
      else values_[call.results[i].index] = std::move(result);
    }
    for (const auto output : outputs) {
      if (!output || !document_.isTensor(output) || values_[output.index].isTensor()) continue;
      for (const auto result : call.results)
        if (document_.value(result).storage == document_.value(output).storage &&
            document_.meta(result) == document_.meta(output))
          values_[output.index] = values_[result.index];
    }
    ++position_;
  }

  at::Tensor loss() const {
    if (recording_.losses.size() != 1) throw Error(ErrorCode::unsupportedOp, "there is not one backward, but several");
    auto loss = tensor(recording_.losses.front());
    if (!loss.defined() || !loss.requires_grad() || loss.numel() != 1)
      throw Error(ErrorCode::unsupportedOp, "no gradient leads from its loss");
    return loss.reshape({}).to(at::kDouble);
  }
  const std::map<std::string, at::Tensor>& leaves() const { return leaves_; }

 private:
  bool isLive(std::size_t collective) const {
    const auto& given = step_.collectives[collective].given;
    return std::ranges::any_of(given,
                               [&](ValueId value) { return tensor(value).defined() && tensor(value).requires_grad(); });
  }

  void run(BoundSymbolId op) {
    const auto& recorded = recording_.op(op);
    const auto& bound = document_.boundSymbol(op);
    const auto& name = document_.symbol(op).name;
    const auto operands = document_.operands(op), outputs = document_.outputs(op);
    const auto alias = [&] {
      for (const auto output : outputs)
        if (output) values_[output.index] = values_[operands[0].index];
    };
    if (name.starts_with("recorded.fsdp."))
      throw Error(ErrorCode::unsupportedOp, "its forward gathers shards of parameters (" + name + ")");
    const bool isForward = recorded.phase == Phase::forward || recorded.phase == Phase::loss;
    if (name.find("_c10d_functional.wait_tensor") != std::string::npos ||
        name.find("_wrap_tensor_autograd") != std::string::npos)
      return alias();
    if (recorded.arrivedOf && tensor(operands[0]).defined() && tensor(operands[0]).requires_grad()) return alias();
    if (name == "aten.detach.default") {
      if (recorded.kept == false && recorded.phase == Phase::forward && tensor(operands[0]).requires_grad())
        throw Error(ErrorCode::unsupportedOp, "a detach cuts its forward: " + recordedLine(document_, op));
      return alias();
    }
    const at::AutoGradMode mode(isForward && (bound.gradMode || recorded.function) && !recorded.opaque);
    if (recorded.opaque) {
      for (auto& [id, value] : recordedResults(recording_, document_, op, [&](ValueId id) { return tensor(id); }))
        values_[id.index] = std::move(value);
      return;
    }
    const PreparedCall call(requireOperator(name), document_.pattern(bound.pattern));
    auto stack = call.arguments([&](std::size_t hole) { return values_[operands[hole].index]; });
    if (bound.effects & effect::random) {
      const KeepGenerator keep;
      if (const auto state = recordedState(recording_, document_, op); state.defined()) generator_ = state;
      if (generator_.defined()) setGeneratorState(generator_);
      call.op().callBoxed(stack);
      generator_ = generatorState();
    } else {
      call.op().callBoxed(stack);
    }
    const auto results = flatten(stack);
    for (std::size_t i = 0; i < outputs.size() && i < results.size(); ++i)
      if (outputs[i]) values_[outputs[i].index] = results[i];
  }

  const RankStep& step_;
  const Document& document_;
  const StepRecording& recording_;
  std::vector<c10::IValue> values_;
  std::map<std::string, at::Tensor> leaves_;
  std::unordered_map<BoundSymbolId, std::size_t> collectives_;
  std::size_t position_ = 0;
  at::Tensor generator_;
};

/// The ranks of one unit.
class Together {
 public:
  Together(const std::vector<RankStep>& ranks, const std::vector<RankRun>& runs, const Meetings& meetings,
           std::vector<std::size_t> unit)
      : ranks_(ranks), meetings_(meetings), unit_(std::move(unit)) {
    for (const auto rank : unit_) forwards_.emplace(rank, LiveForward(ranks[rank], runs[rank]));
  }

  void run(std::vector<DerivedGradients>& derived, SpilledTensors& spilled, const Progress& progress) {
    const at::AutoGradMode mode(true);
    std::map<std::size_t, std::size_t> waiting;  // rank -> collective
    for (;;) {
      progress.check();
      for (auto& [rank, forward] : forwards_)
        if (!waiting.contains(rank))
          if (const auto at = forward.go()) waiting[rank] = *at;
      if (waiting.empty()) break;
      meet(waiting);
    }
    at::Tensor sum;
    for (auto& [rank, forward] : forwards_) sum = sum.defined() ? sum + forward.loss() : forward.loss();
    std::vector<at::Tensor> leaves;
    std::vector<std::pair<std::size_t, std::string>> names;
    for (auto& [rank, forward] : forwards_)
      for (const auto& [name, leaf] : forward.leaves()) {
        leaves.push_back(leaf);
        names.emplace_back(rank, name);
      }
    const auto gradients = torch::autograd::grad({sum / static_cast<double>(unit_.size())}, leaves, {}, false, false,
                                                 /*allow_unused=*/true);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const auto step =
          ranks_[names[i].first].recording().ops.empty() ? 0 : ranks_[names[i].first].recording().ops.front().step;
      if (gradients[i].defined()) derived[names[i].first].of[{step, names[i].second}] = spilled.put(gradients[i]);
    }
  }

 private:
  /// One meeting of which all members wait.
  void meet(std::map<std::size_t, std::size_t>& waiting) {
    for (const auto& meeting : meetings_.all) {
      const bool isReady = std::ranges::all_of(meeting.members, [&](const Meeting::Member& one) {
        const auto found = waiting.find(one.step);
        return found != waiting.end() && found->second == one.collective;
      });
      if (!isReady) continue;
      std::vector<std::vector<at::Tensor>> results(meeting.members.size());
      for (std::size_t member = 0; member < meeting.members.size(); ++member) {
        const auto& call = callOf(meeting.members[member]);
        for (std::size_t i = 0; i < call.results.size(); ++i) {
          std::string why;
          auto result = computeResult(
              ranks_, meeting, member, i,
              [&](std::size_t from, std::size_t n) {
                const auto& given = callOf(meeting.members[from]).given;
                return n < given.size() ? forwards_.at(meeting.members[from].step).tensor(given[n]) : at::Tensor();
              },
              why);
          if (!result)
            throw Error(ErrorCode::unsupportedOp,
                        textOf(ranks_[meeting.members[member].step].document(), call) + ": " + why);
          results[member].push_back(result->value);
        }
      }
      for (std::size_t member = 0; member < meeting.members.size(); ++member) {
        const auto rank = meeting.members[member].step;
        forwards_.at(rank).finish(callOf(meeting.members[member]), results[member]);
        waiting.erase(rank);
      }
      return;
    }
    throw Error(ErrorCode::unsupportedOp, "a collective of its forward meets no other");
  }

  const Collective& callOf(const Meeting::Member& member) const {
    return ranks_[member.step].collectives[member.collective];
  }

  const std::vector<RankStep>& ranks_;
  const Meetings& meetings_;
  const std::vector<std::size_t> unit_;
  std::map<std::size_t, LiveForward> forwards_;
};

}  // namespace

std::vector<DerivedGradients> deriveTogether(const std::vector<RankStep>& ranks, const std::vector<RankRun>& runs,
                                             const Meetings& meetings, SpilledTensors& spilled,
                                             const Progress& progress) {
  std::vector<DerivedGradients> derived(ranks.size());
  const auto units = unitsOf(ranks, runs);
  for (std::size_t first = 0; first < ranks.size(); ++first) {
    std::vector<std::size_t> unit;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      if (units[rank] == first) unit.push_back(rank);
    if (unit.size() < 2) continue;
    std::string why;
    try {
      Together(ranks, runs, meetings, unit).run(derived, spilled, progress);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) throw;
      why = error.what();
    } catch (const c10::Error& error) {
      why = error.what_without_backtrace();
    } catch (const std::exception& error) {
      why = error.what();
    }
    for (const auto rank : unit)
      if (!why.empty())
        derived[rank] = {
            .of = {},
            .refusal = "the ranks compute one forward together, and no gradient could be derived of it: " + why};
  }
  return derived;
}

}  // namespace retrograd
