#include "core/torch/experiments/what_if.h"

#include <algorithm>

#include "core/questions/memory_timeline.h"
#include "core/questions/why.h"
#include "core/split/op_cost.h"
#include "core/torch/analysis/analyse.h"

namespace retrograd {
namespace {

PartitionFigures figuresOf(const Analysis& analysis) {
  PartitionFigures figures{.savedBytes = savedValues(analysis).bytes, .peakBytes = memoryTimeline(analysis).peakBytes};
  for (auto op : analysis.joint.ops) figures.recomputedOps += analysis.document->boundSymbol(op).recomputed;
  return figures;
}

/// Seconds of the ops that run again, by how long their originals took: those of the same computation op, symbol and
/// literals.
class Times {
 public:
  Times(const Analysis& analysis, const std::vector<OpMeasure>& measures) {
    double seconds = 0, moved = 0;
    for (std::size_t i = 0; i < analysis.joint.ops.size(); ++i) {
      const auto op = analysis.joint.ops[i];
      const double took = i < measures.size() ? measures[i].seconds : 0;
      if (took <= 0) continue;
      byKind_[kind(*analysis.document, op)] = took;
      seconds += took;
      moved += static_cast<double>(opCost(*analysis.document, op));
    }
    if (moved > 0) perByte_ = seconds / moved;
  }

  /// Of the ops marked as recomputed; `known` becomes false where one of them has not run.
  double recomputed(const Analysis& analysis, bool& known) const {
    double sum = 0;
    for (auto op : analysis.joint.ops) {
      if (!analysis.document->boundSymbol(op).recomputed) continue;
      const auto took = byKind_.find(kind(*analysis.document, op));
      known &= took != byKind_.end();
      sum += took != byKind_.end() ? took->second : perByte_ * static_cast<double>(opCost(*analysis.document, op));
    }
    return sum;
  }

 private:
  static std::string kind(const Document& document, BoundSymbolId op) {
    const auto& bound = document.boundSymbol(op);
    std::string text = document.opName(op) + "/" + std::to_string(bound.origin.op.index);
    for (auto operand : document.operands(op))
      if (const auto meta = document.value(operand).meta) text += "/" + typeComment(document.meta(meta));
    return text;
  }

  std::map<std::string, double> byKind_;
  double perByte_ = 1.0 / 5e9;  // until something has run: a core that moves 5 GB/s
};

}  // namespace

WhatIf whatIf(const Analysis& analysis, const PartitionOptions& partition, const std::vector<OpMeasure>& measures,
              const Progress& progress) {
  auto request = requestOf(analysis);
  request.partition = partition;
  WhatIf result{.analysis = deriveAgain(analysis, request, nullptr, progress)};
  if (!result.analysis->derived())
    throw Error(ErrorCode::internal, "the model cannot be derived again", analysis.file.path);
  result.before = figuresOf(analysis);
  result.after = figuresOf(*result.analysis);
  const Times times(analysis, measures);
  bool known = !measures.empty();
  const auto before = times.recomputed(analysis, known), after = times.recomputed(*result.analysis, known);
  result.extraSeconds = after - before;
  result.measured = known;
  return result;
}

std::vector<BudgetFigures> figuresAtBudgets(int count,
                                            const std::function<PartitionFigures(const PartitionOptions&)>& split) {
  if (count <= 0) return {};
  const auto at = [&](PartitionOptions::Kind kind, std::optional<std::int64_t> budget) {
    return split({.kind = kind, .budget = budget});
  };
  const auto most = at(PartitionOptions::defaultKind, {}).savedBytes,
             least = at(PartitionOptions::minCut, {}).savedBytes;
  std::vector<BudgetFigures> figures;
  for (int i = 0, steps = std::max(count - 1, 1); i < count; ++i) {
    const auto budget = least + (most - least) * i / steps;
    figures.push_back({budget, at(PartitionOptions::minCut, budget)});
  }
  return figures;
}

}  // namespace retrograd
