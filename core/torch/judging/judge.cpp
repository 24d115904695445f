#include "core/torch/judging/judge.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/torch/judging/compare.h"
#include "core/torch/judging/named_results.h"

namespace retrograd {
namespace {

constexpr double noiseFactor = 4;

bool isHalf(DType d) { return d == DType::f16 || d == DType::bf16 || d == DType::c32; }
bool isSingle(DType d) { return d == DType::f32 || d == DType::c64; }

double unitRoundoff(DType dtype) {
  if (dtype == DType::bf16) return 0x1p-8;
  if (isHalf(dtype)) return 0x1p-11;
  return isSingle(dtype) ? 0x1p-24 : 0x1p-53;
}

/// For each named value: elements of the largest tensor that the op which makes it reads.
std::map<std::string, double> countTerms(const Analysis& analysis) {
  const auto& document = *analysis.document;
  std::unordered_map<std::int32_t, BoundSymbolId> makers;
  for (auto op : analysis.joint.ops)
    for (auto output : document.outputs(op))
      if (output) makers.try_emplace(output.index, op);
  std::map<std::string, double> terms;
  for (const auto& [name, value] : namedValues(analysis)) {
    const auto maker = value ? makers.find(value.index) : makers.end();
    if (maker == makers.end()) continue;
    auto& most = terms[name];
    for (auto operand : document.operands(maker->second))
      if (operand && document.isTensor(operand))
        most = std::max(most, static_cast<double>(document.meta(operand).elements()));
  }
  return terms;
}

}  // namespace

double roundingFloor(DType dtype, double scale, double terms) {
  if (!isDifferentiable(dtype) || scale == 0) return 0;
  const auto accumulation = isHalf(dtype) ? DType::f32 : dtype;
  return scale * ((isHalf(dtype) ? 2 : 8) * unitRoundoff(dtype) + unitRoundoff(accumulation) * std::sqrt(terms));
}

Judge::Judge(std::shared_ptr<const Analysis> analysis, std::optional<double> relative, Noise::Options noise)
    : analysis_(std::move(analysis)), relative_(relative), noise_(analysis_, noise) {}

double Judge::termsOf(const std::string& name) {
  if (!terms_) terms_ = countTerms(*analysis_);
  const auto it = terms_->find(name);
  return it == terms_->end() ? 1 : std::max(1.0, it->second);
}

double Judge::floorOf(const std::string& name, const TensorData& expected, double scale) {
  return roundingFloor(expected.meta.dtype, scale, termsOf(name));
}

Measure Judge::compare(const std::string& name, const TensorData& actual, const TensorData& expected, bool anyFloatType,
                       double times) {
  auto measure = difference(actual, expected, anyFloatType);
  if (relative_) {
    measure.tolerance = *relative_ * measure.scale;
    return measure;
  }
  const auto floor = floorOf(name, expected, measure.scale);
  measure.tolerance = noiseFactor * times * noise_.of(name) + floor;
  if (measure.failure.empty() && measure.deviation > measure.tolerance)
    measure.tolerance = noiseFactor * times * noise_.refined(name) + floor;
  if (measure.failure.empty() && measure.deviation > measure.tolerance)
    measure.tolerance = noiseFactor * times * noise_.finest(name) + floor;
  return measure;
}

}  // namespace retrograd
