#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/trace/document.h"

namespace retrograd {

enum class TraceKind : std::uint8_t { computation, joint, forward, backward };
std::string_view name(TraceKind);

/// What made a trace, as data: never parsed out of a text.
struct PassRecord {
  std::string pass;  ///< "Read", "Grad transform", "Split", "Dead code elimination"
  std::vector<std::pair<std::string, std::string>> parameters;
  std::string parent;  ///< name of the trace it was made from
  double seconds = 0;
  /// bound symbols of the parent that became other ones here (kept ones are not listed)
  std::vector<std::pair<BoundSymbolId, BoundSymbolId>> replaced;
};

/// A list of bound symbols of one Document with its inputs and outputs. Never changes once made: a pass returns a new
/// one. An invalid ValueId among inputs or outputs represents None.
struct Trace {
  TraceKind kind = TraceKind::computation;
  std::string name;
  std::vector<BoundSymbolId> ops;  ///< flat, in order of execution; the computation lists top-level ops only
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  /// forward: outputs[resultCount..] are saved for backward; backward: inputs[0..savedCount) are, cotangents follow.
  std::size_t resultCount = 0;
  std::size_t savedCount = 0;
  /// joint: ops[0..forwardCount) run in the forward.
  std::size_t forwardCount = 0;
  std::vector<PassRecord> history;  ///< oldest first, the parents' records included
};

/// The size symbols that sizes or literals of the trace mention, in the document's order.
std::vector<const SizeSymbol*> sizeSymbolsOf(const Document& document, const Trace& trace);
/// The same for one op: its operands, literals and outputs.
std::vector<const SizeSymbol*> sizeSymbolsOf(const Document& document, BoundSymbolId op);

/// What an input of the computation is.
enum class InputKind : std::uint8_t { user, parameter, buffer, constant, token, object };
struct InputSpec {
  InputKind kind = InputKind::user;
  std::string name;                  ///< argument name in the graph
  std::string target;                ///< fully qualified name of the parameter, buffer or constant
  std::vector<std::string> aliases;  ///< other names of a tied parameter
  bool persistent = true;
  bool requiresGrad = false;  ///< of the weights config; user inputs: floating or complex
  ValueId value;
  std::string storageKey;  ///< record in the archive; equal keys are one storage (tied weights)
};

enum class OutputKind : std::uint8_t { user, loss, bufferMutation, inputMutation, parameterMutation, token, gradient };
struct OutputSpec {
  OutputKind kind = OutputKind::user;
  ValueId value;       ///< none when the output is a literal
  Argument literal;    ///< None, an int, ... where value is none
  std::string target;  ///< buffer or input that is mutated; of a user output in a tuple or dict its path ("0",
                       ///< "logits.1"), where known
};

/// The trace as in the file, with what its inputs and outputs mean.
struct Computation {
  Trace trace;
  std::vector<InputSpec> inputs;    ///< parallel to trace.inputs
  std::vector<OutputSpec> outputs;  ///< parallel to trace.outputs
};

/// Position among the user outputs as text, for output i of the computation; empty for other outputs.
std::string userOutputPosition(const Computation& computation, std::size_t i);

/// A trace as one pass left it.
struct PassResult {
  std::string pass;  ///< as in the trace's history: "Dead code elimination"
  Trace trace;
};

}  // namespace retrograd
