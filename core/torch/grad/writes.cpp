// In-place ops made functional. The rule of an in-place op writes to a clone; what the clone holds afterwards becomes
// the new content of the base, through the inverses of the views that led to the written tensor. Every other alias is
// made again when next used, and inputs get their content at the end. A new base keeps the sizes, strides and memory of
// the old one: views, and whether `reshape` copies, depend on them.
#include <algorithm>
#include <array>
#include <utility>

#include "core/base/id_vector.h"
#include "core/torch/grad/joint_builder.h"
#include "core/trace/effects.h"
#include "core/trace/op_traits.h"

namespace retrograd {
namespace {

bool sameGeometry(const TensorMeta& a, const TensorMeta& b) {
  return a.sizes == b.sizes && a.strides == b.strides && a.offset == b.offset && a.conjugate == b.conjugate &&
         a.negative == b.negative;
}

/// Whether autograd's version counters see what an op of this name writes. Those of ops in place and of ops with `out`
/// do, and instance norm is made of such; an op that writes besides its results, as batch norm does its running
/// statistics, raises none, even where its schema says that it writes.
bool tellsVersions(std::string_view name) {
  const auto overload = std::min(name.rfind('.'), name.size());
  return name.substr(0, overload).ends_with('_') || name.substr(overload).find("out") != std::string_view::npos ||
         hasTrait(name, OpTrait::raisesVersion);
}

}  // namespace

/// Aliases are only followed where a write could be seen through one: most computations write nothing. What an earlier
/// derivation on the document left does not count. Inputs that batch norm alone uses as running statistics need no
/// following either; it writes them as eager PyTorch does.
bool JointBuilder::needsAliases() const {
  IdVector<ValueId, char> silently(document_.valueCount());
  bool any = false;
  for (std::size_t i = 0; i < document_.boundSymbolCount(); ++i) {
    const BoundSymbolId op(static_cast<std::int64_t>(i));
    const auto& bound = document_.boundSymbol(op);
    if (bound.origin.role != Role::none) continue;
    const auto& symbol = document_.symbol(bound.symbol);
    if (symbol.isMutable) return true;
    if (symbol.isHigherOrder || !(bound.effects & effect::writes)) continue;
    if (hasTrait(symbol.name, OpTrait::raisesVersion)) return true;
    for (auto operand : writtenOperands(document_, op)) {
      if (document_.value(operand).producer)
        return true;  // computed: it may lie in the memory of an input, or of what others read
      silently[operand] = 1;
      any = true;
    }
  }
  if (!any) return false;
  for (std::size_t i = 0; i < document_.boundSymbolCount(); ++i) {
    const BoundSymbolId op(static_cast<std::int64_t>(i));
    if (document_.boundSymbol(op).origin.role != Role::none) continue;
    const auto written = writtenOperands(document_, op);
    for (auto operand : document_.operands(op))
      if (operand && silently[operand] && std::ranges::find(written, operand) == written.end()) return true;
  }
  return false;
}

/// A value of the computation as the joint has it now.
Binding& JointBuilder::resolve(ValueId computationValue) {
  auto& binding = bindings_[computationValue];
  binding.value = valueOf(binding);
  return binding;
}

/// The tensor, made again from its family's base when something was written since. The gradient passes through the
/// views whatever region it is used in.
ValueId JointBuilder::valueOf(const Binding& binding) {
  if (binding.tensor < 0) return binding.value;
  const std::size_t index = binding.tensor;
  catchUp(tensors_[index].family);
  const auto family = aliases_.family(tensors_[index].family);
  // Autograd makes the history of such a view again, from the sizes that its base has now: the gradient that it then
  // passes on is not that of the elements.
  if (family.baseReshaped && !tensors_[index].path.empty() && document_.value(tensors_[index].value).requiresGrad)
    throw Error(ErrorCode::unsupportedOp,
                "it is a view of a tensor whose sizes or strides changed unseen by autograd after the view was taken",
                document_.displayName(binding.value));
  if (tensors_[index].version != family.version) {
    if (document_.value(tensors_[index].value).requiresGrad && isReplayedAsItWas(tensors_[index].path))
      refuseReplayed(aliases_.memoryOf(family).lastWriter);
    const GradModeScope recorded(region_, true);
    const auto value = follow(aliases_.memoryOf(family).lastWriter, tensors_[index].path, family.current);
    tensors_[index].value = value;
    tensors_[index].version = family.version;
  }
  return tensors_[index].value;
}

TensorState* JointBuilder::tensorOf(ValueId computationValue) {
  const auto tensor = bindings_[computationValue].tensor;
  return tensor < 0 ? nullptr : &tensors_[tensor];
}

Binding JointBuilder::bindingTo(ValueId value) {
  Binding binding{.value = value};
  if (!value || !tracksAliases_ || !document_.isTensor(value) || !document_.value(value).storage) return binding;
  auto place = aliases_.place(value);
  const bool isView = !place.path.empty();
  binding.tensor = static_cast<std::int32_t>(tensors_.size());
  tensors_.push_back({value, place.family, aliases_.family(place.family).version, std::move(place.path), isView});
  return binding;
}

/// A family that missed writes takes the data over from its parent and keeps its own gradient.
void JointBuilder::catchUp(std::int32_t index) {
  const auto family = aliases_.family(index);
  if (family.version == aliases_.memoryOf(family).version) return;
  catchUp(family.parent);
  const GradModeScope dataAlone(region_, false);
  const auto writer = aliases_.memoryOf(family).lastWriter;
  const auto root = follow(writer, family.path, aliases_.family(family.parent).current);
  aliases_.setCurrent(index, withGradientOf(writer, root, family.current));
}

/// Whether the op writes running statistics in a way that the evaluator's private copy of them would not show: through
/// ops of its own, or to memory that other tensors lie in, too.
bool JointBuilder::writesUnseen(BoundSymbolId op) const {
  if (!tracksAliases_ || !(document_.boundSymbol(op).effects & effect::writes)) return false;
  if (hasTrait(document_.symbol(op).name, OpTrait::raisesVersion)) return true;
  for (auto operand : writtenOperands(document_, op)) {
    const auto tensor = bindings_[operand].tensor;
    if (tensor < 0) continue;
    const auto& memory = aliases_.memory(aliases_.family(tensors_[tensor].family).memory);
    if (memory.members > 1 || memory.version > 0) return true;
  }
  return false;
}

/// LibTorch's kernels of batch norm write their running statistics while they read weight, bias and the statistics
/// themselves: where these share memory, the result depends on what the kernel does first.
void JointBuilder::refuseSharedStatistics(BoundSymbolId op) {
  const auto& bound = document_.boundSymbol(op);
  const auto& symbol = document_.symbol(bound.symbol);
  if (!(bound.effects & effect::writes) ||
      (symbol.name.find("batch_norm") == std::string::npos && symbol.name.find("instance_norm") == std::string::npos))
    return;
  const auto operands = copied(document_.operands(op));
  std::vector<std::pair<std::size_t, ValueId>> read;  // position in the schema, value
  const auto& arguments = document_.pattern(bound.pattern).arguments;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    forEachOperand(arguments[i], [&](std::size_t hole) {
      // What an op in place returns may have no type of its own in the computation.
      if (const auto value = operands[hole] ? resolve(operands[hole]).value : ValueId();
          value && document_.isTensor(value))
        read.emplace_back(i, operands[hole]);
    });
  const auto share = [&](ValueId a, ValueId b) {
    const auto first = resolve(a).value, second = resolve(b).value;
    const auto *one = tensorOf(a), *other = tensorOf(b);
    const bool isOneMemory = one && other ? aliases_.family(one->family).memory == aliases_.family(other->family).memory
                                          : document_.value(first).storage == document_.value(second).storage;
    return isOneMemory && overlap(document_.meta(first), document_.meta(second));
  };
  for (auto written : writtenArguments(symbol, arguments))
    for (const auto& [i, value] : read)
      for (const auto& [j, other] : read)
        if (i == written && j != written && (value == other || share(value, other)))
          throw Error(ErrorCode::unsupportedOp,
                      "it writes running statistics to memory in which another of its operands lies",
                      "torch.ops." + symbol.name);
}

void JointBuilder::applyMutation(BoundSymbolId op) {
  const std::string name = document_.symbol(op).name;
  if (hasTrait(name, OpTrait::changesGeometry)) return applyGeometryChange(op);
  if (hasTrait(name, OpTrait::replacesMemory))
    throw Error(ErrorCode::unsupportedOp, "it gives a tensor other memory, which a trace cannot follow",
                "torch.ops." + name);
  for (auto operand : writtenOperands(document_, op)) renewFromBase(op, operand);
  applyWriter(op, callOf(op), WriteMode::cloneMarked);
}

/// Eager PyTorch takes the gradient of what is written to the base of a view. For as_strided of a view that is another
/// gradient than the op's own, which ends at the view that it was taken of.
void JointBuilder::renewFromBase(BoundSymbolId op, ValueId written) {
  resolve(written);
  auto* tensor = tensorOf(written);
  if (!region_.gradMode || !tensor || tensor->path.empty() || tensor->path.back().view) return;
  const auto index = bindings_[written].tensor;
  const auto value = follow(op, ViewPath(tensor->path), aliases_.family(tensor->family).current);
  tensors_[index].value = value;
}

/// An op that writes as its schema says, or, with WriteMode::cloneAll, without a word: running statistics, which
/// autograd does not record.
void JointBuilder::applyWriter(BoundSymbolId op, const Call& call, WriteMode writes) {
  const auto instance = apply(op, document_.boundSymbol(op).symbol, call.pattern, call.tensors, {}, writes);
  const auto recorded = instances_.size();  // one behind it, where it has a backward
  bindOutputs(op, instance, call);
  const auto outputs = copied(std::as_const(document_).outputs(op));
  for (const auto& [hole, local] : instance.rule->written) {
    const auto target = call.computationValues[hole];
    const auto own = valueOfLocal(instance, local);
    if (const auto* tensor = tensorOf(target); tensor && tensor->isView && instance.rule->anyRequiresGrad)
      instances_[recorded - 1].writesView = true;
    const auto content = asAliased(op, call, hole, own);
    if (content != own && instance.rule->anyRequiresGrad)
      instances_[recorded - 1].readInstead.emplace_back(local, content);  // a formula may read the result
    write(op, target, content, writes);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i] && instance.rule->outputs[i] == local) bindings_[outputs[i]] = resolve(target);
  }
}

