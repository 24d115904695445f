#include "core/formats/listing/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"
#include "core/formats/fx/lower_prims.h"
#include "core/formats/listing/call_results.h"
#include "core/formats/listing/known_sizes.h"
#include "core/formats/model/document_builder.h"
#include "core/formats/model/schema_arguments.h"
#include "core/trace/python_text.h"
#include "core/trace/verifier.h"

namespace retrograd::jobs {
namespace {

using fx::Expression;
using Kind = Expression::Kind;

[[noreturn]] void fail(const fx::Node& node, const std::string& message) {
  badInput(message, fmt::format("{} (line {} of the graph)", node.name, node.line));
}

std::string valueName(const std::string& name) { return isPythonName(name) ? name : "v_" + name; }

Argument argumentOf(const Number& number) {
  if (number.kind == Number::Kind::boolean) return Argument::ofBool(number.truth());
  return number.isReal() ? Argument::ofReal(number.real) : Argument::ofInt(number.integer);
}

/// device(type='cuda', index=0), torch.device('cuda', 0)
Argument deviceOf(const Expression& call) {
  const auto* type = call.keyword("type");
  const auto* index = call.keyword("index");
  if (type == nullptr && call.items.size() > 1) type = &call.items[1];
  if (index == nullptr && call.items.size() > 2) index = &call.items[2];
  std::string text = type != nullptr && type->is(Kind::string) ? type->text : "cpu";
  if (index != nullptr && index->is(Kind::integer)) text += ":" + std::to_string(index->integer);
  return Argument::ofDevice(text);
}

bool isList(const SchemaEntry& result) { return result.type.starts_with("Tensor") && result.type.ends_with("[]"); }

class Reader {
 public:
  Reader(const fx::Graph& graph, const SymbolLookup& lookup, const ListingOptions& options)
      : graph_(graph), options_(options), builder_(lookup), sizes_(options.sizes, listing_.notes), items_(graph) {
    options_.backwardFrom = std::min(options_.backwardFrom, graph.nodes.size());
  }

  Listing read() {
    auto& trace = listing_.trace;
    trace.kind = options_.kind;
    trace.name = name(trace.kind);
    names_.resize(graph_.valueCount());
    numbers_.resize(graph_.valueCount());
    values_.resize(graph_.valueCount());
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) readInput(i);
    std::optional<std::size_t> border;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (trace.kind == TraceKind::joint && i == options_.backwardFrom) border = trace.ops.size();
      made_ = graph_.inputs.size() + i;
      readNode(made_, graph_.nodes[i]);
    }
    if (trace.kind == TraceKind::joint || trace.kind == TraceKind::forward)
      trace.forwardCount = border.value_or(trace.ops.size());
    readResults();
    check();
    listing_.problems = builder_.problems();
    listing_.assumedSizes = sizes_.hasAssumed();
    listing_.document = builder_.shared();
    return std::move(listing_);
  }

 private:
  /// A second item of the same number is the same value.
  void takeItem(std::size_t value, const fx::Node& node) {
    const auto base = node.call.items[0].valueIndex();
    const auto position = items_.position(value);
    if (!position) fail(node, "takes an item that there is not");
    alias(value, graph_.inputs.size() + items_.of(base)->at(*position));
  }

  void alias(std::size_t value, std::size_t same) {
    names_[value] = names_[same];
    values_[value] = values_[same];
  }

  // Inputs.

  const fx::Type* typeOf(std::size_t value) const {
    const auto index = graph_.valueType(value);
    return index == fx::noIndex ? nullptr : &graph_.types[index];
  }

  void readInput(std::size_t i) {
    const auto& input = graph_.inputs[i];
    names_[i] = valueName(input.name);
    const auto* type = typeOf(i);
    if (input.dropped || type == nullptr) return;
    if (type->kind == fx::Type::Kind::number) {
      numbers_[i] = sizes_.number(type->expression);
    } else if (type->kind == fx::Type::Kind::tensor) {
      addInput(i, input.name, *type, i, kindOf(input));
    } else {
      listing_.notes.push_back(
          fmt::format("the input {} is left out: it is not a tensor but {}", input.name, type->text));
    }
  }

