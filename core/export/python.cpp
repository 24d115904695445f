// A script for PyTorch that runs the traces and gives the same numbers; weights and inputs lie in a safetensors file
// next to it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

#include "core/derivation/result_names.h"
#include "core/export/export.h"
#include "core/export/python_runtime.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/trace/effects.h"
#include "core/trace/last_use.h"
#include "core/trace/print/call_text.h"
#include "core/trace/print/printer.h"
#include "core/trace/python_text.h"
#include "core/trace/tensor_data.h"

namespace retrograd {
namespace {

std::string tuple(const std::vector<std::int64_t>& numbers) {
  return fmt::format("({}{})", fmt::join(numbers, ", "), numbers.size() == 1 ? "," : "");
}

/// The tensors of an exported script: what goes into its safetensors file, and the Python expression that gives each
/// back as it was, with dtype, strides and the memory that it shares with others (tied weights).
class ScriptTensors {
 public:
  /// Returns the expression. Where another tensor has this name, it goes under a longer one.
  std::string add(std::string name, const TensorData& tensor) {
    const auto& meta = tensor.meta;
    while (tensors_.contains(name)) name += '_';
    if (meta.elements() == 0)
      return fmt::format("torch.empty_strided({}, {}, dtype=torch.{})", tuple(meta.sizes), tuple(meta.strides),
                         torchName(meta.dtype));
    const bool isWhole =
        meta.offset == 0 && meta.strides == contiguousStrides(meta.sizes) && std::cmp_equal(meta.bytes(), tensor.bytes);
    if (isWhole && !safetensorsName(meta.dtype).empty() && !storages_.contains({tensor.data, meta.dtype})) {
      tensors_.emplace(name, tensor);
      auto expression = fmt::format("tensors[{}]", pythonString(name));
      storages_.emplace(std::pair{tensor.data, meta.dtype}, expression + ".view(-1)");
      return expression;
    }
    return fmt::format("strided({}, {}, {}, {})", storage(name, tensor), tuple(meta.sizes), tuple(meta.strides),
                       meta.offset);
  }
  const TensorMap& tensors() const { return tensors_; }

 private:
  /// The storage as a flat tensor; of a dtype that safetensors does not know, as bytes.
  std::string storage(const std::string& name, const TensorData& tensor) {
    const auto [known, isNew] = storages_.try_emplace({tensor.data, tensor.meta.dtype});
    if (!isNew) return known->second;
    TensorData flat = tensor;
    flat.meta = {};
    const bool isKnown = !safetensorsName(tensor.meta.dtype).empty();
    flat.meta.dtype = isKnown ? tensor.meta.dtype : DType::u8;
    flat.meta.sizes = {static_cast<std::int64_t>(tensor.bytes) / itemSize(flat.meta.dtype)};
    flat.meta.strides = {1};
    tensors_.emplace(name, flat);
    auto expression = fmt::format("tensors[{}]", pythonString(name));
    // Kernels rely on complex numbers lying at multiples of 16 bytes, the file's header may be of any length.
    if (!isKnown) expression = fmt::format("{}.clone().view(torch.{})", expression, torchName(tensor.meta.dtype));
    return known->second = expression;
  }
  TensorMap tensors_;
  std::map<std::pair<const void*, DType>, std::string> storages_;  ///< by first byte: expression of the flat tensor
};

/// Numbers run, their expressions are read; arguments that an op writes in place are copied where they are not the
/// trace's own.
class ScriptCall final : public CallText {
 public:
  using CallText::CallText;
  std::unordered_set<const Argument*> copied;  ///< arguments of the call to be written that get a copy

  /// A body returns a tuple, also of one.
  std::string targets(BoundSymbolId op) const override {
    const auto text = CallText::targets(op);
    const bool isTuple = document().symbol(op).isHigherOrder && document().outputs(op).size() == 1;
    return isTuple ? "(" + text + ",)" : text;
  }

