#pragma once
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/id_vector.h"
#include "core/torch/grad/alias_families.h"
#include "core/torch/grad/transform.h"

namespace retrograd {

/// For where the document grows while they are looked at.
inline std::vector<ValueId> copied(std::span<const ValueId> values) { return {values.begin(), values.end()}; }

/// A list literal of an op that the transform itself calls.
inline Argument integers(const std::vector<std::int64_t>& values) {
  Argument list = Argument::ofList({});
  for (auto value : values) list.items.push_back(Argument::ofInt(value));
  return list;
}

/// Sizes, strides and offset, as as_strided takes them.
inline std::vector<Argument> stridedArguments(const TensorMeta& meta) {
  return {integers(meta.sizes), integers(meta.strides), Argument::ofInt(meta.offset)};
}

/// Writes the joint: its ops in order, their values, and the memory in which these lie.
class JointWriter {
 public:
  /// `region` is read at each op. Literal tensors of formulas are added to `constants`, and to `realValues`, which may
  /// be null.
  JointWriter(Document& document, const RegionState& region, std::map<ValueId, TensorData>& constants,
              RealValues* realValues)
      : document_(document),
        region_(region),
        constants_(constants),
        realValues_(realValues),
        taken_(document.valueCount()) {}
  /// From now on `aliases` hear of each op.
  void tell(AliasFamilies& aliases) { aliases_ = &aliases; }

  const std::vector<BoundSymbolId>& ops() const { return ops_; }
  std::vector<BoundSymbolId> takeOps() { return std::move(ops_); }
  /// The values that the locals of all rules applied so far are.
  std::vector<ValueId>& locals() { return locals_; }
  const std::vector<ValueId>& locals() const { return locals_; }

  SymbolId internOp(const std::string& name);
  static Origin forwardOrigin(BoundSymbolId op);

  /// Appends the rule's locals, its operands bound to `tensors` and values made for the others; returns where they
  /// begin. `preferred`: computation values to stand for the flat outputs, so that ids stay the same from trace to
  /// trace.
  std::size_t addLocals(const Rule& rule, std::span<const ValueId> tensors, ValueKind kind,
                        std::span<const ValueId> preferred = {});
  void addConstants(const RuleConstants& constants, std::size_t localsBegin);
  /// A value for the local. `storages`: those of the rule's storage numbers so far.
  ValueId makeValue(const RuleLocal& local, std::vector<StorageId>& storages, ValueKind kind, ValueId preferred = {});
  BoundSymbolId emit(const RuleOp& op, std::size_t localsBegin, const Origin& origin);
  BoundSymbolId emit(SymbolId symbol, PatternId pattern, std::uint8_t effects, std::span<const ValueId> operands,
                     std::span<const ValueId> outputs, const Origin& origin);

  /// The computation value is in the joint as it is.
  void take(ValueId value) { taken_[value] = 1; }
  /// Values of the computation that are not in the joint lie where they lay: in the memory of those they shared it with
  /// in the file.
  void moveStorages();

 private:
  StorageId storageOf(const RuleLocal& local, std::vector<StorageId>& storages);

  Document& document_;
  const RegionState& region_;
  std::map<ValueId, TensorData>& constants_;
  RealValues* realValues_;
  AliasFamilies* aliases_ = nullptr;
  IdVector<ValueId, char> taken_;  // computation values that already are in the joint
  std::unordered_map<StorageId, StorageId>
      movedStorages_;  // the file's storages: where the values that were reused lie now
  std::vector<BoundSymbolId> ops_;
  std::vector<ValueId> locals_;
  std::vector<StorageId> storageScratch_;  // scratch: reused, as these run once per op
  std::vector<ValueId> wantedScratch_, operandScratch_, outputScratch_;
};

}  // namespace retrograd