  ValueKind kindOf(const fx::Input& input) {
    const bool isTangent = input.descriptor.kind() == "TangentAOTInput" || input.name.starts_with("tangents_");
    if (options_.kind != TraceKind::joint && options_.kind != TraceKind::backward) return ValueKind::input;
    if (options_.kind == TraceKind::backward && !isTangent && listing_.trace.savedCount++ < listing_.inputs.size())
      badInput("what is saved for the backward comes before all tangents",
               fmt::format("{} (line {} of the graph)", input.name, input.line));
    return isTangent                              ? ValueKind::cotangent
           : options_.kind == TraceKind::backward ? ValueKind::activation
                                                  : ValueKind::input;
  }

  void addInput(std::size_t value, const std::string& name, const fx::Type& type, std::size_t position,
                ValueKind kind) {
    defineInput(value, name, type, kind);
    listing_.trace.inputs.push_back(values_[value]);
    listing_.inputs.push_back(names_[value]);
    listing_.positions.push_back(position);
  }

  void defineInput(std::size_t value, const std::string& name, const fx::Type& type, ValueKind kind) {
    const auto given = options_.given.find(name);
    const bool isGiven = given != options_.given.end() && given->second.dtype != type.dtype;
    setValue(value, builder_.define(valueName(name)));
    builder_.setType(values_[value], isGiven ? given->second : sizes_.meta(type));
    GivenFacts facts;
    facts.kind = kind;
    builder_.describeInput(values_[value], facts);
  }

  void setValue(std::size_t value, ValueId id) {
    values_[value] = id;
    names_[value] = builder_.document().displayName(id);
  }

  // Nodes.

  void readNode(std::size_t value, const fx::Node& node) {
    names_[value] = valueName(node.name);
    const auto& call = node.call;
    const auto* type = typeOf(value);
    if (type != nullptr && type->kind == fx::Type::Kind::number) {
      numbers_[value] = sizes_.number(type->expression);
      return;
    }
    if (items_.isInTuple(value)) return checkMade(call.items[0], node);
    if (call.is(Kind::item) && call.items[0].is(Kind::value) && items_.of(call.items[0].valueIndex()) != nullptr) {
      checkMade(call.items[0], node);
      return takeItem(value, node);
    }
    if (call.is(Kind::value)) {
      checkMade(call, node);
      return alias(value, call.valueIndex());
    }
    if (const auto attribute = fx::ownAttribute(call)) return takeAttribute(value, *attribute, node);
    if (!isOpCall(call) && !options_.anyCall)
      fail(node, "is not a call of an op: graphs of ATen ops (joint, forward, backward) can be listed");
    moveToSource(node);
    try {
      addOp(value, node, targetOf(call));
    } catch (const Error& e) {
      if (!e.place().empty()) throw;
      fail(node, e.message());
    }
  }

  void checkMade(const Expression& use, const fx::Node& node) const {
    if (use.valueIndex() >= made_) fail(node, "reads a value before it is made");
  }

  /// Ops without a line of Python of their own belong to the line before.
  void moveToSource(const fx::Node& node) {
    if (node.source == lastSource_ || node.source == fx::noIndex) return;
    lastSource_ = node.source;
    const auto& source = graph_.sources[node.source];
    if (!source.file.empty())
      place_.source = builder_.document().internSource({{oneLine(source.file), source.line, {}, oneLine(source.code)}});
  }

  void takeAttribute(std::size_t value, const std::string& attribute, const fx::Node& node) {
    const auto* type = typeOf(value);
    if (type == nullptr || type->kind != fx::Type::Kind::tensor) {
      attributes_[value] = attribute;
      return;
    }
    if (options_.kind == TraceKind::backward) {  // its inputs are what is saved and cotangents alone
      defineInput(value, node.name, *type, ValueKind::constant);
    } else {
      addInput(value, node.name, *type, static_cast<std::size_t>(-1), ValueKind::input);
      listing_.constants.emplace(names_[value], attribute);
    }
    listing_.notes.push_back(fmt::format("{} is a constant of the compiled program (self.{}); a log has no data for it",
                                         node.name, attribute));
  }