 protected:
  std::string value(ValueId id) const override { return id ? document().displayName(id) : "None"; }
  std::string literal(const Argument& argument) const override {
    auto plain = argument;
    if (argument.kind == Argument::Kind::integer || argument.kind == Argument::Kind::real) plain.text.clear();
    return CallText::literal(plain);
  }
  std::string whole(const Argument& argument, std::span<const ValueId> operands) const override {
    const auto text = this->argument(argument, operands);
    return copied.contains(&argument) ? text + ".clone()" : text;
  }
};

/// One trace as a function.
class FunctionWriter {
 public:
  FunctionWriter(const Analysis& analysis, const Trace& trace, const std::string& helpers, ExportSink& sink,
                 const Progress& progress)
      : document_(*analysis.document),
        trace_(trace),
        helpers_(helpers),
        sink_(sink),
        progress_(progress),
        call_(document_) {
    for (const auto op : document_.boundSymbolIds())
      if (const auto original = document_.boundSymbol(op).replays) replayed_.insert(original);
    if (trace.kind != TraceKind::computation)
      for (const auto& [key, value] : mutatedValues(analysis)) mutated_.emplace(value, key);
  }

  void write() {
    // What runs in the forward runs with grad mode on, as it did when the file was made: some kernels ask. No tensor
    // requires grad.
    isOn_ = defaultOn_ = trace_.kind != TraceKind::backward;
    if (!defaultOn_) line(0, "@torch.no_grad()");
    line(0, fmt::format("def {}({}):", name(trace_.kind), parameters(trace_.inputs)));
    const LastUses uses(document_, trace_);
    for (std::size_t i = 0; i < trace_.ops.size(); ++i) {
      progress_.check();
      if (trace_.kind == TraceKind::joint && i == trace_.forwardCount) line(1, "# backward");
      writeOp(trace_.ops[i], gradMode(trace_.ops[i]), 1);
      del(uses.values(i));
    }
    setGradMode(defaultOn_, 1);
    line(1, "return " + results());
    sink_.write("\n\n");
  }

 private:
  void line(std::size_t depth, std::string_view content) {
    sink_.write(fmt::format("{:{}}{}\n", "", 4 * depth, content));
  }

  std::string parameters(const std::vector<ValueId>& values) const {
    std::string text;
    for (std::size_t i = 0; i < values.size(); ++i)
      text += (i ? ", " : "") + (values[i] ? document_.displayName(values[i]) : fmt::format("_{}", i));
    return text;
  }

  bool gradMode(BoundSymbolId op) const {
    const auto& bound = document_.boundSymbol(op);
    const auto role = bound.origin.role;
    if (role == Role::none) return true;  // regions of a computation are higher-order ops
    return (role == Role::forward || role == Role::recompute) && bound.gradMode;
  }

  /// Ops of another grad mode than the function's are in a block of their own.
  std::size_t setGradMode(bool on, std::size_t depth) {
    if (on != isOn_ && on != defaultOn_) line(depth, on ? "with torch.enable_grad():" : "with torch.no_grad():");
    isOn_ = on;
    return depth + (on != defaultOn_);
  }

  void writeOp(BoundSymbolId op, bool grad, std::size_t depth) {
    const auto& bound = document_.boundSymbol(op);
    for (const auto& argument : document_.pattern(bound.pattern).arguments) bodies(argument, depth);
    depth = setGradMode(grad, depth);
    depth_ = depth;
    copies(op, depth);
    if (replayed_.contains(op)) line(depth, fmt::format("{}.keep({})", helpers_, op.index));
    if (bound.replays) line(depth++, fmt::format("with {}.replay({}):", helpers_, bound.replays.index));
    const auto comment = oneLine(printComment(document_, op));
    line(depth, call_.call(op) + (comment.empty() ? "" : "  # " + comment));
    if (bound.replays) --depth;
    for (auto output : document_.outputs(op)) keepMutated(output, depth);
    for (auto operand : document_.operands(op))
      if (silent_.contains(operand)) keepMutated(operand, depth);
  }

