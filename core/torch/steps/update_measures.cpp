#include "core/torch/steps/update_measures.h"

#include <ATen/ops/dot.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/masked_select.h>
#include <ATen/ops/sub.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/torch/execution/statistics.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

/// What optimizers divide by the root of.
constexpr std::array<std::string_view, 5> secondMoments{"exp_avg_sq", "max_exp_avg_sq", "square_avg", "sum", "exp_inf"};

bool isStrided(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided && tensor.has_storage() && !tensor.is_quantized();
}

/// All elements of the memory that a tensor is in, whichever part of it the tensor is.
at::Tensor wholeOf(const at::Tensor& tensor) {
  const auto elements = static_cast<std::int64_t>(tensor.storage().nbytes() / tensor.itemsize());
  return at::empty({0}, tensor.options()).set_(tensor.storage(), 0, {elements}, {1});
}

/// In a type in which differences are meaningful.
at::Tensor wide(const at::Tensor& tensor) {
  return tensor.is_complex() || tensor.scalar_type() == at::kDouble ? tensor : tensor.to(at::kFloat);
}

std::string_view symbolName(const Document& document, BoundSymbolId op) { return document.symbol(op).name; }

/// The second moment that is 0 wherever `added` is not finite; empty: none is.
std::string zeroRootOf(const std::map<std::string, at::Tensor>& states, const at::Tensor& added) {
  for (const auto name : secondMoments) {
    const auto found = states.find(std::string(name));
    if (found == states.end() || found->second.numel() != added.numel()) continue;
    const auto there = found->second.masked_select(added.isfinite().logical_not());
    if (there.numel() > 0 && computeStatistics(there).zeros == there.numel()) return found->first;
  }
  return {};
}

}  // namespace

bool unscales(std::string_view op) { return op.starts_with("aten._amp_foreach_non_finite_check_and_unscale_"); }

UpdateMeasures::UpdateMeasures(const Analysis& analysis)
    : analysis_(analysis), document_(*analysis.document), recording_(*analysis.file.recording) {
  takeNames();
  const auto& ops = analysis.joint.ops;
  for (const auto op : ops)
    if (isUpdating(op)) planned_.try_emplace({recording_.op(op).step, recording_.op(op).backward});
  for (auto& [key, update] : planned_) {
    update.step = updates_.steps.size();
    updates_.steps.emplace_back();
    updates_.steps.back().step = key.first;
    updates_.steps.back().backward = key.second;
  }
  planRows();
  for (std::size_t i = 0; i < ops.size(); ++i) planOp(i, ops[i]);
  planLooks();
}

/// Memory that several parameters share has the name of the first, and says how many more.
void UpdateMeasures::takeNames() {
  std::unordered_map<StorageId, std::set<std::string>> all;
  for (const auto& name : recording_.names) {
    names_.try_emplace(name.storage, name);
    if (name.role == names_.at(name.storage).role) all[name.storage].insert(name.name);
  }
  for (auto& [storage, name] : names_)
    if (all[storage].size() > 1) name.name += fmt::format(" and {} more", all[storage].size() - 1);
}

const RecordedName* UpdateMeasures::nameOf(ValueId value) const {
  const auto storage = value ? document_.value(value).storage : StorageId();
  const auto found = storage ? names_.find(storage) : names_.end();
  return found == names_.end() ? nullptr : &found->second;
}

bool UpdateMeasures::isUpdating(BoundSymbolId op) const {
  return recording_.op(op).phase == Phase::optimizer || unscales(symbolName(document_, op));
}

void UpdateMeasures::planOp(std::size_t position, BoundSymbolId op) {
  const auto& recorded = recording_.op(op);
  const auto found = planned_.find({recorded.step, recorded.backward});
  const auto name = symbolName(document_, op);
  if (name.starts_with("aten._amp_update_scale_")) {
    const auto operands = document_.operands(op);
    if (latest_ && !operands.empty())
      after_[position].push_back({Look::What::nextScale, latest_->step, after(op, operands[0]), {}});
  } else if (found != planned_.end() && unscales(name)) {
    planUnscaling(position, op, *(latest_ = &found->second));
  } else if (found != planned_.end() && recorded.phase == Phase::optimizer) {
    latest_ = &found->second;
    planReads(position, op, *latest_);
    planWrites(position, op, *latest_);
  } else if (found != planned_.end() && (recorded.phase == Phase::clip || recorded.phase == Phase::other)) {
    planReadsBefore(position, op, found->second);
  } else if (latest_ && recorded.number < 0 && recorded.opaque) {
    planWrites(position, op, *latest_);  // a kernel of the optimizer's own, seen when the weight is read again
  }
}

std::size_t UpdateMeasures::rowOf(Update& update, const std::string& parameter) {
  const auto [it, isNew] = update.rows.try_emplace(parameter, rows_.size());
  if (!isNew) return it->second;
  auto& parameters = updates_.steps[update.step].parameters;
  rows_.push_back({.step = update.step, .parameter = parameters.size()});
  parameters.emplace_back();
  parameters.back().parameter = parameter;
  return it->second;
}