  void addOp(std::size_t value, const fx::Node& node, const CallTarget& target) {
    const auto i = value - graph_.inputs.size();
    GraphCall call;
    call.symbol = builder_.symbol(target.op);
    call.place = place_;
    call.place.line = node.line;
    const bool isOpaque = symbolOf(call).schema.empty();
    std::vector<GivenArgument> arguments;
    for (const auto* operand : target.operands) {
      const bool isNamed = operand->is(Kind::keyword);
      const auto& given = isNamed ? operand->items[0] : *operand;
      arguments.push_back({isNamed ? std::string_view(operand->text) : std::string_view(),
                           isOpaque ? freeArgument(given, node, call) : argument(given, node, call)});
    }
    builder_.setArguments(call, std::move(arguments), [&](std::size_t position) {
      const auto& operand = *target.operands[position];
      return "'" + toText(operand.is(Kind::keyword) ? operand.items[0] : operand, names_) + "'";
    });
    if (const auto written = options_.writes.find(i); written != options_.writes.end())
      return writeOver(value, node, written->second, std::move(call));
    if (i < options_.unrecorded.size() && options_.unrecorded[i] != 0) call.place.gradMode = false;
    setResults(value, node, call);
    if (options_.kind != TraceKind::computation) call.origin = originOf(value, node, target.op, call);
    add(call, node);
  }

  const Symbol& symbolOf(const GraphCall& call) { return builder_.document().symbol(call.symbol); }

  void add(const GraphCall& call, const fx::Node& node) {
    const auto op = builder_.add(call);
    listing_.trace.ops.push_back(op);
    nodes_.emplace(op.index, &node);
  }

  GivenOrigin originOf(std::size_t value, const fx::Node& node, const std::string& op, const GraphCall& call) {
    const auto isThere = [](ValueId result) { return result.valid(); };
    const auto first = std::find_if(call.results.begin(), call.results.end(), isThere);
    const auto& document = builder_.document();
    if (options_.kind == TraceKind::backward || value >= graph_.inputs.size() + options_.backwardFrom) {
      const auto link = options_.origins.find(node.name);
      if (link == options_.origins.end()) return {};
      return {Role::gradient, valueName(link->second.node), link->second.op};
    }
    return first == call.results.end()
               ? GivenOrigin{Role::forward, names_[value], op}
               : GivenOrigin{Role::forward, document.displayName(*first), symbolOf(call).qualifiedName()};
  }

  /// What the program wrote in place where autograd did not see it: computed apart, then copied over.
  void writeOver(std::size_t value, const fx::Node& node, std::size_t written, GraphCall call) {
    call.place.gradMode = false;
    if (!values_[written]) fail(node, "writes to something other than a tensor");
    const auto computed = builder_.define(names_[value] + "__written");
    call.results = {computed};
    add(call, node);
    GraphCall copy;
    copy.symbol = builder_.symbol("torch.ops.aten.copy_.default");
    copy.place = call.place;
    copy.operands = {values_[written], computed};
    std::vector<GivenArgument> arguments;
    for (const auto hole : {0, 1}) arguments.push_back({{}, Argument::ofOperand(hole)});
    builder_.setArguments(copy, std::move(arguments), [&](std::size_t) { return names_[written]; });
    setValue(value, builder_.define(names_[value]));
    copy.results = {values_[value]};
    add(copy, node);
  }

  // Arguments.

  /// An argument of an op that LibTorch lacks: as it is where a trace can have it, a dict as its pairs, else its text.
  Argument freeArgument(const Expression& e, const fx::Node& node, GraphCall& call) {
    const auto isLeftOut = [&] { return e.valueIndex() < graph_.inputs.size() && !isThere(e.valueIndex()); };
    if (e.is(Kind::value) && isLeftOut()) return Argument::ofString(names_[e.valueIndex()]);
    std::vector<Argument> items;
    if (e.is(Kind::tuple) || e.is(Kind::list)) {
      for (const auto& item : e.items) items.push_back(freeArgument(item, node, call));
      return Argument::ofList(std::move(items));
    }
    if (e.is(Kind::dict)) {
      for (std::size_t i = 0; i + 1 < e.items.size(); i += 2) {
        auto key = freeArgument(e.items[i], node, call);
        items.push_back(Argument::ofList({std::move(key), freeArgument(e.items[i + 1], node, call)}));
      }
      return Argument::ofList(std::move(items));
    }
    const bool isPlain = e.items.empty() || e.isCallOf("device") || e.isCallOf("torch.device");
    if (!isPlain || e.is(Kind::bigInteger) || e.is(Kind::ellipsis) || (e.is(Kind::path) && !namedConstant(e.text)))
      return Argument::ofString(fx::toText(e, names_));
    return argument(e, node, call);
  }