/// The rule of an in-place op reads its operands as they were. Where another operand lies in part where the op writes,
/// PyTorch's kernel reads some of what it has just written: then the data come from the op itself, run on aliases of
/// one copy, and the gradient from the rule.
ValueId JointBuilder::asAliased(BoundSymbolId op, const Call& call, std::int32_t written, ValueId content) {
  const std::size_t target = written;
  const auto geometry = [&](std::size_t hole) -> const TensorMeta& { return document_.meta(call.tensors[hole]); };
  const auto memoryOf = [&](std::size_t hole) {
    const auto* tensor = tensorOf(call.computationValues[hole]);
    return tensor ? aliases_.family(tensor->family).memory : -1;
  };
  const std::string name = document_.symbol(op).name;
  const auto isResolved = [&](std::size_t hole) {
    return (geometry(hole).conjugate || geometry(hole).negative) && !hasTrait(name, OpTrait::readsConjugates);
  };
  // copy_ goes element by element: one that is copied onto itself is read before it is written.
  const auto isInStep = [&](std::size_t hole) {
    const auto &from = geometry(hole), &to = geometry(target);
    return hasTrait(name, OpTrait::fillsWhole) && from.sizes == to.sizes && from.strides == to.strides &&
           from.offset == to.offset;
  };
  if (isResolved(target)) return content;
  std::vector<std::size_t> aliased;
  for (std::size_t hole = 0; hole < call.tensors.size(); ++hole)
    if (hole != target && !isResolved(hole) && !isInStep(hole) && memoryOf(hole) >= 0 &&
        memoryOf(hole) == memoryOf(target) && overlap(geometry(hole), geometry(target)))
      aliased.push_back(hole);
  if (aliased.empty()) return content;
  const GradModeScope dataAlone(region_, false);
  const auto owner = withLaziness(op, aliases_.family(aliases_.memory(memoryOf(target)).owner).current, TensorMeta());
  const auto copy = call1(op, "aten.clone.default", {}, flat(op, owner));
  auto tensors = call.tensors;
  aliased.push_back(target);
  for (auto hole : aliased) {
    // What follows adds to the table that it lies in.
    const TensorMeta meta = geometry(hole);  // NOLINT(performance-unnecessary-copy-initialization)
    if (meta.conjugate || meta.negative)
      throw Error(ErrorCode::unsupportedOp,
                  "an operand lies in the memory that it writes, as its conjugate or negative", "torch.ops." + name);
    tensors[hole] = stridedView(op, inDType(op, copy, meta.dtype), meta);
  }
  const auto raw = apply(op, document_.boundSymbol(op).symbol, call.pattern, tensors, {}, WriteMode::inPlace);
  const auto& all =
      raw.rule->written;  // several, where an op writes several operands; none of what it writes without a word
  const auto one = std::ranges::find_if(all, [&](const auto& pair) { return pair.first == written; });
  if (one == all.end())
    throw Error(ErrorCode::unsupportedOp, "it writes to memory in which another of its operands lies",
                "torch.ops." + name);
  const auto data = valueOfLocal(raw, one->second);
  return withGradientOf(op, data, content);
}

