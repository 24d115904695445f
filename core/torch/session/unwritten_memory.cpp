#include "core/torch/session/unwritten_memory.h"

#include <algorithm>
#include <span>

#include "core/trace/effects.h"
#include "core/trace/op_traits.h"

namespace retrograd {
namespace {

bool isIn(const std::vector<ValueId>& values, ValueId value) {
  return std::ranges::find(values, value) != values.end();
}

/// Operands that the op writes and does not read: `out` arguments, and all that copy_ and its like write.
std::vector<ValueId> overwrittenOperands(const Document& document, BoundSymbolId op) {
  const auto& symbol = document.symbol(op);
  if (hasTrait(symbol.name, OpTrait::fillsWhole)) return writtenOperands(document, op);
  std::vector<ValueId> found;
  const auto operands = document.operands(op);
  const auto& arguments = document.pattern(document.boundSymbol(op).pattern).arguments;
  for (std::size_t i = 0; i < arguments.size() && i < symbol.arguments.size(); ++i)
    if (symbol.arguments[i].isWrite && symbol.arguments[i].keywordOnly)
      forEachOperand(arguments[i], [&](std::size_t hole) { found.push_back(operands[hole]); });
  return found;
}

/// A sparse tensor has a storage of its own, which counts as one byte.
ByteRanges bytesOf(const TensorMeta& meta) {
  return meta.layout == Layout::strided ? ByteRanges::of(meta) : ByteRanges(0, 1);
}

}  // namespace

UnwrittenMemory::UnwrittenMemory(const Document& document, const StepRecording& recording)
    : document_(document), recording_(recording), unwritten_(document.storageCount()), bytes_(document.storageCount()) {
  for (const auto storage : bytes_.ids()) bytes_[storage] = document.storage(storage).bytes;
}

bool UnwrittenMemory::isReadBy(BoundSymbolId op) const {
  if (hasTrait(document_.symbol(op).name, OpTrait::readsShape)) return false;
  const auto overwritten = overwrittenOperands(document_, op);
  for (const auto operand : document_.operands(op)) {
    const auto storage = operand ? document_.value(operand).storage : StorageId();
    if (storage && !unwritten_[storage].empty() && !isIn(overwritten, operand) &&
        unwritten_[storage].overlaps(bytesOf(document_.meta(operand))))
      return true;
  }
  return false;
}

void UnwrittenMemory::leave(BoundSymbolId op) {
  const auto operands = document_.operands(op);
  for (const auto output : document_.outputs(op)) {
    const auto storage = output ? document_.value(output).storage : StorageId();
    if (!storage) continue;
    const bool isOperands = std::ranges::any_of(
        operands, [&](ValueId operand) { return operand && document_.value(operand).storage == storage; });
    if (isOperands) grow(output);
    else unwritten_[storage].add({0, bytes_[storage]});
  }
}

void UnwrittenMemory::putRecorded(BoundSymbolId op) {
  leave(op);
  const auto& recorded = recording_.op(op);
  for (const auto& put : std::span(recording_.puts).subspan(recorded.putsBegin, recorded.putCount)) {
    const auto data = recording_.data.find(put.data);
    const auto storage = document_.value(put.value).storage;
    if (data == recording_.data.end() || !storage) continue;
    if (put.storage) unwritten_[storage].remove({0, static_cast<std::int64_t>(data->second.bytes)});
    else setWritten(put.value, true);
  }
}

void UnwrittenMemory::grow(ValueId value) {
  const auto storage = value ? document_.value(value).storage : StorageId();
  if (!storage || document_.meta(value).layout != Layout::strided) return;
  const auto bytes = document_.meta(value).storageBytes();
  if (bytes <= bytes_[storage]) return;
  unwritten_[storage].add({bytes_[storage], bytes});
  bytes_[storage] = bytes;
}

void UnwrittenMemory::setWritten(ValueId value, bool isWritten) {
  const auto storage = value ? document_.value(value).storage : StorageId();
  if (!storage || (isWritten && unwritten_[storage].empty())) return;
  const auto bytes = bytesOf(document_.meta(value));
  if (isWritten) unwritten_[storage].remove(bytes);
  else unwritten_[storage].add(bytes);
}

}  // namespace retrograd
