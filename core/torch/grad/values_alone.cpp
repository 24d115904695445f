#include "core/torch/grad/values_alone.h"

#include <algorithm>
#include <array>

namespace retrograd {
namespace {

/// A decomposition, which argument says whether it computes vectors, and which of its results are these.
struct Decomposition {
  std::string_view name;
  std::size_t argument;
  std::array<std::size_t, 2> vectors;
};
constexpr std::array<Decomposition, 2> decompositions{{{"aten._linalg_svd.default", 2, {0, 2}}, {"aten._linalg_eigh.default", 2, {1, 1}}}};

bool isRead(const Rule& rule, std::int32_t local) {
  return std::find(rule.outputs.begin(), rule.outputs.end(), local) != rule.outputs.end() ||
         std::any_of(rule.forward.begin(), rule.forward.end(),
                     [&](const RuleOp& op) { return std::find(op.operands.begin(), op.operands.end(), local) != op.operands.end(); });
}

void makeEmpty(Document& document, RuleLocal& local) {
  TensorMeta meta = document.meta(local.meta);
  meta.sizes = {0};
  meta.strides = {1};
  local.meta = document.internMeta(meta);
  local.storageBytes = 0;
}

}  // namespace

void leaveVectorsOut(Document& document, std::string_view op, Rule& rule) {
  if (rule.anyRequiresGrad) return;
  for (auto& inner : rule.forward) {
    const std::string name = document.symbol(inner.symbol).name;
    const auto known = std::find_if(decompositions.begin(), decompositions.end(), [&](const Decomposition& d) { return d.name == name; });
    if (known == decompositions.end() || name == op) continue;
    if (std::any_of(known->vectors.begin(), known->vectors.end(), [&](std::size_t i) { return isRead(rule, inner.outputs[i]); })) continue;
    auto pattern = document.pattern(inner.pattern);
    while (pattern.arguments.size() <= known->argument) pattern.arguments.push_back(Argument::ofMissing());
    pattern.arguments[known->argument] = Argument::ofBool(false);
    inner.pattern = document.internPattern(pattern);
    for (auto i : known->vectors) makeEmpty(document, rule.locals[static_cast<std::size_t>(inner.outputs[i])]);
  }
}

}  // namespace retrograd