/// `content` is what `target` holds after the write; every tensor of its memory sees it from now on. A write that
/// autograd records is part of the history of target's family. In any case the other families of the memory see the
/// data alone, and keep their gradients.
void JointBuilder::write(BoundSymbolId op, ValueId target, ValueId content, WriteMode writes) {
  const bool recorded = region_.gradMode && writes == WriteMode::cloneMarked;
  const bool seen = tellsVersions(document_.symbol(op).name);
  resolve(target);
  const auto* tensor = tensorOf(target);
  if (!tensor) throw Error(ErrorCode::internal, "a written value is in no alias family", document_.displayName(target));
  const auto path = tensor->path;
  auto index = tensor->family;
  aliases_.noteWrite(index, content, document_.value(tensor->value).meta, seen);
  if (recorded) refuseLeaf(index);
  if (recorded) refuseViewsOf(op, aliases_.family(index).former);
  if (recorded && document_.value(content).requiresGrad && isReplayedAsItWas(path)) refuseReplayed(op);
  auto& memory = aliases_.memoryOf(aliases_.family(index));
  if (memory.unsure)
    throw Error(ErrorCode::unsupportedOp, "it writes to memory that two results of one op share",
                "torch.ops." + document_.symbol(op).name);
  ++memory.version;
  memory.lastWriter = op;
  replaceBase(op, index, path, content, recorded);
  while (aliases_.family(index).parent >= 0) {
    const auto child = aliases_.family(index);
    const GradModeScope dataAlone(region_, false);
    const auto data = call1(op, "aten.detach.default", {}, child.current);
    replaceBase(op, child.parent, child.path, data, false);
    index = child.parent;
  }
}

