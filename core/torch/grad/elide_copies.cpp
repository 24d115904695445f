#include "core/torch/grad/elide_copies.h"

#include <utility>

#include "core/base/id_vector.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

class CopyElision {
 public:
  CopyElision(Document& document, const Trace& joint)
      : document_(document),
        joint_(joint),
        lastRead_(document.storageCount(), -1),
        lastReadOf_(document.valueCount(), -1) {
    for (auto id : lastRead_.ids()) movedTo_.push_back(id);
    for (std::size_t i = 0; i < joint.ops.size(); ++i)
      for (auto operand : document.operands(joint.ops[i])) read(operand, static_cast<std::int64_t>(i));
    for (auto output : joint.outputs) read(output, std::ssize(joint.ops));
  }

  std::size_t removedFromForward() const { return removedFromForward_; }

  std::vector<BoundSymbolId> run(std::vector<std::pair<BoundSymbolId, BoundSymbolId>>& replaced) {
    std::vector<BoundSymbolId> ops;
    for (std::size_t i = 0; i < joint_.ops.size(); ++i) {
      if (i + 1 == joint_.ops.size() || !isNeedless(i)) {
        ops.push_back(joint_.ops[i]);
        continue;
      }
      const auto written = writeInPlace(joint_.ops[i], joint_.ops[i + 1]);
      replaced.emplace_back(joint_.ops[i], written);
      replaced.emplace_back(joint_.ops[i + 1], written);
      ops.push_back(written);
      if (i < joint_.forwardCount) ++removedFromForward_;
      ++i;
    }
    moveStorages();
    return ops;
  }

 private:
  void read(ValueId value, std::int64_t position) {
    if (value) lastReadOf_[value] = position;
    if (const auto storage = storageOf(value)) lastRead_[storage] = position;
  }

  StorageId storageOf(ValueId value) const {
    if (!value) return {};
    auto storage = document_.value(value).storage;
    while (storage && movedTo_[storage] != storage) storage = movedTo_[storage];
    return storage;
  }

  /// A clone that the next op of the same computation op writes to, of memory that nothing reads any more.
  bool isNeedless(std::size_t i) const {
    const auto clone = joint_.ops[i], writer = joint_.ops[i + 1];
    const auto& bound = document_.boundSymbol(clone);
    if (document_.symbol(bound.symbol).name != "aten.clone.default" ||
        bound.origin.op != document_.boundSymbol(writer).origin.op)
      return false;
    const auto source = document_.operands(clone)[0], copy = document_.outputs(clone)[0];
    const auto storage = storageOf(source);
    const auto written = writtenOperands(document_, writer);
    if (written.size() != 1 || written[0] != copy || !storage) return false;
    // Where the writer does not return what it writes (rrelu_with_noise's noise), later ops read the clone by its own
    // name.
    if (lastReadOf_[copy] > static_cast<std::int64_t>(i) + 1) return false;
    for (auto operand : document_.operands(writer))
      if (storageOf(operand) == storage) return false;
    const auto& memory = document_.storage(storage);
    const auto meta = document_.value(source).meta;
    return !memory.external && lastRead_[storage] == static_cast<std::int64_t>(i) &&
           meta == document_.value(copy).meta && document_.meta(meta).storageBytes() == memory.bytes;
  }

  /// `writer` once more, on the clone's source instead of the clone.
  BoundSymbolId writeInPlace(BoundSymbolId clone, BoundSymbolId writer) {
    const auto source = document_.operands(clone)[0], copy = document_.outputs(clone)[0];
    const auto from = storageOf(copy), to = storageOf(source);
    lastRead_[to] = lastRead_[from];
    movedTo_[from] = to;
    std::vector<ValueId> operands;
    for (auto operand : document_.operands(writer)) operands.push_back(operand == copy ? source : operand);
    const auto outputSpan = std::as_const(document_).outputs(writer);
    const std::vector<ValueId> outputs(outputSpan.begin(), outputSpan.end());
    const auto bound = document_.boundSymbol(writer);
    return document_.addBoundSymbol(bound, operands, outputs);
  }

  /// What the ops wrote, and every later view of it, lies in the source's memory.
  void moveStorages() {
    for (std::size_t v = 0; v < document_.valueCount(); ++v) {
      const ValueId id(static_cast<std::int64_t>(v));
      if (const auto storage = storageOf(id)) document_.value(id).storage = storage;
    }
  }

  Document& document_;
  const Trace& joint_;
  IdVector<StorageId, std::int64_t> lastRead_;  // position of the last op that reads it
  IdVector<ValueId, std::int64_t> lastReadOf_;  // the same
  std::size_t removedFromForward_ = 0;
  IdVector<StorageId, StorageId> movedTo_;  // where its content lies now
};

}  // namespace

Trace elideCopies(Document& document, const Trace& joint) {
  PassRecord record{.pass = "Copy elision", .parent = joint.name};
  Trace result = joint;
  CopyElision elision(document, joint);
  result.ops = elision.run(record.replaced);
  if (record.replaced.empty()) return joint;
  result.forwardCount -= elision.removedFromForward();
  record.parameters = {{"copies", std::to_string(record.replaced.size() / 2)}};
  result.history.push_back(std::move(record));
  return result;
}

}  // namespace retrograd
