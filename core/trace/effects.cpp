#include "core/trace/effects.h"

#include <array>
#include <string_view>

#include "core/trace/document.h"

namespace retrograd {
namespace {

/// Ops that write their running statistics when (and only when) a flag is set, whatever their schema says.
struct StatisticsWriter {
  std::string_view name, flag;
};
constexpr std::array<StatisticsWriter, 8> statisticsWriters{{
    {"aten.batch_norm.default", "training"},
    {"aten.native_batch_norm.default", "training"},
    {"aten._native_batch_norm_legit.default", "training"},
    {"aten._batch_norm_impl_index.default", "training"},
    {"aten.cudnn_batch_norm.default", "training"},
    {"aten.miopen_batch_norm.default", "training"},
    {"aten.instance_norm.default", "use_input_stats"},
    {"aten.sync_batch_norm.default", "training"},
}};

const Argument* argumentNamed(const Symbol& symbol, std::span<const Argument> arguments, std::string_view name) {
  const int i = symbol.argumentIndex(name);
  if (i < 0 || static_cast<std::size_t>(i) >= arguments.size()) return nullptr;
  const auto& given = arguments[static_cast<std::size_t>(i)];
  const auto& usual = symbol.arguments[static_cast<std::size_t>(i)].defaultValue;
  return given.kind == Argument::Kind::missing && usual ? &*usual : &given;
}

bool isFalse(const Argument* a) { return a && a->kind == Argument::Kind::boolean && a->integer == 0; }
bool isZero(const Argument* a) { return a && a->isNumber() && a->asDouble() == 0; }

bool drawsNothing(const Symbol& symbol, std::span<const Argument> arguments) {
  if (isFalse(argumentNamed(symbol, arguments, "train")) || isFalse(argumentNamed(symbol, arguments, "training"))) return true;
  if (isZero(argumentNamed(symbol, arguments, "dropout_p")) || isZero(argumentNamed(symbol, arguments, "dropout"))) return true;
  return symbol.name.find("dropout") != std::string::npos && isZero(argumentNamed(symbol, arguments, "p"));
}

bool isOpaque(const Symbol& symbol) {
  const auto& n = symbol.name;
  return !symbol.known || n.starts_with("pippy.") || n.starts_with("aten._assert") || n.starts_with("aten.sym_constrain") ||
         n.starts_with("aten._print") || n == "higher_order.with_effects";
}

}  // namespace

std::vector<int> writtenArguments(const Symbol& symbol, std::span<const Argument> arguments) {
  std::vector<int> written;
  for (const auto& writer : statisticsWriters) {
    if (symbol.name != writer.name) continue;
    if (isFalse(argumentNamed(symbol, arguments, writer.flag))) return written;
    for (auto name : {"running_mean", "running_var"}) {
      const int i = symbol.argumentIndex(name);
      const auto* a = argumentNamed(symbol, arguments, name);
      if (a && a->kind == Argument::Kind::operand) written.push_back(i);
    }
    return written;
  }
  if (!symbol.isMutable) return written;
  for (std::size_t i = 0; i < symbol.arguments.size(); ++i)
    if (symbol.arguments[i].isWrite) written.push_back(static_cast<int>(i));
  return written;
}

std::uint8_t effectsOf(const Symbol& symbol, std::span<const Argument> arguments) {
  std::uint8_t effects = 0;
  if (!writtenArguments(symbol, arguments).empty()) effects |= effect::writes;
  if (symbol.isRandom && !drawsNothing(symbol, arguments)) effects |= effect::random;
  if (symbol.isView) effects |= effect::view;
  if (symbol.needsData) effects |= effect::needsData;
  if (isOpaque(symbol)) effects |= effect::opaque;
  return effects;
}

}  // namespace retrograd