/// (gradients, found_inf, inv_scale)
void UpdateMeasures::planUnscaling(std::size_t position, BoundSymbolId op, Update& update) {
  const auto operands = document_.operands(op);
  if (operands.size() < 2) return;
  const auto gradients = operands.first(operands.size() - 2);
  after_[position].push_back({Look::What::isSkipped, update.step, operands[operands.size() - 2], {}});
  before_[position].push_back({Look::What::inverseScale, update.step, operands.back(), {}});
  for (const auto gradient : gradients)
    if (const auto* name = nameOf(gradient); name && name->role == "gradient") {
      update.seen.insert(name->storage);
      const auto what = update.clipped.contains(name->storage) ? Look::What::unscaled : Look::What::gradient;
      after_[position].push_back({what, rowOf(update, name->name), gradient, {}});
    }
}

/// Rows are in the order in which optimizers, or a scaler, come to the parameters.
void UpdateMeasures::planRows() {
  for (const auto op : analysis_.joint.ops) {
    if (!isUpdating(op)) continue;
    auto& update = planned_.at({recording_.op(op).step, recording_.op(op).backward});
    for (const auto operand : document_.operands(op))
      if (const auto* name = nameOf(operand); name && (name->role == "gradient" || name->role == "parameter"))
        rowOf(update, name->name);
  }
}

/// Of an op of the optimizer.
void UpdateMeasures::planReads(std::size_t position, BoundSymbolId op, Update& update) {
  const auto written = writtenBy(op);
  const bool unscalesItself = symbolName(document_, op).starts_with("aten._fused_");
  for (const auto operand : document_.operands(op)) {
    const auto* name = nameOf(operand);
    if (!name || name->role != "gradient" || !update.read.insert(name->storage).second) continue;
    const bool isWritten = std::ranges::find(written, operand) != written.end();
    auto& looks = (isWritten && unscalesItself ? after_ : before_)[position];
    looks.push_back({Look::What::read, rowOf(update, name->name), operand, {}});
  }
}

/// Whether an op of a loop makes a gradient smaller or larger; a reduction over ranks, which writes it too, does not
/// count.
static bool scales(std::string_view name) {
  constexpr std::array names{"aten.mul_",    "aten.div_",          "aten.clamp",         "aten.clip_",
                             "aten.renorm_", "aten._foreach_mul_", "aten._foreach_div_", "aten._foreach_clamp"};
  return std::ranges::any_of(names, [&](std::string_view one) { return name.starts_with(one); });
}

/// Of an op between backward and update. What clipping reads counts as the gradient, whatever came before.
void UpdateMeasures::planReadsBefore(std::size_t position, BoundSymbolId op, Update& update) {
  const bool clips = recording_.op(op).phase == Phase::clip;
  const auto written = writtenBy(op);
  for (const auto operand : document_.operands(op)) {
    const auto* name = nameOf(operand);
    if (!name || name->role != "gradient" || !update.rows.contains(name->name)) continue;
    const auto row = rowOf(update, name->name);
    if (update.seen.insert(name->storage).second || (clips && update.clipped.insert(name->storage).second))
      before_[position].push_back({Look::What::gradient, row, operand, {}});
    if (clips) update.clipped.insert(name->storage);
    auto& change = of(rows_[row]).change;
    const bool isScaled =
        std::ranges::find(written, operand) != written.end() && (clips || scales(symbolName(document_, op)));
    if (isScaled && change != ParameterUpdate::Change::clipping)
      change = clips ? ParameterUpdate::Change::clipping : ParameterUpdate::Change::other;
  }
}

/// Also what an op that nobody can run is recorded to have written.
std::vector<ValueId> UpdateMeasures::writtenBy(BoundSymbolId op) const {
  auto written = writtenOperands(document_, op);
  const auto& recorded = recording_.op(op);
  for (std::uint32_t i = 0; i < recorded.putCount; ++i)
    written.push_back(recording_.puts[recorded.putsBegin + i].value);
  return written;
}

/// What the op made of the memory that it wrote: a result that is there, else the operand.
ValueId UpdateMeasures::after(BoundSymbolId op, ValueId written) const {
  for (const auto output : document_.outputs(op))
    if (output && document_.value(output).storage == document_.value(written).storage) return output;
  return written;
}

