#include "core/formats/listing/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "core/base/error.h"
#include "core/base/number_text.h"
#include "core/formats/fx/lower_prims.h"
#include "core/formats/jobs/dynamo_ops.h"
#include "core/trace/number.h"
#include "core/trace/python_text.h"

namespace retrograd::jobs {
namespace {

using fx::Expression;
using Kind = Expression::Kind;

constexpr std::string_view opsPrefix = "torch.ops.";

class Writer {
 public:
  Writer(const fx::Graph& graph, const SymbolLookup& lookup, const ListingOptions& options)
      : graph_(graph), lookup_(lookup), options_(options) {
    options_.backwardFrom = std::min(options_.backwardFrom, graph.nodes.size());
  }

  Listing write() {
    names_.resize(graph_.valueCount());
    numbers_.resize(graph_.valueCount());
    made_.resize(graph_.valueCount(), 0);
    collectItems();
    writeHead();
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (options_.kind == TraceKind::joint && i == options_.backwardFrom) body_ += "    # backward\n";
      writeNode(i);
    }
    writeReturn();
    listing_.text = fmt::format("import torch\n\ndef {}({}):\n{}{}", name(options_.kind),
                                fmt::join(listing_.inputs, ", "), head_, body_);
    return std::move(listing_);
  }

 private:
  [[noreturn]] void fail(int line, const std::string& what, const std::string& message) const {
    throw Error(ErrorCode::badInput, message, fmt::format("{} (line {} of the graph)", what, line));
  }

  /// The call of several results that a node takes an item of; nothing where it takes none.
  std::optional<std::size_t> baseOf(const fx::Node& node) const {
    const auto& call = node.call;
    if (!call.is(Kind::item) || !call.items[0].is(Kind::value) || !call.items[1].is(Kind::integer)) return std::nullopt;
    const auto base = call.items[0].valueIndex();
    return base < graph_.inputs.size() || typeOf(base) != nullptr ? std::nullopt : std::optional(base);
  }

  /// The items that are taken of each value: its results, where it is a call that gives several. Those of a tuple
  /// within come behind the others.
  void collectItems() {
    std::unordered_set<std::size_t> bases;
    for (const auto& node : graph_.nodes)
      if (const auto base = baseOf(node)) bases.insert(*base);
    std::vector<std::pair<std::size_t, std::uint32_t>> inner;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const auto base = baseOf(graph_.nodes[i]);
      if (!base) continue;
      const auto value = graph_.inputs.size() + i;
      const auto tuple = tuples_.find(*base);
      if (bases.contains(value)) {
        tuples_.emplace(value, tuple == tuples_.end() ? *base : tuple->second);
      } else if (tuple != tuples_.end()) {
        inner.emplace_back(tuple->second, static_cast<std::uint32_t>(i));
      } else {
        auto& results = items_[*base];
        const auto index =
            static_cast<std::size_t>(std::clamp<std::int64_t>(graph_.nodes[i].call.items[1].integer, 0, 4096));
        if (results.size() <= index) results.resize(index + 1, fx::noIndex);
        if (results[index] == fx::noIndex) results[index] = static_cast<std::uint32_t>(i);
      }
    }
    for (const auto& [call, node] : inner) items_[call].push_back(node);
  }

  const fx::Type* typeOf(std::size_t value) const {
    const auto index = graph_.valueType(value);
    return index == fx::noIndex ? nullptr : &graph_.types[index];
  }

  /// What a symbol, or an expression that cannot be worked out, is taken for. The notes have its text.
  std::int64_t assume(const std::string& text) {
    const auto [taken, isNew] = assumed_.try_emplace(text, static_cast<std::int64_t>(2 + assumed_.size()));
    if (isNew)
      listing_.notes.push_back(
          fmt::format("the log does not say what {} was; {} is taken for it", oneLine(text), taken->second));
    listing_.assumedSizes = true;
    return taken->second;
  }

  Number numberOf(const std::string& text) {
    if (const auto plain = numberIn<std::int64_t>(text)) return Number::ofInt(*plain);
    const auto expression = SizeExpression::parse(text);
    if (!expression) return Number::ofInt(assume(text));
    auto bindings = options_.sizes;
    for (const auto& symbol : expression->symbols())
      if (!bindings.contains(symbol)) bindings[symbol] = assume(symbol);
    const auto value = evaluateNumber(*expression, bindings);
    return value ? *value : Number::ofInt(assume(text));
  }

  std::int64_t sizeOf(const std::string& text) {
    const auto number = numberOf(text);
    if (!number.isReal()) return number.integer;
    const auto whole = evaluateSize(pythonReal(number.real), {});
    return whole ? *whole : assume(text);
  }

