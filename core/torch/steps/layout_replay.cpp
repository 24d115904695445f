#include "core/torch/steps/layout_replay.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/base/error.h"
#include "core/torch/judging/compare.h"
#include "core/torch/tracing/convert.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

constexpr std::size_t mostCalls = 2;  ///< of one Function that are run again
constexpr double clearly = 1e-3;      ///< of the largest element: what no other order of sums explains

at::Tensor contiguous(const at::Tensor& tensor) { return tensor.clone(at::MemoryFormat::Contiguous); }

/// Every other element of a wider tensor.
at::Tensor asSlice(const at::Tensor& tensor) {
  auto sizes = tensor.sizes().vec();
  const auto own = sizes.back();
  sizes.back() = 2 * own + 1;
  auto slice = at::full(sizes, 7, tensor.options()).slice(-1, 1, 2 * own + 1, 2);
  slice.copy_(tensor);
  return slice;
}

/// Its first element everywhere, in the place of one: what the backward of a sum hands on.
at::Tensor expanded(const at::Tensor& tensor) { return tensor.reshape({-1})[0].clone().expand(tensor.sizes()); }

bool isPlain(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided && (tensor.is_floating_point() || tensor.is_complex());
}

struct Layout {
  const char* name;
  at::Tensor (*of)(const at::Tensor&);
};
constexpr std::array<Layout, 2> layouts{
    {{"expanded, as the backward of a sum hands it on", expanded}, {"a slice of a wider tensor", asSlice}}};

}  // namespace

LayoutReplay::LayoutReplay(const Analysis& analysis, const StepValues& values)
    : document_(*analysis.document), recording_(*analysis.file.recording), ops_(analysis.joint.ops), values_(values) {}

std::vector<Claim> LayoutReplay::claims(const std::unordered_map<std::int32_t, std::vector<std::size_t>>& linked) {
  std::map<std::int32_t, const std::vector<std::size_t>*> inOrder;
  for (const auto& [forward, positions] : linked) inOrder.emplace(forward, &positions);
  std::map<StringId, std::size_t> calls;
  std::vector<Claim> claims;
  for (const auto& [forward, positions] : inOrder) {
    const auto call = callOf(BoundSymbolId(forward), *positions);
    if (!call || ++calls[recording_.op(ops_[call->positions.front()]).function] > mostCalls) continue;
    auto claim = judge(*call);
    const bool isNew = claim && std::ranges::none_of(claims, [&](const Claim& one) {
                         return one.subject == claim->subject && one.line == claim->line;
                       });
    if (isNew) claims.push_back(std::move(*claim));
  }
  return claims;
}

/// Made by a backward, or what it began with.
bool LayoutReplay::isGradient(ValueId value) const {
  const auto producer = value && document_.isTensor(value) ? document_.value(value).producer : BoundSymbolId();
  if (!recording_.has(producer)) return false;
  const auto phase = recording_.op(producer).phase;
  if (phase == Phase::backward || phase == Phase::hook || phase == Phase::accumulation) return true;
  return document_.symbol(producer).name == "aten.ones_like.default" && !recording_.op(producer).hasNode;
}

/// None for what is no Function's backward, or cannot run again.
std::optional<LayoutReplay::Call> LayoutReplay::callOf(BoundSymbolId forward,
                                                       const std::vector<std::size_t>& linked) const {
  Call call{.forward = forward};
  std::set<ValueId> own;
  for (const auto position : linked) {
    const auto op = ops_[position];
    const auto& recorded = recording_.op(op);
    if (!recorded.function) continue;
    const auto* tensors = values_.at(position);
    const auto effects = document_.boundSymbol(op).effects;
    if (!tensors || recorded.opaque || (effects & (effect::random | effect::opaque))) return std::nullopt;
    for (const auto written : writtenOperands(document_, op))
      if (!own.contains(written)) return std::nullopt;
    const auto operands = document_.operands(op);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (!operands[i] || own.contains(operands[i])) continue;
      if (!document_.isTensor(operands[i]) || !tensors->operands[i].defined()) return std::nullopt;
      const bool isNew = std::ranges::find(call.gradients, operands[i]) == call.gradients.end();
      if (isNew && isGradient(operands[i]) && isPlain(tensors->operands[i])) call.gradients.push_back(operands[i]);
    }
    for (const auto output : document_.outputs(op)) own.insert(output);
    call.positions.push_back(position);
  }
  if (call.positions.empty() || call.gradients.empty()) return std::nullopt;
  const auto name = document_.text(recording_.op(ops_[call.positions.front()]).function);
  const bool isStraight = std::ranges::find(recording_.straightens, name) != recording_.straightens.end();
  return isStraight || name.starts_with("BackwardHookFunction") ? std::nullopt : std::optional(std::move(call));
}