void UpdateMeasures::planWrites(std::size_t position, BoundSymbolId op, Update& update) {
  auto touched = writtenBy(op);
  for (const auto output : document_.outputs(op))  // a state that an optimizer makes at its first update
    if (const auto* name = nameOf(output); name && name->role == "optimizer" && document_.value(output).version == 0)
      touched.push_back(output);
  for (const auto operand : touched) {
    const auto* name = nameOf(operand);
    if (!name || (name->role != "parameter" && name->role != "optimizer")) continue;
    auto& row = rows_[rowOf(update, name->name)];
    auto& step = updates_.steps[update.step];
    if (name->role == "parameter" && !step.op) {
      step.op = op;
      step.line = recordedLine(document_, op);
    }
    const auto made = document_.outputs(op);
    if (name->role == "optimizer" && document_.value(operand).version == 0 &&
        std::ranges::find(made, operand) != made.end())
      of(row).beginsStates = true;
    const Writes writes{position, position, operand, after(op, operand)};
    const auto extend = [&](Writes& known) { known = {known.first, position, known.before, writes.after}; };
    if (name->role == "parameter") {
      if (row.weight) extend(*row.weight);
      else row.weight = writes;
    } else if (const auto [it, isNew] = row.states.try_emplace(name->state, writes); !isNew) {
      extend(it->second);
    }
  }
}

/// States before weights: who looks at a weight wants to know its states.
void UpdateMeasures::planLooks() {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    for (const auto& [state, writes] : rows_[i].states) {
      before_[writes.first].push_back({Look::What::stateBefore, i, writes.before, state});
      after_[writes.last].push_back({Look::What::stateAfter, i, writes.after, state});
    }
    if (const auto& writes = rows_[i].weight) {
      before_[writes->first].push_back({Look::What::weightBefore, i, writes->before, {}});
      after_[writes->last].push_back({Look::What::weightAfter, i, writes->after, {}});
      of(rows_[i]).value = writes->after;
    }
  }
}

void UpdateMeasures::begins(const std::vector<std::pair<ValueId, c10::IValue>>& given) {
  const auto tensorOf = [&](ValueId id) {
    const auto found = std::ranges::find_if(given, [&](const auto& one) { return one.first == id; });
    return found != given.end() && found->second.isTensor() ? found->second.toTensor() : at::Tensor();
  };
  for (const auto& look : before_[0]) take(look, tensorOf);
}

void UpdateMeasures::ran(std::size_t position, const Evaluator& evaluator, const OpMeasure&) {
  const auto tensorOf = [&](ValueId id) { return evaluator.tensorOrNone(id); };
  for (const auto* looks : {&after_, &before_})
    if (const auto found = looks->find(looks == &after_ ? position : position + 1); found != looks->end())
      for (const auto& look : found->second) take(look, tensorOf);
}

void UpdateMeasures::take(const Look& look, const Lookup& tensorOf) {
  const auto tensor = tensorOf(look.value);
  if (!isStrided(tensor)) return;
  auto& step = updates_.steps[look.what >= Look::What::isSkipped ? look.row : rows_[look.row].step];
  switch (look.what) {
    case Look::What::isSkipped: step.wasSkipped |= tensor.item().toDouble() > 0; return;
    case Look::What::inverseScale: step.scale = 1 / tensor.item().toDouble(); return;
    case Look::What::nextScale: step.nextScale = tensor.item().toDouble(); return;
    default: break;
  }
  auto& row = rows_[look.row];
  auto& update = of(row);
  switch (look.what) {
    case Look::What::gradient: update.gradient = computeStatistics(tensor); break;
    case Look::What::unscaled:
      if (update.gradient && step.scale > 0)
        for (auto* number : {&update.gradient->min, &update.gradient->max, &update.gradient->mean,
                             &update.gradient->standardDeviation, &update.gradient->norm, &update.gradient->norm1})
          *number /= step.scale;
      break;
    case Look::What::read:
      update.read = computeStatistics(tensor);
      row.gradient = wholeOf(tensor).clone();
      if (!update.gradient) update.gradient = update.read;
      break;
    case Look::What::weightBefore:
      row.before = wholeOf(tensor).clone();
      update.weight = computeStatistics(row.before);
      break;
    case Look::What::stateBefore:
      if (hasBadNumber(tensor)) update.badBefore = look.state;
      break;
    case Look::What::stateAfter:
      update.states.push_back({look.state, computeStatistics(tensor)});
      row.newStates[look.state] = wholeOf(tensor);
      break;
    default: measureUpdate(row, update, tensor); break;
  }
}

void UpdateMeasures::measureUpdate(Row& row, ParameterUpdate& update, const at::Tensor& after) {
  const auto whole = wholeOf(after);
  if (row.before.defined() && row.before.numel() == whole.numel()) {
    const auto added = at::sub(wide(whole), wide(row.before));
    update.update = computeStatistics(added);
    if (!update.isFinite()) update.zeroRoot = zeroRootOf(row.newStates, added);
    const auto& gradient = row.gradient;
    if (gradient.defined() && gradient.numel() == added.numel() && !added.is_complex() &&
        added.device() == gradient.device())
      update.along = at::dot(added, gradient.to(added.scalar_type())).item().toDouble();
  }
  row.before.reset();
  row.gradient.reset();
  row.newStates.clear();
}

}  // namespace retrograd