  static std::string numberText(const Number& number) {
    if (number.kind == Number::Kind::boolean) return number.truth() ? "True" : "False";
    return number.isReal() ? pythonReal(number.real) : std::to_string(number.integer);
  }

  /// "cpu f32[2, 3] strides [3, 1]"
  std::string typeText(const fx::Type& type) {
    std::vector<std::int64_t> sizes, strides;
    for (const auto& size : type.sizes) sizes.push_back(sizeOf(size));
    for (const auto& stride : type.strides) strides.push_back(sizeOf(stride));
    auto text = fmt::format("{} {}[{}]", type.device.empty() ? "cpu" : type.device, shortName(type.dtype),
                            fmt::join(sizes, ", "));
    if (type.hasStrides && strides != contiguousStrides(sizes))
      text += fmt::format(" strides [{}]", fmt::join(strides, ", "));
    return text;
  }

  std::string inputType(const std::string& name, const fx::Type& type) {
    const auto given = options_.given.find(name);
    return given == options_.given.end() || given->second.dtype == type.dtype ? typeText(type)
                                                                              : typeText(given->second);
  }

  static std::string typeText(const TensorMeta& meta) {
    auto text = fmt::format("{} {}[{}]", toString(meta.device), shortName(meta.dtype), fmt::join(meta.sizes, ", "));
    if (meta.strides != contiguousStrides(meta.sizes))
      text += fmt::format(" strides [{}]", fmt::join(meta.strides, ", "));
    return text;
  }

