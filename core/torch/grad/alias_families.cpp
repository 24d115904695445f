#include "core/torch/grad/alias_families.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/trace/op_traits.h"

namespace retrograd {

void AliasFamilies::noteOp(BoundSymbolId op) {
  const auto operands = document_.operands(op);
  const auto outputs = std::as_const(document_).outputs(op);
  const bool writes = document_.symbol(op).isMutable;
  ++now_;
  madeAt_.resize(document_.valueCount());
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (!outputs[k] || !document_.isTensor(outputs[k])) continue;
    madeAt_[outputs[k].index] = now_;
    const auto storage = document_.value(outputs[k]).storage;
    for (std::size_t j = 0; storage && j < operands.size(); ++j) {
      if (!operands[j] || operands[j] == outputs[k] || document_.value(operands[j]).storage != storage) continue;
      sources_[outputs[k].index] = {
          operands[j], !writes, {op, static_cast<std::int32_t>(k), static_cast<std::int32_t>(j), {}}};
      if (!writes && isUnsafe(sources_[outputs[k].index].step))
        place(outputs[k], true);  // while it can be said of what it is a view
      break;
    }
  }
}

std::int32_t AliasFamilies::versionGroup(std::int32_t index) const {
  while (family(index).parent >= 0 && !isUnsafe(family(index).path.back())) index = family(index).parent;
  return index;
}

std::int32_t AliasFamilies::versionGroupOf(ValueId value, std::int32_t memoryIndex) const {
  for (auto at = value;;) {
    if (const auto known = everCurrentOf_.find(at.index); known != everCurrentOf_.end())
      return versionGroup(known->second);
    const auto source = sources_.find(at.index);
    if (source == sources_.end()) return memory(memoryIndex).owner;
    at = source->second.base;
  }
}

void AliasFamilies::noteWrite(std::int32_t index, ValueId content, MetaId geometry, bool seen) {
  auto& memory = memoryOf(family(index));
  memory.lastWrite = now_;
  if (seen) family(versionGroup(index)).lastSeen = now_;
  else memory.silent = true;
  contents_[content.index] = {index, geometry, now_};
}

bool AliasFamilies::isOfContent(ValueId value) const {
  for (auto at = value;;) {
    if (contents_.contains(at.index)) return true;
    const auto source = sources_.find(at.index);
    if (source == sources_.end()) return false;
    at = source->second.base;
  }
}

bool AliasFamilies::writtenUnseenAfter(std::int32_t time, std::int32_t group) const {
  return time >= family(group).lastSeen && time < memory(family(group).memory).lastWrite;
}

std::vector<AliasFamilies::Stale> AliasFamilies::writtenUnseen() const {
  std::unordered_set<std::int32_t> unseen;
  for (const auto& family : families_)
    if (memory(family.memory).silent ||
        (family.parent >= 0 && isUnsafe(family.path.back()) && memory(family.memory).version > 0))
      unseen.insert(family.memory);
  std::vector<Stale> stale;
  if (unseen.empty()) return stale;
  std::unordered_set<std::int32_t> clones;  // what an in-place op wrote to instead of the tensor
  for (const auto& [value, source] : sources_)
    if (!source.isView) clones.insert(source.base.index);
  for (std::size_t v = 0; v < document_.valueCount(); ++v) {
    const ValueId value(static_cast<std::int64_t>(v));
    if (!document_.isTensor(value) || clones.contains(value.index)) continue;
    if (const auto content = contents_.find(value.index); content != contents_.end()) {
      const auto& [index, geometry, writtenAt] = content->second;
      if (unseen.contains(family(index).memory) && writtenUnseenAfter(writtenAt, versionGroup(index)))
        stale.push_back({value, family(index).memory, geometry});
      continue;
    }
    const auto known = memoryOf_.find(document_.value(value).storage.index);
    if (known == memoryOf_.end() || !unseen.contains(known->second) ||
        !writtenUnseenAfter(timeOf(value), versionGroupOf(value, known->second)))
      continue;
    stale.push_back({value, known->second, document_.value(value).meta});
  }
  return stale;
}

bool AliasFamilies::breaksGradient(const ViewStep& step, ValueId result) const {
  if (!step.view) return true;
  const auto& bound = document_.boundSymbol(step.view);
  if (isUnsafe(step)) return true;
  const auto base = document_.operands(step.view)[step.base];
  const auto dtype = [&](ValueId value) { return document_.meta(value).dtype; };
  // A view in another dtype is none that autograd differentiates, even where the dtype is the same.
  if (document_.symbol(bound.symbol).name == "aten.view.dtype") return true;
  return !bound.gradMode || hasTrait(document_.symbol(bound.symbol).name, OpTrait::detach) ||
         (isDifferentiable(dtype(base)) && !isDifferentiable(dtype(result)));
}