/// What each op makes; none where one raises.
std::optional<std::vector<LayoutReplay::Tensors>> LayoutReplay::run(const Call& call, const Tensors& gradients) const {
  at::AutoGradMode gradMode(false);
  at::AutoDispatchBelowADInplaceOrView belowAutograd;
  std::map<ValueId, c10::IValue> known;
  for (std::size_t i = 0; i < gradients.size(); ++i) known[call.gradients[i]] = gradients[i];
  std::vector<Tensors> made;
  try {
    for (const auto position : call.positions) {
      const auto op = ops_[position];
      const auto operands = document_.operands(op);
      const PreparedCall prepared(requireOperator(document_.symbol(op).name),
                                  document_.pattern(document_.boundSymbol(op).pattern));
      auto stack = prepared.arguments([&](std::size_t hole) -> c10::IValue {
        const auto found = known.find(operands[hole]);
        return found == known.end() ? c10::IValue(values_.at(position)->operands[hole]) : found->second;
      });
      prepared.op().callBoxed(stack);
      const auto results = flatten(stack);
      const auto outputs = document_.outputs(op);
      made.emplace_back();
      for (std::size_t i = 0; i < outputs.size() && i < results.size(); ++i) {
        known[outputs[i]] = results[i];
        made.back().push_back(
            results[i].isTensor() && isPlain(results[i].toTensor()) ? contiguous(results[i].toTensor()) : at::Tensor());
      }
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) throw;
    return std::nullopt;
  } catch (const c10::Error&) {
    return std::nullopt;
  }
  return made;
}

/// Ops that make what no other op of the backward reads: its results.
std::vector<std::size_t> LayoutReplay::ends(const Call& call) const {
  std::set<ValueId> read;
  for (const auto position : call.positions)
    for (const auto operand : document_.operands(ops_[position])) read.insert(operand);
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < call.positions.size(); ++i)
    if (std::ranges::any_of(document_.outputs(ops_[call.positions[i]]),
                            [&](ValueId output) { return output && !read.contains(output); }))
      found.push_back(i);
  return found;
}

/// The first op whose result differs, where one of the backward's results does.
std::optional<std::size_t> LayoutReplay::firstToDiffer(const Call& call, const std::vector<Tensors>& a,
                                                       const std::vector<Tensors>& b) const {
  const auto differs = [&](std::size_t op) {
    for (std::size_t i = 0; i < a[op].size() && i < b[op].size(); ++i) {
      const auto &mine = a[op][i], &other = b[op][i];
      if (!mine.defined() || !other.defined() || mine.numel() == 0) continue;
      if (mine.sizes() != other.sizes()) return true;
      const auto found = difference(copyOut(mine), copyOut(other), true);
      if (!found.failure.empty() || found.deviation > clearly * found.scale) return true;
    }
    return false;
  };
  if (std::ranges::none_of(ends(call), differs)) return std::nullopt;
  for (std::size_t op = 0; op < a.size(); ++op)
    if (differs(op)) return op;
  return std::nullopt;
}

std::optional<Claim> LayoutReplay::judge(const Call& call) const {
  const auto gradientAt = [&](ValueId value) {
    for (const auto position : call.positions) {
      const auto operands = document_.operands(ops_[position]);
      for (std::size_t i = 0; i < operands.size(); ++i)
        if (operands[i] == value) return values_.at(position)->operands[i];
    }
    return at::Tensor();
  };
  for (const auto& layout : layouts) {
    Tensors straight, other;
    bool isOther = false;
    for (const auto value : call.gradients) {
      const auto gradient = gradientAt(value);
      const bool isLaid = gradient.dim() > 0 && gradient.numel() > 1;
      other.push_back(isLaid ? layout.of(gradient) : gradient);
      straight.push_back(contiguous(other.back()));
      isOther |= isLaid;
    }
    if (!isOther) continue;
    const auto right = run(call, straight), made = run(call, other);
    const auto first = right && made ? firstToDiffer(call, *right, *made) : std::nullopt;
    if (!first) continue;
    const auto op = ops_[call.positions[*first]];
    const std::string name(document_.text(recording_.op(op).function));
    return Claim{
        .by = Producer::derivative,
        .kind = "function-layout",
        .subject = name,
        .sentence = fmt::format("function `{}`: its backward depends on the layout of its gradient: {} gives another "
                                "result where the gradient is {}",
                                name, document_.symbol(op).name, layout.name),
        .remedy = "let its backward read the gradient by indices, or call contiguous() on it first",
        .line = recordedLine(document_, op),
        .op = op,
        .also = {call.forward},
        .command = "source"};
  }
  return std::nullopt;
}

}  // namespace retrograd
