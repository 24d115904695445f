#include "core/torch/analysis/opaque_results.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/user_choice.h"
#include "core/torch/analysis/inputs.h"

namespace retrograd {

std::map<ValueId, TensorData> filledResults(const Analysis& analysis, const Document& document) {
  std::map<ValueId, TensorData> filled;
  if (analysis.request.filled.empty()) return filled;
  std::map<std::string, ValueId> results;
  for (auto op : document.boundSymbolIds()) {
    if (!isOpaque(document, op) || document.boundSymbol(op).origin.role != Role::none) continue;
    for (auto output : document.outputs(op))
      if (output && document.isTensor(output)) results.emplace(document.displayName(output), output);
  }
  for (const auto& [name, tensor] : analysis.request.filled) {
    const auto found = results.find(name);
    if (found == results.end()) {
      std::string known;
      for (const auto& [result, id] : results) known += (known.empty() ? "" : ", ") + result;
      throw Error(ErrorCode::badUse,
                  known.empty() ? "the model has no opaque op whose result could be filled in"
                                : "no opaque op has this result; they have " + known,
                  "fill " + name);
    }
    filled.emplace(found->second, fittedInput(tensor, document.meta(found->second), "fill " + name));
  }
  return filled;
}

void noteOpaqueOps(Analysis& analysis) {
  const auto& document = *analysis.file.document;
  const auto& ops = analysis.joint.ops;
  if (std::ranges::none_of(ops, [&](BoundSymbolId op) { return isOpaque(document, op); })) return;
  analysis.leftOut = std::make_shared<LeftOut>(leftOutOf(document, ops, filledResults(analysis, document)));
  std::map<BoundSymbolId, std::vector<std::string>> refused;
  for (const auto& [input, op] : analysis.refusedGradients)
    refused[op].push_back(analysis.computation().inputs[input].name);
  for (const auto& [op, names] : refused) {
    std::string some;
    for (std::size_t i = 0; i < names.size() && i < 5; ++i) some += (i ? ", " : "") + names[i];
    if (names.size() > 5) some += ", ...";
    analysis.problems.push_back(
        {Problem::Severity::warning,
         fmt::format("{} gradient{} would pass through this opaque op and {} left out: {}", names.size(),
                     names.size() == 1 ? "" : "s", names.size() == 1 ? "is" : "are", some),
         document.opName(op), op.index});
  }
  const auto skipped = std::ranges::count_if(
      ops, [&](BoundSymbolId op) { return analysis.leftOut->isLeftOut(op) && !isOpaque(document, op); });
  if (skipped > 0)
    analysis.problems.push_back({Problem::Severity::warning,
                                 fmt::format("{} of {} ops depend on results of opaque ops and do not run; fill these "
                                             "in from a safetensors file with {}",
                                             skipped, ops.size(), nameOf(UserChoice::fill)),
                                 opaqueOpsText(document, ops), -1});
  for (auto op : ops)
    if (isOpaque(document, op) && mayWriteUnseen(document, op)) {
      analysis.problems.push_back(
          {Problem::Severity::warning,
           "this opaque op may write to its operands: what reads their memory afterwards is left out",
           document.opName(op), op.index});
      break;
    }
}

}  // namespace retrograd
