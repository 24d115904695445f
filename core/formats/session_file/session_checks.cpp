// What must hold in a session file beyond ids in range.
#include <algorithm>

#include "core/base/error.h"
#include "core/base/id_vector.h"
#include "core/formats/session_file/session_codec.h"
#include "core/trace/effects.h"
#include "core/trace/verifier.h"

namespace retrograd::session {
namespace {

constexpr int deepest = 64;  // bodies in bodies; export itself nests a handful
constexpr std::uint8_t toBeSaid = effect::writes | effect::random | effect::opaque;

class DocumentChecker {
 public:
  explicit DocumentChecker(const Document& document)
      : document_(document), holder_(document.subgraphCount()), owner_(document.boundSymbolCount()) {}

  void run() {
    for (auto op : document_.boundSymbolIds())
      forEachBody(document_, op, [&](SubgraphId body) { own(holder_[body], op, "two ops have the same body"); });
    for (auto body : document_.subgraphIds())
      for (auto op : document_.subgraph(body).ops) own(owner_[op], body, "an op is in two bodies");
    for (auto op : document_.boundSymbolIds()) {
      try {
        checkNesting(op);
        checkCall(op);
      } catch (const Error& e) {
        throw e.at("op #" + std::to_string(op.index) + " (" + document_.opName(op) + ")");
      }
    }
  }

  bool standsInBody(BoundSymbolId op) const { return owner_[op].valid(); }

 private:
  template <class IdType>
  static void own(IdType& slot, IdType by, const char* trouble) {
    if (slot) badInput(trouble);
    slot = by;
  }

  /// Bodies and parents are followed recursively elsewhere.
  void checkNesting(BoundSymbolId op) const {
    int depth = 0;
    for (auto body = owner_[op]; body; body = holder_[body] ? owner_[holder_[body]] : SubgraphId())
      if (++depth > deepest) badInput("bodies hold each other in a circle, or too many deep");
    depth = 0;
    for (auto parent = document_.boundSymbol(op).parent; parent; parent = document_.boundSymbol(parent).parent)
      if (++depth > deepest) badInput("parents form a circle, or too many levels");
  }

  void checkCall(BoundSymbolId op) const {
    const auto& bound = document_.boundSymbol(op);
    const auto& symbol = document_.symbol(bound.symbol);
    const auto& arguments = document_.pattern(bound.pattern).arguments;
    const bool hasSchema = symbol.known && !symbol.schema.empty();
    if (hasSchema && arguments.size() != symbol.arguments.size())
      badInput("the call has " + std::to_string(arguments.size()) + " arguments, the schema " +
               std::to_string(symbol.arguments.size()));
    auto effects = effectsOf(symbol, arguments);
    forEachBody(document_, op, [&](SubgraphId body) {
      if (!symbol.isHigherOrder) badInput("a body in a call of an op that is not of higher order");
      for (auto inner : document_.subgraph(body).ops) effects |= document_.boundSymbol(inner).effects;
    });
    if (effects & toBeSaid & ~bound.effects) badInput("an effect of the op is not named");
    if (bound.replays &&
        (document_.boundSymbol(bound.replays).symbol != bound.symbol || !(bound.effects & effect::random)))
      badInput("replays something other than a draw of the same op");
  }

  const Document& document_;
  IdVector<SubgraphId, BoundSymbolId> holder_;  // the op whose argument it is
  IdVector<BoundSymbolId, SubgraphId> owner_;   // the body it is in
};

class TraceChecker {
 public:
  explicit TraceChecker(const SessionFile& session)
      : session_(session), document_(*session.model.document), computation_(session.model.computation) {}

  void run() {
    checkComputation();
    if (session_.differentiated) checkDifferentiated(*session_.differentiated);
    if (session_.derived()) {
      checkJoint();
      checkSplit();
      checkTensors();
    }
    for (const auto& [id, tensor] : session_.values) checkTensor(tensor, id, "value " + document_.displayName(id));
  }