  /// Memory that the op writes and the trace has not made is copied: for this call alone where the op returns what it
  /// wrote, else from here on.
  void copies(BoundSymbolId op, std::size_t depth) {
    call_.copied.clear();
    silent_.clear();
    if (trace_.kind == TraceKind::computation) return;  // eager: its inputs are copies already
    const auto& bound = document_.boundSymbol(op);
    const auto& symbol = document_.symbol(bound.symbol);
    const auto& pattern = document_.pattern(bound.pattern);
    for (auto position : writtenArguments(symbol, pattern.arguments)) {
      const auto& argument = pattern.arguments[position];
      if (argument.kind != Argument::Kind::operand) continue;
      const auto id = document_.operands(op)[argument.integer];
      const auto storage = id ? document_.value(id).storage : StorageId();
      if (!storage || !document_.storage(storage).external) continue;
      if (symbol.arguments[position].isWrite) {
        call_.copied.insert(&argument);
      } else {
        line(depth, fmt::format("{0} = {0}.clone()", document_.displayName(id)));
        silent_.insert(id);
      }
    }
  }

  void keepMutated(ValueId value, std::size_t depth) {
    const auto [first, last] = mutated_.equal_range(value);
    for (auto it = first; value && it != last; ++it)
      line(depth, fmt::format("{}.mutated[{}] = {}", helpers_, pythonString("mut." + it->second),
                              document_.displayName(value)));
  }

  void bodies(const Argument& argument, std::size_t depth) {
    if (argument.kind == Argument::Kind::subgraph) {
      const auto& body = document_.subgraph(SubgraphId(argument.integer));
      line(depth, fmt::format("def {}({}):", body.name, parameters(body.inputs)));
      for (auto op : body.ops) writeOp(op, true, depth + 1);
      std::string outputs;
      for (const auto& output : body.outputs) outputs += call_.argument(output, body.outputValues) + ", ";
      line(depth + 1, "return (" + outputs + ")");
    }
    for (const auto& item : argument.items) bodies(item, depth);
  }

  void del(std::span<const ValueId> values) {
    std::vector<std::string> names;
    for (auto value : values) names.push_back(document_.displayName(value));
    if (!names.empty()) line(depth_, fmt::format("del {}", fmt::join(names, ", ")));
  }

  std::string tuple(std::span<const ValueId> values) const {
    std::string text;
    for (std::size_t i = 0; i < values.size(); ++i)
      text += (i ? ", " : "") + (values[i] ? document_.displayName(values[i]) : "None");
    return "(" + text + (values.size() == 1 ? ",)" : ")");
  }

  std::string results() const {
    const std::span<const ValueId> all = trace_.outputs;
    if (trace_.kind == TraceKind::backward || trace_.kind == TraceKind::computation) return tuple(all);
    const auto count = std::min(trace_.resultCount, all.size());
    return tuple(all.first(count)) + ", " + tuple(all.subspan(count));
  }

  const Document& document_;
  const Trace& trace_;
  const std::string& helpers_;
  ExportSink& sink_;
  const Progress& progress_;
  ScriptCall call_;
  std::unordered_set<BoundSymbolId> replayed_;  ///< draws from whose generator state another op draws once more
  std::multimap<ValueId, std::string> mutated_;
  std::set<ValueId> silent_;  ///< operands of the present op that it writes without returning them
  std::size_t depth_ = 1;
  bool isOn_ = true, defaultOn_ = true;
};

class ScriptWriter {
 public:
  ScriptWriter(const ExportRequest& request, ExportSink& sink, const Progress& progress)
      : request_(request),
        analysis_(request.analysis),
        document_(*analysis_.document),
        sink_(sink),
        progress_(progress) {
    for (const auto id : document_.valueIds())
      if (const auto name = document_.displayName(id); name.starts_with(helpers_)) helpers_ = name + "_";
    for (const auto* trace : request.traces) kinds_.insert(trace->kind);
    // The backward runs on what the forward saves.
    if (kinds_.contains(TraceKind::backward)) kinds_.insert(TraceKind::forward);
  }