/// Eager PyTorch refuses a recorded write to a leaf that requires a gradient, so an input that is written to requires
/// none.
void JointBuilder::refuseLeaf(std::int32_t index) {
  for (; index >= 0; index = aliases_.family(index).former)
    if (const auto& family = aliases_.family(index); family.leaf)
      throw WritesToLeaf{static_cast<std::size_t>(family.input)};
}

void JointBuilder::replaceBase(BoundSymbolId op, std::int32_t index, const ViewPath& path, ValueId content,
                               bool recorded) {
  const GradModeScope scope(region_, recorded);
  const auto before = aliases_.family(index).current;
  const auto root = inGeometryOf(
      op, before,
      path.empty() ? content : scatterThrough(op, path, before, content, aliases_.family(index).parent < 0));
  aliases_.setCurrent(index, recorded ? root : withGradientOf(op, root, before));
}

/// `content` in the memory layout of `like`, whose place it takes.
ValueId JointBuilder::inGeometryOf(BoundSymbolId op, ValueId like, ValueId content) {
  const auto& from = document_.value(content);
  const auto& to = document_.value(like);
  const TensorMeta meta = document_.meta(to.meta);
  const auto bytes = document_.storage(to.storage).bytes;
  if (sameGeometry(document_.meta(from.meta), meta) && document_.storage(from.storage).bytes >= bytes) return content;
  if (meta.offset == 0 && bytes == meta.storageBytes()) {
    const auto copied =
        call(op, "aten.copy.default", {{Argument::ofOperand(0), Argument::ofOperand(1)}, {}, 2, {}}, {like, content});
    // A copy is resolved. The views that are made again look at conjugated memory: `real` of it is another op.
    return meta.conjugate ? call1(op, "aten._conj.default", {}, call1(op, "aten.conj_physical.default", {}, copied))
                          : copied;
  }
  return scatterByGeometry(op, "aten.copy.default", call1(op, "aten.detach.default", {}, like), like, content);
}

