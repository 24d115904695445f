#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>

#include "core/base/id_vector.h"
#include "core/trace/document.h"
#include "core/trace/tensor_data.h"

namespace retrograd {

struct StepRecording;

/// An opaque op is one that is not known here: a custom op, a Triton kernel, a collective. Its results have the types
/// that the file declares. It is printed, linked and counted as any op, but never run, and no gradient passes through
/// it.
bool isOpaque(const Symbol& symbol);
bool isOpaque(const Document& document, BoundSymbolId op);

/// Whether an opaque op may write to its tensor operands: it returns no tensor, or its name says so ("copy_",
/// "kernel_wrapper_mutation").
bool mayWriteUnseen(const Document& document, BoundSymbolId op);

/// What of a trace cannot be computed because opaque ops do not run.
struct LeftOut {
  IdVector<BoundSymbolId, char> ops;  ///< those that do not run: opaque ones and whatever reads what is not there
  IdVector<ValueId, BoundSymbolId> because;  ///< by value that is not there: the opaque op it depends on
  std::map<ValueId, TensorData> filled;      ///< results of opaque ops that a person gave
  std::shared_ptr<const StepRecording>
      recording;  ///< of a recorded step (formats/recording): ops run as they did then; null for all else

  bool isLeftOut(BoundSymbolId op) const { return ops.contains(op) && ops[op]; }
  /// None for a value that is computed.
  BoundSymbolId reason(ValueId value) const {
    return value && because.contains(value) ? because[value] : BoundSymbolId();
  }
};

/// Adds `op`, which runs next, to what is known of the ops before it.
class LeftOutWalk {
 public:
  LeftOutWalk(const Document& document, LeftOut& left) : document_(document), left_(left) {}
  void visit(BoundSymbolId op);

 private:
  BoundSymbolId reasonOf(ValueId value) const;
  void spoil(ValueId value, BoundSymbolId reason);
  void grow();

  const Document& document_;
  LeftOut& left_;
  IdVector<StorageId, BoundSymbolId> unknownMemory_;
};

/// `ops`: in the order in which they run. `filled`: results of opaque ops that are there. A write that is left out
/// makes all that shares its memory unknown from there on. Linear.
LeftOut leftOutOf(const Document& document, std::span<const BoundSymbolId> ops,
                  std::map<ValueId, TensorData> filled = {});

/// Opaque ops among `ops` with how often each is called: "myops.swish.default (2 times)".
std::string opaqueOpsText(const Document& document, std::span<const BoundSymbolId> ops);

}  // namespace retrograd
