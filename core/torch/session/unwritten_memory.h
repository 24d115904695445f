#pragma once
#include "core/base/id_vector.h"
#include "core/base/overlap.h"
#include "core/formats/recording/recording.h"

namespace retrograd {

/// The bytes that no op of a recorded step has written yet, as the step runs again: they hold whatever was there
/// before, so a result that reads them need not be the recorded one.
class UnwrittenMemory {
 public:
  UnwrittenMemory(const Document& document, const StepRecording& recording);

  /// Whether an element that the op reads is unwritten. What it only overwrites does not count.
  bool isReadBy(BoundSymbolId op) const;
  /// The op made memory and wrote nothing to it; what it took on as it was stays as it was.
  void leave(BoundSymbolId op);
  /// The recorded bytes were put instead of what the op does.
  void putRecorded(BoundSymbolId op);
  /// Its memory may reach further than when it was last seen: what is new is unwritten.
  void grow(ValueId value);
  void setWritten(ValueId value, bool isWritten);

 private:
  const Document& document_;
  const StepRecording& recording_;
  IdVector<StorageId, ByteRanges> unwritten_;
  IdVector<StorageId, std::int64_t> bytes_;  ///< of the memory, as far as it was seen
};

}  // namespace retrograd
