#include "core/torch/fx/repro_model.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <vector>

#include "core/base/error.h"
#include "core/base/memory_account.h"
#include "core/formats/files/mapped_file.h"
#include "core/formats/files/mapping_watch.h"
#include "core/formats/fx/fx_graph.h"
#include "core/formats/fx/lower_prims.h"
#include "core/formats/model/graph_ops.h"
#include "core/formats/model/schema_arguments.h"
#include "core/formats/repro/repro_inputs.h"
#include "core/torch/tracing/computation_recorder.h"
#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/generator.h"
#include "core/torch/tracing/lay_out.h"
#include "core/torch/tracing/op_table.h"
#include "core/trace/symbol.h"

namespace retrograd {
namespace {

using fx::Expression;
using Kind = Expression::Kind;

constexpr std::string_view opPrefix = "torch.ops.";

/// Names of torch that stand for a literal: "torch.float32", "torch.strided", "torch.channels_last".
std::optional<Argument> literalPath(std::string_view path) {
  if (!path.starts_with("torch.")) return std::nullopt;
  const auto name = path.substr(6);
  if (const auto dtype = dtypeFromTorchName(name)) return Argument::ofDType(*dtype);
  if (name == "strided") return Argument::ofLayout(Layout::strided);
  if (name == "sparse_coo") return Argument::ofLayout(Layout::sparse);
  static constexpr std::pair<std::string_view, at::MemoryFormat> formats[] = {
      {"contiguous_format", at::MemoryFormat::Contiguous},
      {"preserve_format", at::MemoryFormat::Preserve},
      {"channels_last", at::MemoryFormat::ChannelsLast},
      {"channels_last_3d", at::MemoryFormat::ChannelsLast3d}};
  for (const auto& [text, format] : formats)
    if (name == text) return Argument::ofMemoryFormat(static_cast<std::int64_t>(format));
  return std::nullopt;
}

/// An argument that the schema's type decides on: lists of tensors, numbers and the like come as values of the graph or
/// as literals.
c10::IValue fitted(Argument argument, const c10::Argument& wanted, const std::vector<c10::IValue>& operands) {
  const auto type = parseSchemaType(wanted.type()->str());
  conform(argument, type, argument.isNumber(), wanted.name());
  return toIValue(argument, wanted.type(), [&](std::size_t hole) { return operands.at(hole); });
}

/// Runs a graph of torch.fx node by node. The recorder has to be installed above autograd (AboveAutograd); it sees the
/// ops. Devices in the graph are taken for the CPU. Numbers are computed here.
class GraphRunner {
 public:
  GraphRunner(const fx::Graph& graph, ComputationRecorder& recorder, Document& document, std::string path);

  /// The graph's outputs. Throws Error naming path and line.
  std::vector<c10::IValue> run(std::vector<c10::IValue> inputs, const Progress& progress);
  /// Whether a device other than the CPU was named.
  bool movedDevices() const { return moved_; }

 private:
  c10::IValue evaluate(const fx::Expression& expression);
  c10::IValue call(const fx::Expression& expression);
  c10::IValue callOp(const std::string& target, const fx::Expression& expression);
  c10::IValue item(const c10::IValue& container, const c10::IValue& index) const;
  c10::IValue arithmetic(const std::string& sign, const c10::IValue& a, const c10::IValue& b) const;
  Argument argument(const fx::Expression& expression, std::vector<c10::IValue>& operands);