  void write() {
    const auto beside = std::filesystem::path(request_.path + ".safetensors");
    for (std::size_t i = 0; i < analysis_.computation().inputs.size(); ++i) addInput(i);
    for (const auto& [id, data] : analysis_.constants) addConstant(id, data);
    if (hasBackward()) addCotangents();
    writeSafetensors(beside.string(), tensors_.tensors(), {{"seed", std::to_string(analysis_.request.seed)}});

    docstring(beside.filename().string());
    sink_.write(pythonRuntime());
    sink_.write(fmt::format("SEED = {}\n{} = types.SimpleNamespace(keep=keep, replay=replay, mutated=mutated)\n",
                            analysis_.request.seed, helpers_));
    sink_.write(fmt::format("tensors = load(os.path.join(os.path.dirname(os.path.abspath(__file__)), {}))\n",
                            pythonString(beside.filename().string())));
    for (const auto& [id, expression] : constants_)
      sink_.write(fmt::format("{} = {}  # a literal of a formula\n", document_.displayName(id), expression));
    sink_.write("\n\n");
    for (const auto* trace :
         {&analysis_.computation().trace, &analysis_.joint, &analysis_.forward, &analysis_.backward})
      if (kinds_.contains(trace->kind)) FunctionWriter(analysis_, *trace, helpers_, sink_, progress_).write();
    run();
    sink_.write(pythonMain());
  }

 private:
  void docstring(const std::string& beside) {
    const auto safe = [](std::string text) {
      std::replace(text.begin(), text.end(), '\\', '/');
      std::replace(text.begin(), text.end(), '"', '\'');
      return oneLine(text);
    };
    sink_.write(
        fmt::format("#!/usr/bin/env python3\n\"\"\"Traces of {}, written by Retrograd.\n\nRuns them with PyTorch and "
                    "prints the results. Weights and inputs "
                    "lie in {}.\n",
                    safe(analysis_.file.path), safe(beside)));
    for (const auto& note : analysis_.inputSource) sink_.write(safe(note) + "\n");
    for (const auto& reason : analysis_.dataDependent)
      sink_.write("The traces hold for these inputs only: " + safe(reason) + "\n");
    sink_.write("\"\"\"\n");
  }

  /// Adds a tensor to the file; the expression has it on the device where the traces want it.
  std::string placed(ValueId id, const std::string& name, const TensorData& data) {
    const auto expression = tensors_.add(name, data);
    const auto device = document_.isTensor(id) ? document_.meta(id).device : Device();
    return device.type == Device::Type::cpu ? expression
                                            : fmt::format("{}.to({})", expression, pythonString(toString(device)));
  }

  void addConstant(ValueId id, const TensorData& data) {
    constants_.emplace_back(id, placed(id, fmt::format("constant.{}", id.index), data));
  }

  /// A pair: name, tensor. Weights have no name among the results.
  void addInput(std::size_t i) {
    const auto& spec = analysis_.computation().inputs[i];
    const auto add = [&](const std::string& name, const std::string& expression) {
      inputs_.push_back(fmt::format("({}, {})", pythonString(name), expression));
    };
    const bool isUser = spec.kind == InputKind::user;
    const auto id = analysis_.computation().trace.inputs[i];
    if (const auto* data = inputData(analysis_, i); data && id)
      return add(isUser ? "in." + spec.name : "", placed(id, resultKey(spec, ""), *data));
    if (!isUser && spec.kind != InputKind::token && spec.kind != InputKind::object)
      badInput("the file holds no data for '" + spec.target + "'", analysis_.file.path);
    const auto number = analysis_.request.numbers.find(spec.name);
    add("", number == analysis_.request.numbers.end() ? "None" : printArgument(document_, number->second, {}));
  }

  /// As many as the computation has outputs; None for those without.
  void addCotangents() {
    const auto& outputs = analysis_.computation().outputs;
    const auto before = analysis_.computation().trace.inputs.size();
    for (std::size_t i = 0; i < outputs.size() && before + i < analysis_.joint.inputs.size(); ++i) {
      const auto position = userOutputPosition(analysis_.computation(), i);
      const auto data = analysis_.request.cotangents.find(position);
      const auto id = analysis_.joint.inputs[before + i];
      const bool isThere = id && data != analysis_.request.cotangents.end();
      cotangents_.push_back(isThere
                                ? fmt::format("(\"cot.{}\", {})", position, placed(id, "cot." + position, data->second))
                                : "(\"\", None)");
    }
  }

