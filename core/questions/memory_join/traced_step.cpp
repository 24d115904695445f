#include "core/questions/memory_join/traced_step.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/op_name.h"
#include "core/derivation/gradient_of.h"
#include "core/questions/align_ops.h"
#include "core/questions/memory_timeline.h"
#include "core/trace/source.h"

namespace retrograd {
namespace {

std::string baseLine(const SourceFrame& frame) {
  const auto slash = frame.file.rfind('/');
  return frame.file.substr(slash == std::string::npos ? 0 : slash + 1) + ":" + std::to_string(frame.line);
}

/// Who reads a storage.
struct Readers {
  BoundSymbolId firstOfBackward;
  std::size_t last = 0;
  BoundSymbolId lastOp;
  std::size_t lastOfForward = 0, firstInBackward = 0;
  std::size_t count = 0;  ///< ops, views left out
  BoundSymbolId only;
};

class TracedStepBuilder {
 public:
  explicit TracedStepBuilder(const Analysis& analysis)
      : analysis_(analysis),
        document_(*analysis.document),
        readers_(document_.storageCount()),
        made_(document_.storageCount(), -1) {}

  TracedStep run() {
    step_.forwardCount = analysis_.joint.forwardCount;
    findReaders();
    nameGradients();
    for (const auto& life : memoryTimeline(analysis_).lives)
      if (isThere(life.value)) add(life);
    for (auto& allocation : step_.allocations)
      if (!allocation.copyOf.empty() && !saved_.contains(allocation.copyOf)) allocation.copyOf.clear();
    addParameters();
    return std::move(step_);
  }

 private:
  StorageId storageOf(ValueId value) const { return value ? document_.value(value).storage : StorageId(); }

  /// Whether the model runs on a GPU and this value is on the CPU all the same, as a generator's state.
  bool isThere(ValueId value) const {
    return analysis_.device.type == Device::Type::cpu || document_.meta(value).device.type != Device::Type::cpu;
  }

  void findReaders() {
    const auto& ops = analysis_.joint.ops;
    for (std::size_t position = 0; position < ops.size(); ++position) {
      const auto& op = document_.boundSymbol(ops[position]);
      const bool isView = (op.effects & effect::view) != 0;
      for (const auto operand : document_.operands(ops[position])) {
        const auto storage = storageOf(operand);
        if (!storage) continue;
        auto& readers = readers_[storage];
        readers.last = position;
        if (position < step_.forwardCount) readers.lastOfForward = position;
        if (isView) continue;
        readers.lastOp = ops[position];
        if (readers.only != ops[position]) ++readers.count, readers.only = ops[position];
        if (position < step_.forwardCount || readers.firstOfBackward) continue;
        readers.firstOfBackward = ops[position];
        readers.firstInBackward = position;
      }
    }
  }

  void nameGradients() {
    const auto gradients = gradientsOfInputs(analysis_);
    const auto& inputs = analysis_.computation().inputs;
    for (std::size_t i = 0; i < inputs.size() && i < gradients.size(); ++i)
      if (const auto storage = storageOf(gradients[i]))
        gradientNames_.emplace(storage, inputs[i].target.empty() ? inputs[i].name : inputs[i].target);
  }

  std::string moduleOf(BoundSymbolId op) const { return std::string(document_.text(document_.boundSymbol(op).module)); }

  void add(const StorageLife& life) {
    const auto opId = analysis_.joint.ops[life.from];
    const auto& op = document_.boundSymbol(opId);
    TracedAllocation allocation;
    allocation.bytes = static_cast<std::uint64_t>(life.bytes);
    allocation.op = shortOpName(document_.opName(opId));
    allocation.module = moduleOf(opId);
    allocation.name = document_.displayName(life.value);
    if (const auto& stack = document_.source(op.source); !stack.empty()) {
      allocation.line = baseLine(*shownFrame(stack));
      allocation.innermost = baseLine(stack.back());
    }
    allocation.position = life.from;
    allocation.maker = opId;
    allocation.backward = life.from >= step_.forwardCount;
    allocation.mayReuse = op.origin.role == Role::accumulation;
    const auto& readers = readers_[life.storage];
    allocation.lastRead = std::max(readers.last, life.from);
    if (readers.lastOp) allocation.lastReader = shortOpName(document_.opName(readers.lastOp));
    addUse(allocation, life, readers);
    const auto number = static_cast<std::int32_t>(step_.allocations.size());
    made_[life.storage] = number;
    if (const auto operands = document_.operands(opId); allocation.mayReuse && !operands.empty())
      if (const auto first = storageOf(operands[0]); first && made_[first] >= 0 && readers_[first].last == life.from)
        step_.allocations[made_[first]].continuedBy = number;
    step_.allocations.push_back(std::move(allocation));
  }

