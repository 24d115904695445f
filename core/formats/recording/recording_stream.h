#pragma once
// The records of a stream, one after another, to ops and values of a document.
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/error.h"
#include "core/base/id_vector.h"
#include "core/formats/json/json_tree.h"
#include "core/formats/recording/recording.h"
#include "core/trace/symbol.h"

namespace retrograd::recording {

/// Memory as the recording names it.
struct StorageRow {
  StorageId id;
  std::int64_t bytes = 0;
  std::string device, data;  ///< `data`: the name of its bytes from before; empty: an op makes it
  std::string role, name, state;
  std::vector<std::string> also;  ///< other parameters whose gradient it is
  bool made = false;              ///< an op of the recording did
  ValueId base;                   ///< the first value on it, of which others are views
  ValueId latest;                 ///< the one that was made last
};

/// A view of memory as the recording names it.
struct TensorRow {
  std::int64_t storage = -1;
  TensorMeta meta;
  ValueId current;                                         ///< the value that it means now; none: nothing made it yet
  std::map<std::string, std::int64_t, std::less<>> parts;  ///< of a sparse tensor
  bool coalesced = false;
};

/// The entry of this number. Throws Error(badInput) where there is none.
template <class Table>
auto& entryOf(Table& table, std::int64_t number, const char* what) {
  if (number < 0 || static_cast<std::size_t>(number) >= table.size())
    badInput("there is no " + std::string(what) + " " + std::to_string(number));
  return table[number];
}

class StreamReader {
 public:
  StreamReader(StepRecording& recording, Document& document, const SymbolLookup& lookup)
      : recording_(recording), document_(document), lookup_(lookup) {}
  /// Throws Error(badInput) where the record contradicts those before it.
  void read(const Json& record);
  bool ended() const { return ended_; }
  /// What flows in and what comes out, once all was read.
  Computation computation(ModelFile& file);

 private:
  struct Op {
    SymbolId symbol;
    std::vector<SchemaType> arguments, returns;
  };
  struct Call {
    CallPattern pattern;
    std::vector<ValueId> operands, outputs;
    std::vector<std::int64_t> tensors;  ///< of the outputs that are tensors, in order: their numbers
    std::vector<ValueId> values;        ///< the same, as values
  };

  // recording_stream.cpp
  void readStorage(const Json& record);
  void readTensor(const Json& record);
  void readName(const Json& record);
  void readShard(const Json& record);
  void readFrame(const Json& record);
  void readStack(const Json& record);
  void readMode(const Json& record);
  void readHashes(const Json& record);
  void readBackward(const Json& record);
  void findLoss(BoundSymbolId op);
  StorageRow& storage(std::int64_t number);
  TensorRow& tensor(std::int64_t number);

  // recording_ops.cpp
  void readOp(const Json& record);
  void readPut(std::int64_t storage, const std::string& data, const Json& record, const char* name);
  const Op& opOf(std::string_view name, bool runs);
  bool readArguments(const Json& record, const Op& op, Call& call);
  void readFreeArguments(const Json& record, Call& call);
  bool readOutputs(const Json& out, const Op& op, Call& call);
  void readFreeOutputs(const Json& out, Call& call);
  void output(const Json& value, Call& call);
  void noteWrites(const Op& op, const Call& call);
  void readChecks(const Json& record, const Call& call);
  void readPuts(const Json& record, const Call& call);
  void describe(const Json& record, BoundSymbol& bound, StepOp& recorded);
  void takePlace(const StepOp& recorded, BoundSymbol& bound, BoundSymbolId self) const;
  Origin originOf(const Json& record, BoundSymbolId self, StepOp& recorded);
  BoundSymbolId opNumbered(std::int64_t number) const;

  // recording_memory.cpp
  ValueId use(std::int64_t number);
  bool isMadeAside(BoundSymbolId op) const;
  ValueId define(std::int64_t number);
  ValueId makeValue(const TensorMeta& meta, StorageId storage);
  ValueId addInput(TensorRow& row, StorageRow& memory);
  ValueId addView(const TensorRow& row, StorageRow& memory);
  ValueId addSparse(const TensorRow& row);
  ValueId callOf(std::string_view name, std::vector<Argument> arguments, std::vector<ValueId> operands,
                 const TensorMeta& meta, StorageId storage);
  BoundSymbolId append(BoundSymbol bound, const StepOp& recorded, const std::vector<ValueId>& operands,
                       const std::vector<ValueId>& outputs);
  std::int32_t& writesTo(StorageId storage);

  StepRecording& recording_;
  Document& document_;
  const SymbolLookup& lookup_;
  std::vector<StorageRow> storages_;
  std::vector<TensorRow> tensors_;
  std::vector<SourceFrame> frames_;
  std::vector<SourceStackId> stacks_;
  std::vector<StringId> modules_;
  std::vector<BoundSymbolId> numbered_;  ///< by the op's number in the recording
  std::unordered_map<std::string, Op> ops_;
  std::vector<ValueId> inputs_;
  std::vector<std::int64_t> inputStorages_;
  IdVector<StorageId, std::int32_t> writes_;
  SourceStackId here_;
  bool gradMode_ = true, begun_ = false, ended_ = false;
  bool backwardBegan_ = false, awaitsLoss_ = false;
  std::vector<StorageId> written_;  ///< by the op that is read
  bool isAside_ = false;            ///< the op is a backward's, and has no node of its own
  StepOp current_;                  ///< phase, step and backward of the ops that follow
};

}  // namespace retrograd::recording