 private:
  void checkTrace(const Trace& trace, TraceKind kind) {
    if (trace.kind != kind) badInput("is of kind " + std::string(name(trace.kind)), std::string(name(kind)));
    IdVector<BoundSymbolId, char> listed(document_.boundSymbolCount(), 0);
    for (auto op : trace.ops) {
      if (!op || listed[op]) badInput("lists an op twice, or none", std::string(name(kind)));
      listed[op] = 1;
    }
    for (auto body : document_.subgraphIds())
      for (auto op : document_.subgraph(body).ops)
        if (listed[op]) badInput("lists an op of a body", std::string(name(kind)));
    if (const auto problems = verify(document_, trace); !problems.empty())
      badInput(problems.front().message,
               std::string(name(kind)) + (problems.front().place.empty() ? "" : ": " + problems.front().place));
  }

  void checkComputation() {
    const auto& trace = computation_.trace;
    checkTrace(trace, TraceKind::computation);
    if (computation_.inputs.size() != trace.inputs.size() || computation_.outputs.size() != trace.outputs.size())
      badInput("inputs and outputs are not those of the trace", "computation");
    for (std::size_t i = 0; i < trace.inputs.size(); ++i)
      if (computation_.inputs[i].value != trace.inputs[i])
        badInput("input " + std::to_string(i) + " is not that of the trace", "computation");
    for (std::size_t i = 0; i < trace.outputs.size(); ++i)
      if (computation_.outputs[i].value != trace.outputs[i])
        badInput("output " + std::to_string(i) + " is not that of the trace", "computation");
    const auto& problems = session_.model.problems;
    const bool isRefused = std::any_of(problems.begin(), problems.end(),
                                       [](const Problem& p) { return p.severity == Problem::Severity::error; });
    if (isRefused && session_.derived()) badInput("traces derived from a computation that cannot be");
  }

  void checkDifferentiated(const SessionFile& from) const {
    const auto& ops = computation_.trace.ops;
    if (!from.derived() || (ops != from.joint.ops && ops != from.backward.ops))
      badInput("its ops are not those of the trace that was differentiated", "computation");
  }

  void checkJoint() {
    const auto& joint = session_.joint;
    checkTrace(joint, TraceKind::joint);
    for (auto op : joint.ops) {
      const auto& symbol = document_.symbol(op);
      if (symbol.known && symbol.schema.empty()) badInput("holds " + symbol.name + ", which cannot be run", "joint");
    }
    const auto inputs = computation_.inputs.size(), outputs = computation_.outputs.size();
    const auto& own = computation_.trace.inputs;
    if (joint.inputs.size() != inputs + outputs || !std::equal(own.begin(), own.end(), joint.inputs.begin()))
      badInput("its inputs are not those of the computation and a cotangent for each output", "joint");
    if (joint.resultCount != outputs || joint.outputs.size() != outputs + inputs)
      badInput("its outputs are not those of the computation and a gradient for each input", "joint");
  }

  void checkSplit() {
    const auto &joint = session_.joint, &forward = session_.forward, &backward = session_.backward;
    checkTrace(forward, TraceKind::forward);
    checkTrace(backward, TraceKind::backward);
    auto ops = forward.ops;
    ops.insert(ops.end(), backward.ops.begin(), backward.ops.end());
    if (ops != joint.ops || forward.ops.size() != joint.forwardCount)
      badInput("forward and backward are not the two halves of the joint trace");
    const auto results = joint.outputs.begin() + joint.resultCount;
    const std::vector<ValueId> returned(joint.outputs.begin(), results), gradients(results, joint.outputs.end());
    const auto saved = backward.savedCount;
    const bool sameResults = forward.resultCount == returned.size() &&
                             forward.outputs.size() == returned.size() + saved &&
                             std::equal(returned.begin(), returned.end(), forward.outputs.begin());
    const bool sameSaved = sameResults && std::equal(forward.outputs.begin() + returned.size(), forward.outputs.end(),
                                                     backward.inputs.begin());
    if (!sameSaved || backward.outputs != gradients)
      badInput("what forward and backward take and return is not what the joint trace does");
  }