  void writeHead() {
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      const auto& input = graph_.inputs[i];
      made_[i] = 1;
      names_[i] = valueName(input.name);
      const auto* type = typeOf(i);
      if (input.dropped || type == nullptr) continue;
      if (type->kind == fx::Type::Kind::number) {
        numbers_[i] = numberOf(type->expression);
      } else if (type->kind == fx::Type::Kind::tensor) {
        addInput(names_[i], inputType(input.name, *type), i, roleOf(input));
      } else {
        listing_.notes.push_back(
            fmt::format("the input {} is left out: it is not a tensor but {}", input.name, type->text));
      }
    }
  }

  /// What a trace says of its input behind the type.
  std::string roleOf(const fx::Input& input) const {
    const bool isTangent = input.descriptor.kind() == "TangentAOTInput" || input.name.starts_with("tangents_");
    if (options_.kind == TraceKind::backward) return isTangent ? ", cotangent" : ", saved for backward";
    return options_.kind == TraceKind::joint && isTangent ? ", cotangent" : "";
  }

  void addInput(const std::string& name, const std::string& type, std::size_t position, const std::string& role = {}) {
    listing_.inputs.push_back(name);
    listing_.positions.push_back(position);
    head_ += fmt::format("    # {}: \"{}\"{}\n", name, type, role);
  }

  static std::string valueName(const std::string& name) { return isPythonName(name) ? name : "v_" + name; }

  void writeSource(const fx::Node& node) {
    if (node.source == source_ || node.source == fx::noIndex) return;
    source_ = node.source;
    const auto& source = graph_.sources[source_];
    if (!source.file.empty())
      body_ += fmt::format("    # {}:{}: {}\n", oneLine(source.file), source.line, oneLine(source.code));
  }

  void writeNode(std::size_t i) {
    const auto& node = graph_.nodes[i];
    const auto value = graph_.inputs.size() + i;
    made_[value] = 1;
    names_[value] = valueName(node.name);
    listing_.lines.emplace(names_[value], node.line);
    const auto* type = typeOf(value);
    if (type != nullptr && type->kind == fx::Type::Kind::number) {
      numbers_[value] = numberOf(type->expression);
      return;
    }
    if (tuples_.contains(value) || (baseOf(node) && tuples_.contains(*baseOf(node))))
      return useOf(node.call.items[0], node);
    if (node.call.is(Kind::item) && node.call.items[0].is(Kind::value) && items_.contains(node.call.items[0].integer)) {
      useOf(node.call.items[0], node);
      return takeItem(i, node);
    }
    if (node.call.is(Kind::value)) {
      useOf(node.call, node);
      names_[value] = names_[node.call.integer];
      return;
    }
    if (const auto attribute = fx::ownAttribute(node.call)) return takeAttribute(value, *attribute, node);
    if (!node.call.is(Kind::call) || !node.call.items[0].is(Kind::path) ||
        !node.call.items[0].text.starts_with(opsPrefix)) {
      if (options_.anyCall) return writeOther(value, node);
      fail(node.line, node.name, "is not a call of an op: graphs of ATen ops (joint, forward, backward) can be listed");
    }
    writeSource(node);
    writeCall(value, node);
  }

  /// An op that LibTorch lacks, as an opaque one: "torch.ops.torch_nn_functional.linear.default",
  /// "torch.ops.Tensor.view.default", "torch.ops.python.add.default".
  void writeOther(std::size_t value, const fx::Node& node) {
    const auto& call = node.call;
    std::string space = "python", target;
    std::vector<const Expression*> operands;
    const auto takeItems = [&](std::size_t from) {
      for (auto i = from; i < call.items.size(); ++i) operands.push_back(&call.items[i]);
    };
    if (call.is(Kind::call) && call.items[0].is(Kind::path)) {
      const auto& path = call.items[0].text;
      const auto dot = path.rfind('.');
      target = dot == std::string::npos ? path : path.substr(dot + 1);
      if (dot != std::string::npos) space = path.substr(0, dot);
      takeItems(1);
    } else if (call.is(Kind::call) && call.items[0].is(Kind::attribute)) {
      space = "Tensor";
      target = call.items[0].text;
      operands.push_back(&call.items[0].items[0]);
      takeItems(1);
    } else {
      target = call.is(Kind::item)                                                       ? "getitem"
               : call.is(Kind::binary) || call.is(Kind::unary) || call.is(Kind::inPlace) ? operatorName(call.text)
                                                                                         : "expression";
      takeItems(0);
    }
    for (auto* text : {&space, &target})
      for (auto& c : *text)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    writeSource(node);
    std::vector<std::string> texts;
    for (const auto* operand : operands) texts.push_back(freeArgument(*operand, node));
    std::vector<std::string> notes;
    const auto path = fmt::format("{}{}.{}.default", opsPrefix, space, target);
    const auto left = targetsOf(value, path, notes);
    body_ += fmt::format("    {}{}({})", left.empty() ? "" : left + " = ", path, fmt::join(texts, ", "));
    if (!notes.empty()) body_ += fmt::format("  # {}", fmt::join(notes, ", "));
    body_ += "\n";
  }

  /// An argument that a trace can say as it is, else as a text: "'1:None:None'".
  std::string freeArgument(const Expression& e, const fx::Node& node) {
    if (e.is(Kind::keyword)) return e.text + "=" + freeArgument(e.items[0], node);
    if (e.is(Kind::value) && e.valueIndex() < graph_.inputs.size() && isLeftOut(e.integer))
      return pythonString(names_[e.integer]);
    if (e.is(Kind::tuple) || e.is(Kind::list)) {
      std::string text;
      for (const auto& item : e.items) text += (text.empty() ? "" : ", ") + freeArgument(item, node);
      return "[" + text + "]";
    }
    try {
      return argument(e, node);
    } catch (const Error&) {
      return pythonString(fx::toText(e, names_));
    }
  }

  /// A second item of the same number is the same value.
  void takeItem(std::size_t i, const fx::Node& node) {
    const auto base = node.call.items[0].valueIndex();
    const auto index = node.call.items[1].is(Kind::integer) ? node.call.items[1].integer : -1;
    const auto& results = items_.at(base);
    if (index < 0 || index >= std::ssize(results)) fail(node.line, node.name, "takes an item that there is not");
    if (const auto first = results[index]; first != i)
      names_[graph_.inputs.size() + i] = names_[graph_.inputs.size() + first];
  }

  void takeAttribute(std::size_t value, const std::string& attribute, const fx::Node& node) {
    const auto* type = typeOf(value);
    if (type == nullptr || type->kind != fx::Type::Kind::tensor) {
      bodies_[value] = attribute;
      return;
    }
    if (options_.kind == TraceKind::backward) {  // its inputs are what is saved and cotangents alone
      head_ += fmt::format("    # {}: \"{}\", constant\n", names_[value], inputType(node.name, *type));
    } else {
      addInput(names_[value], inputType(node.name, *type), static_cast<std::size_t>(-1));
      listing_.constants.emplace(names_[value], attribute);
    }
    listing_.notes.push_back(fmt::format("{} is a constant of the compiled program (self.{}); a log has no data for it",
                                         node.name, attribute));
  }

  void useOf(const Expression& use, const fx::Node& node) const {
    if (!made_[use.integer]) fail(node.line, node.name, "reads a value before it is made");
  }

  std::string argument(const Expression& e, const fx::Node& node) {
    switch (e.kind) {
      case Kind::none: return "None";
      case Kind::boolean: return e.integer != 0 ? "True" : "False";
      case Kind::integer: return std::to_string(e.integer);
      case Kind::real: return pythonReal(e.real);
      case Kind::complex: return fmt::format("complex({}, {})", pythonReal(e.real), pythonReal(e.imaginary));
      case Kind::string: return pythonString(e.text);
      case Kind::value: return valueText(e.integer, node);
      case Kind::keyword: return e.text + "=" + argument(e.items[0], node);
      case Kind::path:
        if (e.text.starts_with("torch.")) return e.text;
        fail(node.line, node.name, fmt::format("reads '{}', which is defined nowhere above", e.text));
      case Kind::tuple:
      case Kind::list: {
        std::string text;
        for (const auto& item : e.items) text += (text.empty() ? "" : ", ") + argument(item, node);
        return "[" + text + "]";
      }
      case Kind::call:
        if (e.isCallOf("device") || e.isCallOf("torch.device")) return deviceText(e);
        [[fallthrough]];
      default: fail(node.line, node.name, "has an argument that no trace can say");
    }
  }

  std::string valueText(std::size_t value, const fx::Node& node) const {
    if (!made_[value]) fail(node.line, node.name, fmt::format("reads '{}' before it is made", graph_.valueName(value)));
    if (numbers_[value]) return numberText(*numbers_[value]);
    if (const auto body = bodies_.find(value); body != bodies_.end()) return pythonString("self." + body->second);
    return names_[value];
  }

  static std::string deviceText(const Expression& e) {
    const auto* type = e.keyword("type");
    const auto* index = e.keyword("index");
    std::string text = type != nullptr                                     ? type->text
                       : e.items.size() > 1 && e.items[1].is(Kind::string) ? e.items[1].text
                                                                           : "cpu";
    if (index != nullptr && index->is(Kind::integer)) text += ":" + std::to_string(index->integer);
    return "torch.device(" + pythonString(text) + ")";
  }

  /// Positional arguments and keywords as text.
  std::vector<std::string> argumentsOf(const Expression& call, const fx::Node& node) {
    std::vector<std::string> texts;
    for (std::size_t i = 1; i < call.items.size(); ++i) texts.push_back(argument(call.items[i], node));
    return texts;
  }

  void writeCall(std::size_t value, const fx::Node& node) {
    const auto& target = node.call.items[0].text;
    const auto arguments = argumentsOf(node.call, node);
    std::vector<std::string> notes;
    const auto i = value - graph_.inputs.size();
    if (const auto written = options_.writes.find(i); written != options_.writes.end())
      return writeOver(value, written->second, target, arguments);
    const auto left = targetsOf(value, target, notes);
    if (i < options_.unrecorded.size() && options_.unrecorded[i]) notes.emplace_back("no_grad");
    const bool isBackward =
        options_.kind == TraceKind::backward || value >= graph_.inputs.size() + options_.backwardFrom;
    if (const auto origin = options_.origins.find(node.name); isBackward && origin != options_.origins.end()) {
      notes.push_back(origin->second);
    } else if (options_.kind != TraceKind::computation && left.find_first_not_of("[(_, )]") == std::string::npos) {
      notes.push_back(
          fmt::format("computation: {}: \"{}\"", names_[value], target));  // no result of it says which op it is
    }
    body_ += fmt::format("    {}{}({})", left.empty() ? "" : left + " = ", target, fmt::join(arguments, ", "));
    if (!notes.empty()) body_ += fmt::format("  # {}", fmt::join(notes, ", "));
    body_ += "\n";
  }

  /// What the program wrote in place where autograd did not see it: computed apart, then copied over.
  void writeOver(std::size_t value, std::size_t written, const std::string& target,
                 const std::vector<std::string>& arguments) {
    body_ += fmt::format("    {}__written = {}({})  # no_grad\n", names_[value], target, fmt::join(arguments, ", "));
    body_ += fmt::format("    {0} = torch.ops.aten.copy_.default({1}, {0}__written)  # no_grad\n", names_[value],
                         names_[written]);
  }

  std::string noteOf(std::size_t value, bool isKnown) {
    if (options_.runnable && isKnown) return {};  // what is run shows its types itself
    const auto* type = typeOf(value);
    if (type != nullptr && type->kind == fx::Type::Kind::tensor)
      return fmt::format("{}: \"{}\"", names_[value], typeText(*type));
    return {};
  }

  /// What is before "=": a name, names, or names in brackets for a list.
  std::string targetsOf(std::size_t value, const std::string& target, std::vector<std::string>& notes) {
    const auto symbol = lookup_(std::string_view(target).substr(opsPrefix.size()));
    const auto results = items_.find(value);
    if (results == items_.end() && (!symbol || symbol->returns.size() == 1)) {
      if (symbol && symbol->returns[0].type.starts_with("Tensor") && symbol->returns[0].type.ends_with("[]"))
        return "[]";
      if (auto note = noteOf(value, symbol.has_value()); !note.empty()) notes.push_back(std::move(note));
      return names_[value];
    }
    const auto count = symbol && symbol->returns.size() > 1 ? symbol->returns.size()
                       : results == items_.end()            ? 0
                                                            : results->second.size();
    std::vector<std::string> names;
    for (std::size_t k = 0; k < count; ++k) {
      const bool isTaken = results != items_.end() && k < results->second.size() && results->second[k] != fx::noIndex;
      if (!isTaken) {
        names.push_back(options_.kind == TraceKind::computation ? fmt::format("{}__{}", names_[value], k) : "_");
        continue;
      }
      const auto item = graph_.inputs.size() + results->second[k];
      names_[item] = valueName(graph_.valueName(item));
      names.push_back(names_[item]);
      if (auto note = noteOf(item, symbol.has_value()); !note.empty()) notes.push_back(std::move(note));
    }
    if (count == 0) return {};
    const bool isList = !symbol || symbol->returns.size() == 1;
    const auto all = fmt::format("{}", fmt::join(names, ", "));
    return isList ? "[" + all + "]" : names.size() == 1 ? all : "(" + all + ")";
  }

  /// A result as the return says it; in a derived trace numbers are None.
  std::string resultText(std::size_t i, const fx::Node& place) {
    const auto& value = graph_.outputs[i].value;
    const auto index = value.is(Kind::value) ? value.valueIndex() : graph_.valueCount();
    const bool isInput = index < graph_.inputs.size();
    if (isInput && isLeftOut(index)) return "None";
    const bool isNumber = index < graph_.valueCount() ? numbers_[index].has_value() : !value.is(Kind::none);
    return isNumber && options_.kind != TraceKind::computation ? "None" : argument(value, place);
  }

  void writeReturn() {
    const fx::Node place{
        "return", fx::noIndex, fx::noIndex, {}, graph_.outputs.empty() ? 0 : graph_.outputs.front().line};
    std::vector<std::string> texts;
    if (options_.returnsAll) {
      for (std::size_t i = 0; i < graph_.outputs.size(); ++i) texts.push_back(resultText(i, place));
    } else {
      for (const auto i : options_.outputs) texts.push_back(resultText(i, place));
    }
    listing_.outputs = texts;
    const auto tuple = [](auto begin, auto end) {
      return fmt::format("({}{})", fmt::join(begin, end, ", "), end - begin == 1 ? "," : "");
    };
    const auto border = texts.begin() + static_cast<std::ptrdiff_t>(std::min(options_.results, texts.size()));
    if (options_.kind == TraceKind::joint || options_.kind == TraceKind::forward) {
      body_ += fmt::format("    return {}, {}\n", tuple(texts.begin(), border), tuple(border, texts.end()));
    } else if (options_.kind == TraceKind::backward) {
      body_ += fmt::format("    return {}\n", tuple(texts.begin(), texts.end()));
    } else {
      body_ += texts.empty() ? "    return ()\n" : fmt::format("    return {}\n", fmt::join(texts, ", "));
    }
  }

  bool isLeftOut(std::size_t input) const {
    return !numbers_[input] &&
           std::find(listing_.positions.begin(), listing_.positions.end(), input) == listing_.positions.end();
  }

  const fx::Graph& graph_;
  const SymbolLookup& lookup_;
  ListingOptions options_;
  Listing listing_;
  std::string head_, body_;
  std::vector<std::string> names_;
  std::vector<std::optional<Number>> numbers_;  ///< values that are sizes, or made of sizes
  std::vector<char> made_;
  std::unordered_map<std::size_t, std::vector<std::uint32_t>> items_;  ///< by value: the nodes that take its results
  std::unordered_map<std::size_t, std::size_t> tuples_;  ///< an item that is a tuple: the call whose result it is
  std::unordered_map<std::size_t, std::string> bodies_;
  SizeBindings assumed_;
  std::uint32_t source_ = fx::noIndex;
};

}  // namespace

Listing listingOf(const fx::Graph& graph, const SymbolLookup& lookup, const ListingOptions& options) {
  if (!options.runnable) return Writer(graph, lookup, options).write();
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
  return Writer(lowered.graph, lookup, moved).write();
}

}  // namespace retrograd::jobs
