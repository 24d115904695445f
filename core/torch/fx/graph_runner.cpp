#include "core/torch/fx/graph_runner.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/formats/model/graph_ops.h"
#include "core/formats/model/schema_arguments.h"
#include "core/torch/tracing/convert.h"
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

bool isNumber(const c10::IValue& value) {
  return value.isInt() || value.isDouble() || value.isBool() || value.isComplexDouble();
}

Argument numberOf(const c10::IValue& value) {
  if (value.isBool()) return Argument::ofBool(value.toBool());
  if (value.isInt()) return Argument::ofInt(value.toInt());
  if (value.isDouble()) return Argument::ofReal(value.toDouble());
  const auto z = value.toComplexDouble();
  return Argument::ofComplex(z.real(), z.imag());
}

/// An argument that the schema's type decides on: lists of tensors, numbers and the like come as values of the graph or
/// as literals.
c10::IValue fitted(Argument argument, const c10::Argument& wanted, const std::vector<c10::IValue>& operands) {
  const auto type = parseSchemaType(wanted.type()->str());
  conform(argument, type, argument.isNumber(), wanted.name());
  return toIValue(argument, wanted.type(), [&](std::size_t hole) { return operands.at(hole); });
}

}  // namespace

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
  if (isNumber(value)) return numberOf(value);
  if (value.isList() || value.isTuple()) {
    std::vector<Argument> items;
    const auto add = [&](const c10::IValue& one) {
      if (isNumber(one)) return items.push_back(numberOf(one));
      operands.push_back(one);
      items.push_back(Argument::ofOperand(std::ssize(operands) - 1));
    };
    if (value.isTuple()) std::for_each(value.toTupleRef().elements().begin(), value.toTupleRef().elements().end(), add);
    else std::for_each(value.toListRef().begin(), value.toListRef().end(), add);
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
        std::none_of(wanted.begin(), wanted.end(), [&](const c10::Argument& a) { return a.name() == one.text; }))
      badInput(target + " has no argument '" + one.text + "'");
  op.callBoxed(stack);
  if (stack.size() == 1) return std::move(stack.front());
  return stack.empty() ? c10::IValue()
                       : c10::IValue(c10::ivalue::Tuple::create(std::vector<c10::IValue>(stack.begin(), stack.end())));
}

}  // namespace retrograd