  const fx::Graph& graph_;
  ComputationRecorder& recorder_;
  Document& document_;
  std::string path_;
  std::vector<c10::IValue> values_;
  bool moved_ = false;
};

GraphRunner::GraphRunner(const fx::Graph& graph, ComputationRecorder& recorder, Document& document, std::string path)
    : graph_(graph), recorder_(recorder), document_(document), path_(std::move(path)) {}

std::vector<c10::IValue> GraphRunner::run(std::vector<c10::IValue> inputs, const Progress& progress) {
  values_ = std::move(inputs);
  values_.reserve(graph_.valueCount());
  int line = 0;
  try {
    for (const auto& node : graph_.nodes) {
      progress.check();
      progress.at("tracing",
                  0.2 + 0.7 * static_cast<double>(values_.size()) / static_cast<double>(graph_.valueCount()));
      line = node.line;
      SourceFrame frame{path_, node.line, "forward", {}};
      if (node.source != fx::noIndex && !graph_.sources[node.source].file.empty()) {
        const auto& source = graph_.sources[node.source];
        frame = {source.file, source.line, source.function, source.code};
      }
      recorder_.place(document_.internSource({frame}), {});
      values_.push_back(evaluate(node.call));
      if (const auto& value = values_.back();
          value.isTensor() && value.toTensor().defined() && recorder_.computed(value.toTensor()))
        recorder_.name(value.toTensor(), node.name);
    }
    std::vector<c10::IValue> outputs;
    for (const auto& output : graph_.outputs) {
      line = output.line;
      outputs.push_back(evaluate(output.value));
    }
    return outputs;
  } catch (const Error& e) {
    throw e.code() == ErrorCode::cancelled ? e : e.at(path_ + ":" + std::to_string(line));
  } catch (const c10::Error& e) {
    throw Error(ErrorCode::execution, e.what_without_backtrace(), path_ + ":" + std::to_string(line));
  }
}

c10::IValue GraphRunner::evaluate(const Expression& expression) {
  switch (expression.kind) {
    case Kind::none: return {};
    case Kind::boolean: return expression.integer != 0;
    case Kind::integer: return expression.integer;
    case Kind::real: return expression.real;
    case Kind::complex: return c10::complex<double>(expression.real, expression.imaginary);
    case Kind::string: return expression.text;
    case Kind::value: return values_.at(expression.integer);
    case Kind::call: return call(expression);
    case Kind::item: return item(evaluate(expression.items[0]), evaluate(expression.items[1]));
    case Kind::binary: return arithmetic(expression.text, evaluate(expression.items[0]), evaluate(expression.items[1]));
    case Kind::unary:
      return arithmetic(expression.text == "-" ? "-" : expression.text, std::int64_t{0}, evaluate(expression.items[0]));
    case Kind::tuple:
    case Kind::list: {
      std::vector<c10::IValue> items;
      for (const auto& one : expression.items) items.push_back(evaluate(one));
      return c10::ivalue::Tuple::create(std::move(items));
    }
    default:
      if (const auto own = fx::ownAttribute(expression))
        badInput("self." + *own + " is a constant whose data the text does not hold");
      badInput("is not run here: " + fx::toText(expression, {}));
  }
}

c10::IValue GraphRunner::item(const c10::IValue& container, const c10::IValue& index) const {
  if (!index.isInt()) badInput("an element that is not a whole number");
  const auto at = index.toInt();
  const auto of = [&](const auto& items) {
    const auto size = std::ssize(items);
    if (at < -size || at >= size) badInput("element " + std::to_string(at) + " of " + std::to_string(size));
    return c10::IValue(items[at < 0 ? at + size : at]);
  };
  if (container.isTuple()) return of(container.toTupleRef().elements());
  if (container.isList()) return of(container.toListRef());
  badInput("an element of something other than a list");
}

c10::IValue GraphRunner::arithmetic(const std::string& sign, const c10::IValue& a, const c10::IValue& b) const {
  if (!a.isInt() || !b.isInt()) badInput("arithmetic on something other than whole numbers: " + sign);
  const auto x = a.toInt(), y = b.toInt();
  std::int64_t result = 0;
  if (sign == "+" && !__builtin_add_overflow(x, y, &result)) return result;
  if (sign == "-" && !__builtin_sub_overflow(x, y, &result)) return result;
  if (sign == "*" && !__builtin_mul_overflow(x, y, &result)) return result;
  if ((sign == "//" || sign == "%") && y != 0 && !(x == std::numeric_limits<std::int64_t>::min() && y == -1)) {
    const auto quotient = x / y - (x % y != 0 && (x < 0) != (y < 0));
    return sign == "//" ? quotient : x - quotient * y;
  }
  badInput("cannot be computed: " + std::to_string(x) + " " + sign + " " + std::to_string(y));
}

c10::IValue GraphRunner::call(const Expression& expression) {
  const auto& callee = expression.items.front();
  if (!callee.is(Kind::path) || !std::string_view(callee.text).starts_with(opPrefix))
    badInput("is not run here: " + fx::toText(expression, {}));
  const auto target = callee.text.substr(opPrefix.size());
  return callOp(target, expression);
}

Argument GraphRunner::argument(const Expression& expression, std::vector<c10::IValue>& operands) {
  if (expression.is(Kind::tuple) || expression.is(Kind::list)) {
    std::vector<Argument> items;
    for (const auto& one : expression.items) items.push_back(argument(one, operands));
    return Argument::ofList(std::move(items));
  }
  if (expression.is(Kind::none)) return Argument::ofNone();
  if (expression.is(Kind::string)) return Argument::ofString(expression.text);
  if (expression.is(Kind::path))
    if (auto literal = literalPath(expression.text)) return *literal;
  if (expression.isCallOf("device") || expression.isCallOf("torch.device")) {
    const auto* type = expression.keyword("type");
    moved_ |= !type || type->text != "cpu";
    return Argument::ofDevice("cpu");
  }
  auto value = evaluate(expression);
  if (value.isNone()) return Argument::ofNone();
  if (auto number = numberArgument(value)) return *std::move(number);
  if (value.isList() || value.isTuple()) {
    std::vector<Argument> items;
    const auto add = [&](const c10::IValue& one) {
      if (auto number = numberArgument(one)) return items.push_back(*std::move(number));
      operands.push_back(one);
      items.push_back(Argument::ofOperand(std::ssize(operands) - 1));
    };
    if (value.isTuple()) std::ranges::for_each(value.toTupleRef().elements(), add);
    else std::ranges::for_each(value.toListRef(), add);
    return Argument::ofList(std::move(items));
  }
  operands.push_back(std::move(value));
  return Argument::ofOperand(std::ssize(operands) - 1);
}

c10::IValue GraphRunner::callOp(const std::string& target, const Expression& expression) {
  if (!lookupSymbol(target)) throw Error(ErrorCode::unknownOp, unknownOpMessage(std::string(opPrefix) + target));
  const auto op = requireOperator(target);
  const auto& wanted = op.schema().arguments();
  torch::jit::Stack stack;
  std::size_t positional = 1;
  for (const auto& parameter : wanted) {
    const Expression* given = nullptr;
    if (!parameter.kwarg_only() && positional < expression.items.size() &&
        !expression.items[positional].is(Kind::keyword))
      given = &expression.items[positional++];
    else given = expression.keyword(parameter.name());
    std::vector<c10::IValue> operands;
    if (given) stack.push_back(fitted(argument(*given, operands), parameter, operands));
    else if (parameter.default_value()) stack.push_back(*parameter.default_value());
    else badInput(target + " is called without '" + parameter.name() + "'");
  }
  if (positional < expression.items.size() && !expression.items[positional].is(Kind::keyword))
    badInput(target + " is called with too many arguments");
  for (std::size_t i = 1; i < expression.items.size(); ++i)
    if (const auto& one = expression.items[i];
        one.is(Kind::keyword) &&
        std::ranges::none_of(wanted, [&](const c10::Argument& a) { return a.name() == one.text; }))
      badInput(target + " has no argument '" + one.text + "'");
  op.callBoxed(stack);
  if (stack.size() == 1) return std::move(stack.front());
  return stack.empty() ? c10::IValue()
                       : c10::IValue(c10::ivalue::Tuple::create(std::vector<c10::IValue>(stack.begin(), stack.end())));
}

constexpr std::int64_t mostDrawn = std::int64_t{8} << 30;

/// Declares the graph's inputs and gives their values.
class InputMaker {
 public:
  InputMaker(ModelFile& file, ComputationRecorder& recorder, std::uint64_t seed)
      : file_(file), recorder_(recorder), generator_(at::detail::createCPUGenerator(seed)), seed_(seed) {}