/// as_strided counts in the memory, whatever it was taken of: after a write autograd says so of its base, not of the
/// views between.
bool AliasFamilies::readsMemory(const ViewStep& step) const {
  return step.view && hasTrait(document_.symbol(step.view).name, OpTrait::readsMemory);
}

bool AliasFamilies::sameElements(ValueId a, ValueId b) const {
  const auto& first = document_.meta(a);
  const auto& second = document_.meta(b);
  return first.dtype == second.dtype && first.conjugate == second.conjugate && first.negative == second.negative;
}

std::int32_t AliasFamilies::addFamily(AliasFamily family) {
  const auto index = static_cast<std::int32_t>(families_.size());
  familyOf_[family.current.index] = everCurrentOf_[family.current.index] = index;
  families_.push_back(std::move(family));
  return index;
}

std::int32_t AliasFamilies::leaveRule(std::int32_t index, std::vector<std::pair<ViewStep, ValueId>>& steps) {
  const auto originOf = [&](ValueId value) {  // the computation op in whose rule it is, or whose result it is
    const auto maker = document_.value(value).producer;
    const auto origin = maker ? document_.boundSymbol(maker).origin.op : maker;
    return origin ? origin : maker;
  };
  const auto rule = originOf(families_[index].current);
  auto end = steps.begin();
  while (end != steps.end() && originOf(end->second) == rule) ++end;
  auto& inner = families_[index];
  // How a gradient goes from one result of the op to another that shares its memory is not known.
  memories_[inner.memory].unsure |= inner.results > 0;
  if (end == steps.begin()) {
    inner.isInner = false;
    return index;
  }
  ++inner.results;
  ViewPath path;
  for (auto step = steps.begin(); step != end; ++step) path.push_back(step->first);
  const auto result = std::prev(end)->second;
  const AliasFamily family{result, inner.memory, inner.version, index, std::move(path)};
  steps.erase(steps.begin(), end);
  return addFamily(family);
}

AliasPlace AliasFamilies::place(ValueId tensor, bool isInner) {
  const auto storage = document_.value(tensor).storage;
  std::vector<std::pair<ViewStep, ValueId>> steps;  // from the tensor back, each with its result
  auto at = tensor;
  auto known = familyOf_.find(at.index);
  for (auto source = sources_.find(at.index); known == familyOf_.end() && source != sources_.end();
       source = sources_.find(at.index)) {
    if (source->second.isView) steps.emplace_back(source->second.step, at);
    at = source->second.base;
    known = familyOf_.find(at.index);
  }
  std::int32_t family = -1;
  if (known != familyOf_.end()) {
    family = known->second;
  } else {
    // Nobody was here before: the tensor is the base. Its own base is inside its op's rule, where no
    // gradient comes in.
    const bool viewInRule = !steps.empty();
    steps.clear();
    at = tensor;
    const auto [memory, isNew] = memoryOf_.try_emplace(storage.index, static_cast<std::int32_t>(memories_.size()));
    if (isNew) {
      memories_.push_back({0, static_cast<std::int32_t>(families_.size()), 0, {}});
      family = addFamily({at, memory->second, 0, -1, {}, -1, isInner});
    } else {  // inputs that share memory, each a tensor of its own; or two results of one op
      auto& shared = memories_[memory->second];
      shared.unsure |= document_.value(at).producer.valid();
      family = addFamily(
          {at, memory->second, shared.version, shared.owner, {{{}, 0, 0, document_.value(at).meta}}, -1, isInner});
    }
    families_[family].viewInRule = viewInRule;
  }
  std::ranges::reverse(steps);
  if (families_[family].isInner && !isInner) family = leaveRule(family, steps);
  AliasPlace place{family, {}};
  for (const auto& [step, result] : steps) {
    if (!place.path.empty() && readsMemory(step) && sameElements(families_[place.family].current, result))
      place.path = {{{}, 0, 0, document_.value(result).meta}};
    else place.path.push_back(step);
    if (!breaksGradient(step, result)) continue;
    const auto& parent = families_[place.family];
    place.family = addFamily({result, parent.memory, parent.version, place.family, std::move(place.path), -1, isInner});
    place.path = {};
  }
  ++memories_[families_[place.family].memory].members;
  return place;
}

std::int32_t AliasFamilies::familyOfBase(ValueId value) const {
  const auto it = everCurrentOf_.find(value.index);
  return it == everCurrentOf_.end() ? -1 : it->second;
}

void AliasFamilies::setCurrent(std::int32_t index, ValueId root) {
  auto& family = families_[index];
  if (const auto old = familyOf_.find(family.current.index); old != familyOf_.end() && old->second == index)
    familyOf_.erase(old);
  family.current = root;
  family.version = memories_[family.memory].version;
  familyOf_[root.index] = everCurrentOf_[root.index] = index;
  memoryOf_[document_.value(root).storage.index] = family.memory;
}

}  // namespace retrograd