  void addUse(TracedAllocation& allocation, const StorageLife& life, const Readers& readers) {
    switch (life.use) {
      case MemoryUse::saved: allocation.use = TracedAllocation::Use::saved; break;
      case MemoryUse::result: allocation.use = TracedAllocation::Use::result; return;
      case MemoryUse::gradient:
        allocation.use = TracedAllocation::Use::gradient;
        if (const auto name = gradientNames_.find(life.storage); name != gradientNames_.end())
          allocation.parameter = name->second;
        return;
      default: return;
    }
    saved_.insert(allocation.name);
    allocation.lastForward = std::max(readers.lastOfForward, life.from);
    allocation.firstBackward = readers.firstInBackward;
    allocation.isFloat32 = document_.meta(life.value).dtype == DType::f32;
    if (readers.firstOfBackward) {
      allocation.reader = shortOpName(document_.opName(readers.firstOfBackward));
      allocation.readerModule = moduleOf(readers.firstOfBackward);
    }
    if (readers.count == 1) allocation.storedAs = narrowerCast(life.value, readers.only);
    allocation.copyOf = copied(life);
  }

  /// The dtype that an op turns all of a value into, where that takes fewer bytes.
  std::string narrowerCast(ValueId value, BoundSymbolId op) const {
    const auto outputs = document_.outputs(op);
    if (outputs.size() != 1 || !document_.isTensor(outputs[0])) return {};
    if (const auto name = document_.opName(op); name.find("aten._to_copy") == std::string::npos) return {};
    const auto from = document_.meta(value).dtype, to = document_.meta(outputs[0]).dtype;
    return itemSize(to) < itemSize(from) ? std::string(torchName(to)) : std::string();
  }

  /// The value that an op copies element by element, without a change of dtype.
  std::string copied(const StorageLife& life) const {
    const auto op = analysis_.joint.ops[life.from];
    const auto name = document_.opName(op);
    if (name.find("aten.clone") == std::string::npos && name.find("aten._to_copy") == std::string::npos) return {};
    for (const auto operand : document_.operands(op)) {
      if (!document_.isTensor(operand) || !storageOf(operand)) continue;
      if (document_.meta(operand).dtype != document_.meta(life.value).dtype) return {};
      const auto first = document_.storage(storageOf(operand)).first;
      return document_.displayName(first ? first : operand);
    }
    return {};
  }

  void addParameters() {
    std::set<std::int32_t> seen;
    for (const auto& input : analysis_.computation().inputs) {
      if (input.kind != InputKind::parameter && input.kind != InputKind::buffer) continue;
      const auto storage = storageOf(input.value);
      if (!storage || !seen.insert(storage.index).second) continue;
      step_.parameters.push_back({input.target, static_cast<std::uint64_t>(document_.storage(storage).bytes)});
    }
  }

  const Analysis& analysis_;
  const Document& document_;
  TracedStep step_;
  IdVector<StorageId, Readers> readers_;
  IdVector<StorageId, std::int32_t> made_;  // in step_.allocations, -1
  std::map<StorageId, std::string> gradientNames_;
  std::set<std::string> saved_;
};

}  // namespace

TracedStep tracedStep(const Analysis& analysis) { return TracedStepBuilder(analysis).run(); }

void showMakersIn(TracedStep& step, const Analysis& traced, const Analysis& shown) {
  const auto pairs = alignOps(traced, shown);
  using Origin = std::pair<BoundSymbolId, bool>;  // the op of the computation, and whether in the backward
  const auto originOf = [&](std::size_t position) {
    return Origin{OriginLinks::origin(*traced.document, traced.joint.ops[position]), position >= step.forwardCount};
  };
  std::map<Origin, std::vector<std::size_t>> paired;  // positions, in order
  for (std::size_t position = 0; position < pairs.size(); ++position)
    if (pairs[position]) paired[originOf(position)].push_back(position);
  for (auto& allocation : step.allocations) {
    allocation.maker = {};
    if (allocation.position >= pairs.size()) continue;
    if (const auto same = pairs[allocation.position]) {
      allocation.maker = shown.joint.ops[*same];
      continue;
    }
    const auto origin = originOf(allocation.position);
    const auto others = paired.find(origin);
    if (!origin.first || others == paired.end()) continue;
    const auto behind = std::ranges::upper_bound(others->second, allocation.position);
    allocation.maker = shown.joint.ops[*pairs[behind == others->second.begin() ? *behind : *std::prev(behind)]];
  }
}

}  // namespace retrograd
