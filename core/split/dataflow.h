#pragma once
#include <cstdint>
#include <vector>

#include "core/base/id_vector.h"
#include "core/trace/trace.h"

namespace retrograd {

/// By bound symbol: 1 for those that are meant, as the forward ops to recompute.
using OpMarks = IdVector<BoundSymbolId, char>;

/// Who makes, writes and reads what in the forward half of a joint trace. Ops are named by their position in joint.ops;
/// linear in the trace's size.
class Dataflow {
 public:
  /// A storage that some op of the joint writes to, with the forward ops that have to do with it, in order.
  struct WrittenStorage {
    StorageId storage;
    std::vector<std::int32_t>
        makers;  ///< ops with an output in it, up to the last write: without them its content is not had again
    std::vector<std::int32_t> writers;
    std::vector<std::int32_t> readers;  ///< ops with an operand in it that do not write it
    bool external = false;              ///< input, parameter, buffer: what is written stays
    bool writtenByBackward = false;
  };

  Dataflow(const Document& document, const Trace& joint);

  /// The forward op that makes the value, -1 for what no forward op makes (inputs, constants, gradients).
  std::int32_t producer(ValueId value) const { return value ? producer_[value] : -1; }
  /// The storage's writes, null where nothing writes to it.
  const WrittenStorage* writes(StorageId storage) const;
  const std::vector<WrittenStorage>& written() const { return written_; }
  /// All outputs of the op at this position lie in an operand's storage and nothing is written: it costs and reads
  /// nothing.
  bool isView(std::int32_t position) const { return isView_[position]; }
  /// It writes to something that no operand represents.
  bool writesUnnamed(std::int32_t position) const { return writesUnnamed_[position]; }

 private:
  void findWrites();
  void findMakersAndReaders();
  WrittenStorage& written(StorageId storage);

  const Document& document_;
  const Trace& joint_;
  IdVector<ValueId, std::int32_t> producer_;        // position, -1
  IdVector<StorageId, std::int32_t> writtenIndex_;  // into written_, -1
  std::vector<WrittenStorage> written_;
  std::vector<char> isView_, writesUnnamed_;  // by position in the forward
};

}  // namespace retrograd
