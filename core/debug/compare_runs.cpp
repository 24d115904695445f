#include "core/debug/compare_runs.h"

#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "core/debug/nan_walk.h"
#include "core/tracing/convert.h"

namespace retrograd {
namespace {

using Key = std::tuple<std::string, Role, int, int, int>;  // computation op, role, operand, output, which of several

/// The joint's ops by what they are, not by their ids.
class Keys {
 public:
  explicit Keys(const Analysis& analysis) {
    const auto& document = *analysis.document;
    std::map<BoundSymbolId, std::string> names;
    std::map<std::string, int> sameName;
    for (auto op : analysis.computation().trace.ops) {
      const std::string name(document.text(document.boundSymbol(op).name));
      names[op] = name + "/" + std::to_string(sameName[name]++);
    }
    std::map<Key, int> seen;
    for (auto op : analysis.joint.ops) {
      const auto& origin = document.boundSymbol(op).origin;
      std::string base;
      if (origin.op) {
        const auto known = names.find(origin.op);
        // Ops in the body of a higher-order op, and ops without a place of their own, by symbol.
        base = known != names.end() ? known->second : std::string(document.text(document.boundSymbol(origin.op).name)) + "?" + document.opName(origin.op);
      }
      Key key{base, origin.role, origin.operand, origin.output, 0};
      std::get<4>(key) = seen[key]++;
      byPosition.push_back(key);
    }
  }
  std::vector<Key> byPosition;
};

at::Tensor comparable(const TensorData& data) {
  auto tensor = borrowTensor(data);
  return tensor.is_complex() ? tensor.to(at::kComplexDouble) : tensor.to(at::kDouble);
}

RunDifference difference(const TensorData& a, const TensorData& b) {
  RunDifference row;
  if (a.meta.sizes != b.meta.sizes || isComplex(a.meta.dtype) != isComplex(b.meta.dtype)) {
    row.relative = std::numeric_limits<double>::infinity();
    row.note = typeComment(a.meta) + " against " + typeComment(b.meta);
    return row;
  }
  const auto x = comparable(a), y = comparable(b);
  if (x.numel() == 0) return row;
  row.normA = x.norm().item().toDouble();
  row.normB = y.norm().item().toDouble();
  const auto finiteX = x.isfinite(), finiteY = y.isfinite();
  // Equal infinities and NaN in the same places agree.
  const auto sameBad = x.eq(y).logical_or(x.isnan().logical_and(y.isnan()));
  const auto both = finiteX.logical_and(finiteY);
  const auto disagree = both.logical_or(sameBad).logical_not().any().item().toBool();
  const auto zero = at::zeros({}, x.options());
  row.largest = x.sub(y).where(both, zero).abs().max().item().toDouble();
  const auto scale = std::max(x.where(both, zero).abs().max().item().toDouble(), y.where(both, zero).abs().max().item().toDouble());
  row.relative = scale > 0 ? row.largest / scale : 0;
  if (disagree) {
    row.relative = std::numeric_limits<double>::infinity();
    row.note = "not finite in the same places";
  }
  return row;
}

/// A run that can be advanced, holding the outputs of ops that the other has not asked for yet.
class Lane {
 public:
  Lane(const Analysis& analysis, RecordOptions options) : analysis_(analysis) {
    options.each = [this](std::size_t position, ValueId value, const TensorData& tensor) {
      if (started_) outputs_[position].emplace_back(value, tensor);
    };
    recording_ = std::make_unique<Recording>(analysis, std::move(options));
    started_ = true;
  }

  /// Outputs of the op at `position`, which is run up to if need be; taken, so that they are let go afterwards.
  std::vector<std::pair<ValueId, TensorData>> take(std::size_t position) {
    while (recording_->position() <= position) recording_->step();
    auto node = outputs_.extract(position);
    return node.empty() ? std::vector<std::pair<ValueId, TensorData>>() : std::move(node.mapped());
  }

 private:
  const Analysis& analysis_;
  bool started_ = false;
  std::map<std::size_t, std::vector<std::pair<ValueId, TensorData>>> outputs_;
  std::unique_ptr<Recording> recording_;
};

}  // namespace

RunComparison compareRuns(const Analysis& a, const Analysis& b, double tolerance, const RecordOptions& optionsB, const Progress& progress) {
  const Keys keysA(a), keysB(b);
  std::map<Key, std::size_t> positionB;
  for (std::size_t i = 0; i < keysB.byPosition.size(); ++i) positionB[keysB.byPosition[i]] = i;
  Lane laneA(a, {}), laneB(b, optionsB);
  RunComparison result;
  std::vector<char> met(b.joint.ops.size(), 0);
  for (std::size_t i = 0; i < a.joint.ops.size(); ++i) {
    progress.at(a.document->opName(a.joint.ops[i]), static_cast<double>(i) / static_cast<double>(a.joint.ops.size()));
    const auto outputsA = laneA.take(i);
    const auto other = positionB.find(keysA.byPosition[i]);
    if (other == positionB.end()) {
      result.onlyInA.push_back(a.joint.ops[i]);
      continue;
    }
    met[other->second] = 1;
    const auto outputsB = laneB.take(other->second);
    if (leavesUninitialised(*a.document, a.joint.ops[i])) continue;
    for (std::size_t k = 0; k < std::min(outputsA.size(), outputsB.size()); ++k) {
      auto row = difference(outputsA[k].second, outputsB[k].second);
      row.opA = a.joint.ops[i];
      row.opB = b.joint.ops[other->second];
      row.valueA = outputsA[k].first;
      row.valueB = outputsB[k].first;
      result.largest = std::max(result.largest, row.relative);
      if (!result.firstDivergence && row.relative > tolerance) result.firstDivergence = result.rows.size();
      result.rows.push_back(std::move(row));
    }
  }
  for (std::size_t i = 0; i < met.size(); ++i)
    if (!met[i]) result.onlyInB.push_back(b.joint.ops[i]);
  return result;
}

}  // namespace retrograd