  c10::IValue add(const ReproInput& input) {
    if (input.number) {
      recorder_.addNumber(input.name, *input.number);
      return input.number->integer;
    }
    InputSpec spec{.name = input.name, .requiresGrad = input.requiresGrad};
    if (input.data.data || input.data.bytes > 0 || input.meta.elements() == 0) {
      const auto tensor = input.meta.elements() == 0 ? drawTensor(input.meta, generator_) : borrowTensor(input.data);
      recorder_.addInput(std::move(spec), tensor, input.meta.elements() == 0 ? snapshot(tensor) : input.data, true);
      return tensor;
    }
    drawn_ += input.meta.storageBytes();
    if (drawn_ > mostDrawn)
      throw Error(ErrorCode::badUse, "has no data, and more than 8 GiB are not drawn", "argument " + input.name);
    auto tensor = drawTensor(input.meta, generator_);
    if (tensor.strides() != at::IntArrayRef(input.meta.strides))
      tensor = laidOut(tensor, input.meta.strides, input.meta.offset);
    withoutData_[input.source].push_back(input.name);
    recorder_.addInput(std::move(spec), tensor, snapshot(tensor), true);
    return tensor;
  }

  /// One note for all that were drawn for the same reason: a script of a large graph has hundreds.
  void noteDrawn() {
    constexpr std::size_t shown = 3;
    for (const auto& [source, names] : withoutData_) {
      auto place = fmt::format("argument{} {}", names.size() == 1 ? "" : "s",
                               fmt::join(names.begin(), names.begin() + std::min(shown, names.size()), ", "));
      if (names.size() > shown) place += fmt::format(" and {} more", names.size() - shown);
      file_.problems.push_back(
          {Problem::Severity::note, source + ": drawn from seed " + std::to_string(seed_), std::move(place), -1});
    }
  }