  void list(const char* name, const std::vector<std::string>& items) {
    sink_.write(fmt::format("    {} = [\n", name));
    for (const auto& item : items) sink_.write("        " + item + ",\n");
    sink_.write("    ]\n");
  }

  /// The traces on the file's tensors. Results have the names of a reference file (docs/export.md).
  void run() {
    std::vector<std::string> outputs, gradients;
    for (std::size_t i = 0; i < analysis_.computation().outputs.size(); ++i)
      outputs.push_back(pythonString(resultName(i)));
    for (const auto& input : analysis_.computation().inputs)
      gradients.push_back(pythonString("grad." + resultKey(input, "p.")));
    sink_.write("def run():\n    \"\"\"What the traces are given and what comes of it, by name.\"\"\"\n");
    list("inputs", inputs_);
    list("outputs", outputs);
    if (hasBackward()) {
      list("cotangents", cotangents_);
      list("gradients", gradients);
    }
    sink_.write("    results = {}\n    mutated.clear()\n");
    const std::string seed = "    torch.manual_seed(SEED)\n";
    if (kinds_.contains(TraceKind::computation))
      sink_.write(seed +
                  "    results |= named(outputs, computation(*(value.clone() if torch.is_tensor(value) else value for "
                  "value in values(inputs))))\n");
    if (kinds_.contains(TraceKind::joint))
      sink_.write(seed +
                  "    made, derivatives = joint(*values(inputs), *values(cotangents))\n"
                  "    results |= named(outputs, made) | named(gradients, derivatives)\n");
    if (kinds_.contains(TraceKind::forward))
      sink_.write(seed + "    made, saved = forward(*values(inputs))\n    results |= named(outputs, made)\n");
    if (kinds_.contains(TraceKind::backward))
      sink_.write(fmt::format("    results |= named(gradients, backward(*saved{}))\n", backwardCotangents()));
    sink_.write(fmt::format("    given = dict(inputs{})\n", hasBackward() ? " + cotangents" : ""));
    sink_.write("    return named(given.keys(), given.values()), results | mutated\n");
  }

  bool hasBackward() const { return kinds_.contains(TraceKind::joint) || kinds_.contains(TraceKind::backward); }

  /// Name of output i among the results; empty for what is not a tensor of interest (tokens).
  std::string resultName(std::size_t i) const {
    const auto position = userOutputPosition(analysis_.computation(), i);
    if (!position.empty()) return "out." + position;
    const auto& output = analysis_.computation().outputs[i];
    return output.kind == OutputKind::bufferMutation  ? "mut.b." + output.target
           : output.kind == OutputKind::inputMutation ? "mut.in." + output.target
                                                      : "";
  }

  std::string backwardCotangents() const {
    std::string text;
    const auto before = analysis_.computation().trace.inputs.size();
    const auto& inputs = analysis_.backward.inputs;
    for (auto i = analysis_.backward.savedCount; i < inputs.size(); ++i) {
      const auto all = std::span(analysis_.joint.inputs).subspan(before);
      const auto at = std::find(all.begin(), all.end(), inputs[i]);
      text += inputs[i] && at != all.end() ? fmt::format(", cotangents[{}][1]", at - all.begin()) : ", None";
    }
    return text;
  }

  const ExportRequest& request_;
  const Analysis& analysis_;
  const Document& document_;
  ExportSink& sink_;
  const Progress& progress_;
  std::string helpers_ = "script";  ///< namespace of what functions use besides torch: a name that no value has
  std::set<TraceKind> kinds_;
  ScriptTensors tensors_;
  std::vector<std::pair<ValueId, std::string>> constants_;
  std::vector<std::string> inputs_, cotangents_;  ///< pairs of name and tensor, as Python
};

void writePython(const ExportRequest& request, ExportSink& sink, const Progress& progress) {
  ScriptWriter(request, sink, progress).write();
}

const ExportRegistration registrationPython(
    {.name = "python",
     .description = "a script that runs the traces with PyTorch, and a safetensors file next to it",
     .suffix = ".py",
     .traces = {TraceKind::forward, TraceKind::backward},
     .writesBeside = true,
     .write = writePython});

}  // namespace

}  // namespace retrograd
