// Calls: the op, its arguments, arithmetic of sizes.
#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "core/base/error.h"
#include "core/base/memory_account.h"
#include "core/formats/model/graph_ops.h"
#include "core/formats/model/schema_arguments.h"
#include "core/formats/text/text_reader.h"
#include "core/sizes/number.h"
#include "core/sizes/size_expression.h"
#include "core/trace/python_text.h"

namespace retrograd::text {
namespace {

using Kind = Expression::Kind;

constexpr std::string_view opsPrefix = "torch.ops.";

std::string shown(const Source& source, const Expression& expression) {
  constexpr std::size_t longest = 60;
  const auto text = oneLine(written(source, expression));
  return "'" + (text.size() <= longest ? text : text.substr(0, longest) + "...") + "'";
}

/// Max(1, s0): a function on sizes, as torch.export and the printer write them.
bool isSizeFunction(const Source& source, const Expression& call) {
  const auto name = nameIn(source, call.items.front());
  return name != "float" && name != "complex" && name.find('.') == std::string::npos &&
         SizeExpression::parse(written(source, call)).has_value();
}

const std::map<std::string_view, const NumberFunction*>& sizeOperators() {
  static const std::map<std::string_view, const NumberFunction*> operators{
      {"+", findNumberFunction("_operator.add")},
      {"-", findNumberFunction("_operator.sub")},
      {"*", findNumberFunction("_operator.mul")},
      {"//", findNumberFunction("_operator.floordiv")},
      {"%", findNumberFunction("_operator.mod")}};
  return operators;
}

bool isSizeOperator(std::string_view sign) { return sizeOperators().contains(sign); }

/// Python's operator of this sign on integers; nullopt where the result exceeds 64 bits.
std::optional<std::int64_t> evaluateOperator(std::string_view sign, std::int64_t left, std::int64_t right) {
  try {
    return sizeOperators().at(sign)->evaluate(std::array{Number::ofInt(left), Number::ofInt(right)}).integer;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

/// The op a call names. "aten.relu.default" and "torch.ops.aten.relu" are taken too, where there is such an op.
Symbol TextReader::resolve(const Expression& callee) {
  std::string path(nameIn(source_, callee));
  for (std::string_view space : {"aten.", "prims.", "higher_order."})
    if (path.starts_with(space)) path.insert(0, opsPrefix);
  if (path.find('.') == std::string::npos)
    fail(source_, callee.place, "expected an op such as torch.ops.aten.sin.default, found " + shown(source_, callee));
  auto symbol = resolveCall(path, lookup_);
  if (!symbol.known && lacksOverload(path) && resolveSymbol(path + ".Tensor", lookup_).known)
    fail(source_, callee.place,
         "expected the op with its overload, such as " + path + ".Tensor, found " + shown(source_, callee));
  if (!symbol.known && path.starts_with("torch.") && !path.starts_with(opsPrefix)) {
    const auto meant = "torch.ops.aten" + path.substr(path.rfind('.')) + ".default";
    if (resolveSymbol(meant, lookup_).known)
      fail(source_, callee.place,
           "expected an op by its full name, such as " + meant + ", found " + shown(source_, callee));
  }
  return symbol;
}

TextReader::Call TextReader::readCall(const Expression& expression, const Scope& scope) {
  const auto& callee = expression.items.front();
  if (!callee.is(Kind::path)) fail(source_, callee.place, "expected an op such as torch.ops.aten.sin.default");
  checkArguments(expression);
  Call call;
  auto [known, isNew] = symbols_.try_emplace(written(source_, callee));
  if (isNew) known->second = document_.internSymbol(resolve(callee));
  call.symbol = known->second;
  readArguments(expression, scope, call);
  constexpr std::size_t limit = 65535;
  if (call.operands.size() > limit) fail(source_, expression.place, "expected at most 65535 operands");
  call.pattern.operandCount = static_cast<std::int32_t>(call.operands.size());
  return call;
}

/// Arguments by position, then those by name, each once.
void TextReader::checkArguments(const Expression& call) const {
  std::vector<std::string_view> names;
  for (std::size_t i = 1; i < call.items.size(); ++i) {
    const auto& item = call.items[i];
    if (!item.is(Kind::keyword)) {
      if (!names.empty()) fail(source_, item.place, "expected a named argument, as all after the first named one are");
      continue;
    }
    if (std::find(names.begin(), names.end(), item.text) != names.end())
      fail(source_, item.place, "expected '" + item.text + "' to be given once");
    names.emplace_back(item.text);
  }
}

void TextReader::readArguments(const Expression& expression, const Scope& scope, Call& call) {
  const auto& items = expression.items;
  const auto valueOf = [&](std::size_t i) -> const Expression& {
    return items[i + 1].is(Kind::keyword) ? items[i + 1].items[0] : items[i + 1];
  };
  std::vector<GivenArgument> given;
  given.reserve(items.size() - 1);
  for (std::size_t i = 0; i + 1 < items.size(); ++i) {
    const auto name = items[i + 1].is(Kind::keyword) ? std::string_view(items[i + 1].text) : std::string_view();
    given.push_back({name, argument(valueOf(i), scope, call)});
  }
  try {
    builder_.setArguments(call, std::move(given), [&](std::size_t i) { return shown(source_, valueOf(i)); });
  } catch (const MisfitArgument& e) {
    fail(source_, e.position == MisfitArgument::npos ? expression.place : valueOf(e.position).place, e.message());
  }
}

Argument TextReader::hole(ValueId value, Call& call) {
  call.operands.push_back(value);
  return Argument::ofOperand(std::ssize(call.operands) - 1);
}

Argument TextReader::argument(const Expression& expression, const Scope& scope, Call& call) {
  if (const auto name = nameIn(source_, expression); !name.empty()) return nameArgument(expression, name, scope, call);
  switch (expression.kind) {
    case Kind::none: return Argument::ofNone();
    case Kind::boolean: return Argument::ofBool(expression.integer != 0);
    case Kind::integer: return Argument::ofInt(expression.integer);
    case Kind::bigInteger: fail(source_, expression.place, "expected an integer of 64 bits");
    case Kind::real: return Argument::ofReal(expression.real);
    case Kind::complex: return Argument::ofComplex(expression.real, expression.imaginary);
    case Kind::string: return Argument::ofString(expression.text);
    case Kind::call:
      return isSizeFunction(source_, expression) ? sizeArgument(expression, scope) : callArgument(expression);
    case Kind::unary:
      if (expression.text == "-" && expression.items[0].is(Kind::call)) {
        const auto number = argument(expression.items[0], scope, call);
        if (number.kind == Argument::Kind::real) return Argument::ofReal(-number.real);
      }
      return sizeArgument(expression, scope);
    case Kind::binary:
      return expression.text == "/" ? quotientArgument(expression, scope) : sizeArgument(expression, scope);
    case Kind::list:
    case Kind::tuple: {
      std::vector<Argument> items;
      items.reserve(expression.items.size());
      chargeReading(2 * expression.items.size() * sizeof(Argument));  // here and in the pattern that it becomes part of
      for (const auto& item : expression.items) items.push_back(argument(item, scope, call));
      return Argument::ofList(std::move(items));
    }
    default: fail(source_, expression.place, "expected a value, found " + shown(source_, expression));
  }
}

Argument TextReader::nameArgument(const Expression& expression, std::string_view name, const Scope& scope, Call& call) {
  if (name.find('.') != std::string::npos) {
    if (auto constant = namedConstant(name)) return *std::move(constant);
    fail(source_, expression.place,
         "expected a dtype, layout or memory format such as torch.float32, found " + shown(source_, expression));
  }
  if (scopeSize(name, scope)) return sizeArgument(expression, scope);
  if (const auto value = find(name, scope)) return hole(value, call);
  for (const auto* s = &scope; s; s = s->outer)
    if (const auto body = s->bodies.find(name); body != s->bodies.end()) return bodyArgument(body->second, call);
  if (sizeNamed(name, scope)) return sizeArgument(expression, scope);
  fail(source_, expression.place, "expected a value that is defined above, found " + shown(source_, expression));
}

/// float('inf'), complex(1.0, 2.0), torch.device("cuda:0")
Argument TextReader::callArgument(const Expression& expression) const {
  const auto& items = expression.items;
  const auto& callee = items[0];
  const auto number = [&](const Expression& item) {
    const bool isNegative = item.is(Kind::unary) && item.text == "-";
    const auto& inner = isNegative ? item.items[0] : item;
    double value = inner.is(Kind::integer) ? static_cast<double>(inner.integer) : inner.real;
    if (inner.is(Kind::call)) value = callArgument(inner).real;
    else if (!inner.is(Kind::integer) && !inner.is(Kind::real))
      fail(source_, item.place, "expected a number, found " + shown(source_, item));
    return isNegative ? -value : value;
  };
  if (callee.isPath("float") && items.size() == 2 && items[1].is(Kind::string)) {
    const auto& text = items[1].text;
    if (text == "nan") return Argument::ofReal(std::numeric_limits<double>::quiet_NaN());
    if (text == "inf" || text == "-inf")
      return Argument::ofReal((text[0] == '-' ? -1 : 1) * std::numeric_limits<double>::infinity());
  }
  if (callee.isPath("complex") && items.size() == 3) return Argument::ofComplex(number(items[1]), number(items[2]));
  if (callee.isPath("torch.device") && items.size() == 2 && items[1].is(Kind::string))
    return Argument::ofDevice(items[1].text);
  fail(source_, expression.place,
       "expected a value, found " + shown(source_, expression) +
           "; an op has a line of its own, and calls inside are float('inf'), float('nan'), complex(a, b) and "
           "torch.device(\"cpu\")");
}

/// A function that was defined above becomes a body of this op; its statements are read when the op itself is in
/// the document.
Argument TextReader::bodyArgument(const std::shared_ptr<const Function>& function, Call& call) {
  if (!document_.symbol(call.symbol).isHigherOrder)
    fail(source_, function->place, "expected a higher-order op to take the function '" + function->name + "'");
  const auto isTaken = [&](const std::string& name) {
    return std::any_of(call.bodies.begin(), call.bodies.end(),
                       [&](const PendingBody& body) { return document_.subgraph(body.id).name == name; });
  };
  Subgraph body;
  body.name = function->name;
  for (int suffix = 1; isTaken(body.name); ++suffix) body.name = function->name + "_" + std::to_string(suffix);
  const auto id = document_.addSubgraph(std::move(body));
  call.bodies.push_back({id, function});
  return Argument::ofSubgraph(id);
}

const std::int64_t* TextReader::scopeSize(std::string_view name, const Scope& scope) const {
  for (const auto* s = &scope; s; s = s->outer)
    if (const auto size = s->sizes.find(name); size != s->sizes.end()) return &size->second;
  return nullptr;
}

/// The hint of a symbolic size: declared in the head, or met in a type ("f32[s0=4]").
const std::int64_t* TextReader::sizeNamed(std::string_view name, const Scope& scope) const {
  if (const auto* declared = scopeSize(name, scope)) return declared;
  const auto met = metSizes_.find(name);
  return met == metSizes_.end() ? nullptr : &met->second;
}

std::int64_t TextReader::evaluate(const Expression& expression, const Scope& scope, bool& isSymbolic) const {
  const auto checked = [&](std::optional<std::int64_t> result) {
    if (!result) fail(source_, expression.place, "expected a size of 64 bits");
    return *result;
  };
  switch (expression.kind) {
    case Kind::integer: return expression.integer;
    case Kind::path:
      if (const auto* size = sizeNamed(written(source_, expression), scope)) return isSymbolic = true, *size;
      fail(source_, expression.place,
           "expected a number or a symbolic size, such as one that '# s0: 4, symbolic size' declares, found " +
               shown(source_, expression));
    case Kind::unary:
      if (expression.text == "-")
        return checked(evaluateOperator("-", 0, evaluate(expression.items[0], scope, isSymbolic)));
      fail(source_, expression.place, "expected an integer, found " + shown(source_, expression));
    case Kind::call:
      if (isSizeFunction(source_, expression)) return evaluateFunction(expression, scope, isSymbolic);
      fail(source_, expression.place, "expected an integer, found " + shown(source_, expression));
    case Kind::binary:
      if (isSizeOperator(expression.text)) break;
      [[fallthrough]];
    default: fail(source_, expression.place, "expected an integer, found " + shown(source_, expression));
  }
  const auto left = evaluate(expression.items[0], scope, isSymbolic),
             right = evaluate(expression.items[1], scope, isSymbolic);
  const auto& sign = expression.text;
  if ((sign == "//" || sign == "%") && right == 0)
    fail(source_, expression.items[1].place, "expected a divisor other than 0");
  return checked(evaluateOperator(sign, left, right));
}

std::int64_t TextReader::evaluateFunction(const Expression& call, const Scope& scope, bool& isSymbolic) const {
  const auto function = SizeExpression::parse(written(source_, call));
  SizeBindings sizes;
  for (const auto& symbol : function->symbols())
    if (const auto* size = sizeNamed(symbol, scope)) sizes[symbol] = *size;
    else fail(source_, call.place, "expected a symbolic size instead of '" + symbol + "'");
  const auto result = function->evaluate(sizes);
  if (!result) fail(source_, call.place, "expected an integer, found " + shown(source_, call));
  isSymbolic |= !sizes.empty();
  return *result;
}

/// 2/(s0 - 1): a real number, such as the factor of a mean's gradient.
Argument TextReader::quotientArgument(const Expression& expression, const Scope& scope) const {
  bool isSymbolic = false;
  const auto side = [&](const Expression& operand) {
    return operand.is(Kind::real) ? operand.real : static_cast<double>(evaluate(operand, scope, isSymbolic));
  };
  const double left = side(expression.items[0]), right = side(expression.items[1]);
  if (right == 0) fail(source_, expression.items[1].place, "expected a divisor other than 0");
  auto result = Argument::ofReal(left / right);
  if (isSymbolic) result.text = oneLine(written(source_, expression));
  return result;
}

/// An integer; with its text where symbolic sizes are part of it.
Argument TextReader::sizeArgument(const Expression& expression, const Scope& scope) const {
  bool isSymbolic = false;
  auto result = Argument::ofInt(evaluate(expression, scope, isSymbolic));
  if (isSymbolic) result.text = oneLine(written(source_, expression));
  return result;
}

}  // namespace retrograd::text
