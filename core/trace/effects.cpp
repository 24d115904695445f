#include "core/trace/effects.h"

#include <algorithm>
#include <array>

#include "core/trace/op_traits.h"

namespace retrograd {
namespace {

/// An op that writes arguments which its schema does not mark. Arguments go by the names that the schema gives them.
struct SilentWrite {
  std::string_view op;  ///< without overload
  std::array<std::string_view, 2> written;
  std::string_view flag;  ///< it writes while this argument is true; empty: always
};
constexpr std::array<SilentWrite, 7> silentWrites{{
    {"aten.batch_norm", {"running_mean", "running_var"}, "training"},
    {"aten.native_batch_norm", {"running_mean", "running_var"}, "training"},
    {"aten.cudnn_batch_norm", {"running_mean", "running_var"}, "training"},
    {"aten.miopen_batch_norm", {"running_mean", "running_var"}, "training"},
    {"aten._batch_norm_impl_index", {"running_mean", "running_var"}, "training"},
    {"aten.instance_norm", {"running_mean", "running_var"}, "use_input_stats"},
    {"aten.batch_norm_gather_stats", {"running_mean", "running_var"}, ""},
}};

const SilentWrite* findSilentWrite(std::string_view name) {
  const auto base = name.substr(0, name.rfind('.'));
  for (const auto& entry : silentWrites)
    if (entry.op == base) return &entry;
  return nullptr;
}

const Argument* argumentNamed(const Symbol& symbol, std::span<const Argument> arguments, std::string_view name) {
  const int i = name.empty() ? -1 : symbol.argumentIndex(name);
  if (i < 0 || i >= std::ssize(arguments)) return nullptr;
  const auto& given = arguments[i];
  const auto& usual = symbol.arguments[i].defaultValue;
  return given.kind == Argument::Kind::missing && usual ? &*usual : &given;
}

/// A flag that is not a literal is neither false nor zero.
bool isFalse(const Argument* a) { return a && a->kind == Argument::Kind::boolean && a->integer == 0; }
bool isZero(const Argument* a) { return a && a->isNumber() && a->asDouble() == 0; }

bool drawsNothing(const Symbol& symbol, std::span<const Argument> arguments) {
  if (isFalse(argumentNamed(symbol, arguments, "train")) || isFalse(argumentNamed(symbol, arguments, "training")))
    return true;
  if (isZero(argumentNamed(symbol, arguments, "dropout_p")) || isZero(argumentNamed(symbol, arguments, "dropout")))
    return true;
  if (symbol.argumentIndex("philox_seed") >= 0) return true;  // it repeats what its forward drew
  return symbol.name.find("dropout") != std::string::npos && isZero(argumentNamed(symbol, arguments, "p"));
}

bool mayDoAnything(const Symbol& symbol) {
  const auto& n = symbol.name;
  return !symbol.known || n.starts_with("pippy.") || hasTrait(n, OpTrait::check) || hasTrait(n, OpTrait::prints) ||
         hasTrait(n, OpTrait::ordersEffects);
}

bool bodyWrites(const Document& document, const Subgraph& body);

bool subgraphsWrite(const Document& document, const Argument& argument) {
  if (argument.kind == Argument::Kind::subgraph)
    return bodyWrites(document, document.subgraph(SubgraphId(argument.integer)));
  for (const auto& item : argument.items)
    if (subgraphsWrite(document, item)) return true;
  return false;
}

bool bodyWrites(const Document& document, const Subgraph& body) {
  for (auto op : body.ops)
    if (!writtenOperands(document, op).empty()) return true;
  return false;
}

std::vector<ValueId> tensorOperands(const Document& document, BoundSymbolId op) {
  std::vector<ValueId> found;
  for (auto value : document.operands(op))
    if (value && document.isTensor(value)) found.push_back(value);
  return found;
}

/// `index.Tensor` and its kin are tagged as needing data, but only a boolean index makes the shape depend on it.
bool indexesByMask(const Document& document, std::span<const ValueId> operands) {
  return std::any_of(operands.begin() + (operands.empty() ? 0 : 1), operands.end(), [&](ValueId operand) {
    if (!operand || !document.isTensor(operand)) return false;
    const auto dtype = document.meta(operand).dtype;
    return dtype == DType::b8 || dtype == DType::u8;
  });
}

std::uint8_t effectsOfBody(const Document& document, const Argument& argument) {
  std::uint8_t effects = 0;
  forEachBody(argument, [&](SubgraphId body) {
    for (auto op : document.subgraph(body).ops) effects |= document.boundSymbol(op).effects;
  });
  return effects;
}

}  // namespace

std::vector<std::size_t> writtenArguments(const Symbol& symbol, std::span<const Argument> arguments) {
  std::vector<std::size_t> written;
  const auto add = [&](std::size_t i) {  // an absent optional has nothing to write to
    if (i < arguments.size() && arguments[i].kind != Argument::Kind::none &&
        arguments[i].kind != Argument::Kind::missing)
      written.push_back(i);
  };
  if (symbol.isMutable)
    for (std::size_t i = 0; i < symbol.arguments.size(); ++i)
      if (symbol.arguments[i].isWrite) add(i);
  if (const auto* silent = findSilentWrite(symbol.name);
      silent && !isFalse(argumentNamed(symbol, arguments, silent->flag)))
    for (auto argument : silent->written)
      if (const int i = symbol.argumentIndex(argument); i >= 0) add(i);
  return written;
}

std::uint8_t effectsOf(const Symbol& symbol, std::span<const Argument> arguments) {
  std::uint8_t effects = 0;
  if (!writtenArguments(symbol, arguments).empty()) effects |= effect::writes;
  if (symbol.isRandom && !drawsNothing(symbol, arguments)) effects |= effect::random;
  if (symbol.isView) effects |= effect::view;
  if (symbol.needsData) effects |= effect::needsData;
  if (mayDoAnything(symbol)) effects |= effect::opaque;
  return effects;
}

std::uint8_t effectsInComputation(const Document& document, const Symbol& symbol, const CallPattern& pattern,
                                  std::span<const ValueId> operands) {
  auto effects = effectsOf(symbol, pattern.arguments);
  if ((effects & effect::needsData) && symbol.name.starts_with("aten.index") && !indexesByMask(document, operands))
    effects &= static_cast<std::uint8_t>(~effect::needsData);
  if (!symbol.isHigherOrder) return effects;
  if (hasTrait(symbol.name, OpTrait::dataDecides)) effects |= effect::needsData;
  for (const auto& argument : pattern.arguments)
    effects |= effectsOfBody(document, argument) & static_cast<std::uint8_t>(~effect::view);
  return effects;
}

std::vector<ValueId> writtenOperands(const Document& document, BoundSymbolId op) {
  const auto& bound = document.boundSymbol(op);
  const auto& symbol = document.symbol(bound.symbol);
  const auto& pattern = document.pattern(bound.pattern);
  if (symbol.isHigherOrder) {
    for (const auto& argument : pattern.arguments)
      if (subgraphsWrite(document, argument)) return tensorOperands(document, op);
    return {};
  }
  std::vector<ValueId> written;
  const auto operands = document.operands(op);
  for (auto i : writtenArguments(symbol, pattern.arguments)) {
    if (i >= pattern.arguments.size()) continue;
    forEachOperand(pattern.arguments[i], [&](std::size_t hole) {
      if (hole < operands.size() && operands[hole]) written.push_back(operands[hole]);
    });
  }
  return written;
}

bool hasSideEffect(const Document& document, BoundSymbolId op) {
  constexpr auto seen = effect::writes | effect::random | effect::opaque;
  return (document.boundSymbol(op).effects & seen) != 0 || !writtenOperands(document, op).empty();
}

}  // namespace retrograd