  Argument argument(const Expression& e, const fx::Node& node, GraphCall& call) {
    switch (e.kind) {
      case Kind::none: return Argument::ofNone();
      case Kind::boolean: return Argument::ofBool(e.integer != 0);
      case Kind::integer: return Argument::ofInt(e.integer);
      case Kind::real: return Argument::ofReal(e.real);
      case Kind::complex: return Argument::ofComplex(e.real, e.imaginary);
      case Kind::string: return Argument::ofString(e.text);
      case Kind::value: return valueArgument(e.valueIndex(), node, call);
      case Kind::path:
        if (auto constant = namedConstant(e.text)) return *std::move(constant);
        fail(node, fmt::format("reads '{}', which is defined nowhere above", e.text));
      case Kind::tuple:
      case Kind::list: {
        std::vector<Argument> items;
        for (const auto& item : e.items) items.push_back(argument(item, node, call));
        return Argument::ofList(std::move(items));
      }
      case Kind::call:
        if (e.isCallOf("device") || e.isCallOf("torch.device")) return deviceOf(e);
        [[fallthrough]];
      default: fail(node, fmt::format("has an argument that an op of LibTorch does not take: {}", toText(e, names_)));
    }
  }

  Argument valueArgument(std::size_t value, const fx::Node& node, GraphCall& call) const {
    if (value >= made_) fail(node, fmt::format("reads '{}' before it is made", graph_.valueName(value)));
    if (numbers_[value]) return argumentOf(*numbers_[value]);
    if (const auto attribute = attributes_.find(value); attribute != attributes_.end())
      return Argument::ofString("self." + attribute->second);
    if (!values_[value]) fail(node, fmt::format("reads '{}', which no op here gives", graph_.valueName(value)));
    call.operands.push_back(values_[value]);
    return Argument::ofOperand(std::ssize(call.operands) - 1);
  }

  bool isThere(std::size_t value) const { return numbers_[value] || values_[value]; }

  // Results.

  ValueId define(std::size_t value, bool hasSchema) {
    setValue(value, builder_.define(valueName(graph_.valueName(value))));
    const auto* type = typeOf(value);
    const bool isShown = !options_.runnable || !hasSchema;  // what is run shows its types itself
    if (isShown && type != nullptr && type->kind == fx::Type::Kind::tensor)
      builder_.setType(values_[value], sizes_.meta(*type));
    return values_[value];
  }

  void setResults(std::size_t value, const fx::Node& node, GraphCall& call) {
    const auto symbol = symbolOf(call);
    const bool hasSchema = !symbol.schema.empty();
    const auto* items = items_.of(value);
    const bool isOneList = !hasSchema || (symbol.returns.size() == 1 && isList(symbol.returns[0]));
    if (items == nullptr && (!hasSchema || symbol.returns.size() == 1)) {
      if (hasSchema && isOneList) call.pattern.returns = {0};
      else call.results = {define(value, hasSchema)};
      return;
    }
    const auto taken = items == nullptr ? 0 : items->size();
    const auto count = symbol.returns.size() > 1 ? symbol.returns.size() : taken;
    for (std::size_t k = 0; k < count; ++k) {
      const bool isTaken = k < taken && items->at(k) != fx::noIndex;
      if (isTaken) call.results.push_back(define(graph_.inputs.size() + items->at(k), hasSchema));
      else if (options_.kind == TraceKind::computation)
        call.results.push_back(builder_.define(fmt::format("{}__{}", names_[value], k)));
      else call.results.emplace_back();
    }
    if (isOneList) call.pattern.returns = {static_cast<std::int32_t>(count)};
    else if (count != symbol.returns.size()) fail(node, "gives other results than " + symbol.schema);
  }