/// Data of one, gradient of the other: what a tensor holds after a write that autograd did not record. The gradient of
/// the result goes to `lineage` unchanged. In a trace that will be differentiated again an op says so; else no op is
/// needed.
ValueId JointBuilder::withGradientOf(BoundSymbolId op, ValueId data, ValueId lineage) {
  if (!document_.value(lineage).requiresGrad) return data;
  if (options_.createGraph) return joined(op, data, lineage);
  document_.value(data).requiresGrad = true;
  instances_.push_back({.op = op, .from = lineage, .to = data});
  return data;
}

ValueId JointBuilder::joined(BoundSymbolId op, ValueId data, ValueId lineage) {
  const GradModeScope recorded(region_, true);
  return call(op, "retrograd.with_gradient_of.default", {{Argument::ofOperand(0), Argument::ofOperand(1)}, {}, 2, {}},
              {data, lineage});
}

/// What was written to inputs and buffers goes there at the end of the forward, so that nothing before reads it too
/// early.
void JointBuilder::copyBack() {
  for (std::size_t m = 0; m < aliases_.memoryCount(); ++m) {
    const auto memory = aliases_.memory(static_cast<std::int32_t>(m));
    const auto& owner = aliases_.family(memory.owner);
    if (owner.input < 0 || memory.version == 0) continue;
    const auto input = computation_.trace.inputs[owner.input];
    leaveInInput(owner.input, "aten.copy_.default", {Argument::ofOperand(1), Argument::ofBool(false)},
                 {input, owner.current}, document_.value(input).meta, memory.lastWriter);
  }
  for (std::size_t i = 0; i < computation_.trace.inputs.size();
       ++i) {  // unsqueeze_ and its kin: the tensor has other sizes or strides from now on
    const auto input = computation_.trace.inputs[i];
    const auto* tensor = input ? tensorOf(input) : nullptr;
    if (!tensor) continue;
    const auto& path = tensor->path.empty() ? aliases_.family(tensor->family).path
                                            : tensor->path;  // under no_grad it began a family of its own
    if (path.empty()) continue;
    const auto geometry = document_.value(tensor->value).meta;
    if (sameGeometry(document_.meta(geometry), document_.meta(input))) continue;
    const auto written = result_.mutated.find(i);
    leaveInInput(
        i, "aten.as_strided_.default", stridedArguments(document_.meta(geometry)),
        {written == result_.mutated.end() ? input : written->second}, geometry,
        document_.boundSymbol(path.back().view ? path.back().view : document_.value(tensor->value).producer).origin.op);
  }
}

/// An op that writes to the computation's input `i`, the first of `operands`; its result is what the input is
/// afterwards.
void JointBuilder::leaveInInput(std::size_t i, std::string_view op, std::vector<Argument> literals,
                                const std::vector<ValueId>& operands, MetaId meta, BoundSymbolId origin) {
  Value value = document_.value(operands[0]);
  value.producer = {};
  value.requiresGrad = false;
  value.kind = ValueKind::activation;
  value.meta = meta;
  ++value.version;
  if (value.name) value.name = document_.internUnique(std::string(document_.text(value.name)));
  const auto after = document_.addValue(value);
  literals.insert(literals.begin(), Argument::ofOperand(0));
  const CallPattern pattern{std::move(literals), {}, static_cast<std::int32_t>(operands.size()), {-1}};
  // An input that is differentiated was written unseen by autograd, or it would not be (WritesToLeaf): a further
  // derivative does not see it either.
  std::optional<GradModeScope> unseen;
  if (document_.value(computation_.trace.inputs[i]).requiresGrad) unseen.emplace(region_, false);
  writer_.emit(writer_.internOp(std::string(op)), document_.internPattern(pattern), effect::writes, operands,
               std::array{after}, JointWriter::forwardOrigin(origin));
  result_.mutated[i] = after;
}

}  // namespace retrograd