 private:
  ModelFile& file_;
  ComputationRecorder& recorder_;
  at::Generator generator_;
  std::uint64_t seed_;
  std::int64_t drawn_ = 0;
  std::map<std::string, std::vector<std::string>> withoutData_;
};

fx::Repro readScript(const std::string& path, ModelFile& file) {
  const auto bytes = mapFile(path);
  const ReadingScope scope(bytes.size);
  file.identity = identityOf(bytes);
  return readUnchanged(bytes.data, [&] { return fx::readRepro(bytes.text(), path); });
}

}  // namespace

ModelFile readReproModel(const std::string& path, std::uint64_t seed, const Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  ModelFile file{.path = path, .document = std::make_shared<Document>()};
  const auto repro = readScript(path, file);
  file.torchVersion = repro.torchVersion;
  const auto arguments = readReproInputs(repro, path);
  ComputationRecorder recorder(file, {}, progress);
  InputMaker maker(file, recorder, seed);
  std::vector<c10::IValue> inputs;
  for (const auto& argument : arguments) inputs.push_back(maker.add(argument));
  maker.noteDrawn();
  const KeepGenerator keep(seed);
  at::AutoGradMode noGrad(false);
  const auto graph = fx::withoutPrims(repro.graph).graph;
  GraphRunner runner(graph, recorder, *file.document, path);
  std::vector<c10::IValue> outputs;
  {
    const AboveAutograd observed(recorder);
    outputs = runner.run(std::move(inputs), progress);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) recorder.addOutput(outputs[i], std::to_string(i));
  if (runner.movedDevices())
    file.problems.push_back(
        {Problem::Severity::note, "the graph was compiled for another device; here it runs on the CPU", path, -1});
  file.traced = false;  // the graph is the program: other values may flow in
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  recorder.finish("repro", repro.graph.className, seconds);
  file.seconds = seconds;
  return file;
}

}  // namespace retrograd