  /// In a derived trace numbers are None, as are inputs that are left out.
  void readResult(std::size_t i, const fx::Node& place) {
    const auto& value = graph_.outputs[i].value;
    const auto index = value.is(Kind::value) ? value.valueIndex() : graph_.valueCount();
    const bool isNone = index < graph_.inputs.size() && !isThere(index);
    const bool isNumber = index < graph_.valueCount() ? numbers_[index].has_value() : !value.is(Kind::none);
    GraphCall call;
    OutputSpec spec;
    if (!isNone && (!isNumber || options_.kind == TraceKind::computation)) spec.literal = argument(value, place, call);
    if (spec.literal.kind == Argument::Kind::operand) {
      spec.value = call.operands.front();
      spec.literal = Argument();
    }
    listing_.trace.outputs.push_back(spec.value);
    listing_.results.push_back(std::move(spec));
  }

  void readResults() {
    const fx::Node place{
        "return", fx::noIndex, fx::noIndex, {}, graph_.outputs.empty() ? 0 : graph_.outputs.front().line};
    made_ = graph_.valueCount();
    if (options_.returnsAll) {
      for (std::size_t i = 0; i < graph_.outputs.size(); ++i) readResult(i, place);
    } else {
      for (const auto i : options_.outputs) readResult(i, place);
    }
    auto& trace = listing_.trace;
    const bool isSplit = trace.kind == TraceKind::joint || trace.kind == TraceKind::forward;
    trace.resultCount = isSplit ? std::min(options_.results, trace.outputs.size()) : trace.outputs.size();
  }

  void check() {
    for (const auto& problem : verify(builder_.document(), listing_.trace)) {
      const auto node = nodes_.find(problem.op);
      const auto message = "expected a trace that holds together: " + problem.message;
      if (node != nodes_.end()) fail(*node->second, message);
      badInput(message, "the graph");
    }
  }

  const fx::Graph& graph_;
  ListingOptions options_;
  Listing listing_;
  DocumentBuilder builder_;
  KnownSizes sizes_;
  std::vector<std::string> names_;
  std::vector<ValueId> values_;                 ///< none: a number, an attribute, what is left out
  std::vector<std::optional<Number>> numbers_;  ///< values that are sizes, or made of sizes
  std::size_t made_ = 0;                        ///< values before this one may be read
  CallResults items_;
  std::unordered_map<std::size_t, std::string> attributes_;
  std::unordered_map<std::int32_t, const fx::Node*> nodes_;  ///< by op
  std::uint32_t lastSource_ = fx::noIndex;
  CallPlace place_;  ///< of the ops to come
};

}  // namespace

Listing listingOf(const fx::Graph& graph, const SymbolLookup& lookup, const ListingOptions& options) {
  if (!options.runnable) return Reader(graph, lookup, options).read();
  const auto lowered = fx::withoutPrims(graph);
  auto moved = options;
  if (!options.unrecorded.empty()) {
    moved.unrecorded.clear();
    for (const auto node : lowered.origins)
      moved.unrecorded.push_back(node < options.unrecorded.size() ? options.unrecorded[node] : char{0});
  }
  moved.writes.clear();
  for (const auto& [node, written] : options.writes)
    moved.writes.emplace(lowered.values[graph.inputs.size() + node] - graph.inputs.size(), lowered.values[written]);
  return Reader(lowered.graph, lookup, moved).read();
}

ModelFile modelOf(const Listing& listing, const std::string& path) {
  ModelFile file;
  file.path = path;
  file.isText = true;
  file.document = listing.document;
  file.problems = listing.problems;
  file.computation.trace = listing.trace;
  file.computation.outputs = listing.results;
  for (std::size_t i = 0; i < listing.inputs.size(); ++i) {
    InputSpec spec;
    spec.name = listing.inputs[i];
    spec.value = listing.trace.inputs[i];
    spec.requiresGrad = listing.document->value(spec.value).requiresGrad;
    file.computation.inputs.push_back(std::move(spec));
  }
  return file;
}

}  // namespace retrograd::jobs