  void checkTensor(const TensorData& tensor, ValueId value, const std::string& what) const {
    if (!value) badInput("names no value", what);
    const auto meta = document_.value(value).meta;
    if (!meta) badInput("the value is not a tensor", what);
    const auto& expected = document_.meta(meta);
    if (tensor.meta.dtype != expected.dtype || tensor.meta.sizes != expected.sizes)
      badInput("is " + typeComment(tensor.meta) + ", the trace wants " + typeComment(expected), what);
  }

  void checkTensors() {
    const auto inputs = computation_.inputs.size();
    for (std::size_t i = 0; i < inputs; ++i) {
      const auto& input = computation_.inputs[i];
      const auto value = computation_.trace.inputs[i];
      if (input.kind != InputKind::user || !value || !document_.isTensor(value)) continue;
      const auto it = session_.inputs.find(input.name);
      if (it == session_.inputs.end()) badInput("is missing", "input " + input.name);
      checkTensor(it->second, value, "input " + input.name);
    }
    for (std::size_t i = 0; i < computation_.outputs.size(); ++i) {
      const auto value = session_.joint.inputs[inputs + i];
      if (!value) continue;
      const auto position = userOutputPosition(computation_, i);
      const auto it = session_.cotangents.find(position);
      if (it == session_.cotangents.end()) badInput("is missing", "cotangent of output " + position);
      checkTensor(it->second, value, "cotangent of output " + position);
    }
    for (const auto& [id, tensor] : session_.constants) {
      checkTensor(tensor, id, "constant " + document_.displayName(id));
      if (document_.value(id).kind != ValueKind::constant) badInput("is not a constant", document_.displayName(id));
    }
    for (const auto& [input, value] : session_.mutated)
      if (input >= inputs || !value) badInput("a mutated input that is none");
    checkConstantsAreThere();
  }

  void checkConstantsAreThere() const {
    IdVector<ValueId, char> isInput(document_.valueCount(), 0);
    for (auto input : session_.joint.inputs)
      if (input) isInput[input] = 1;
    for (auto op : session_.joint.ops)
      for (auto operand : document_.operands(op)) {
        if (!operand || isInput[operand]) continue;
        const auto& value = document_.value(operand);
        if (value.kind == ValueKind::constant && !value.producer && !session_.constants.contains(operand))
          badInput("is missing", "constant " + document_.displayName(operand));
      }
  }

  const SessionFile& session_;
  const Document& document_;
  const Computation& computation_;
};

}  // namespace

void checkDocument(const Document& document) { DocumentChecker(document).run(); }

void checkTraces(const SessionFile& session) { TraceChecker(session).run(); }

void checkWeights(const ModelFile& model) {
  const auto& document = *model.document;
  for (std::size_t i = 0; i < model.computation.inputs.size(); ++i) {
    const auto& input = model.computation.inputs[i];
    const auto value = model.computation.trace.inputs[i];
    const bool isWeight =
        input.kind == InputKind::parameter || input.kind == InputKind::buffer || input.kind == InputKind::constant;
    if (!isWeight || !value) continue;
    auto it = model.weights.find(input.target);
    const bool found = it != model.weights.end() || (it = model.constants.find(input.target)) != model.constants.end();
    if (!found) badInput("there is no data for it", "'" + input.target + "'");
    if (!document.isTensor(value)) badInput("is not a tensor in the trace", "'" + input.target + "'");
    const auto& expected = document.meta(value);
    if (it->second.meta.dtype != expected.dtype || it->second.meta.sizes != expected.sizes)
      badInput("is " + typeComment(expected) + " in the trace but " + typeComment(it->second.meta) + " as stored",
               "'" + input.target + "'");
  }
}

}  // namespace retrograd::session
