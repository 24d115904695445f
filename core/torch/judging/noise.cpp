#include "core/torch/judging/noise.h"

#include <algorithm>
#include <cmath>

#include "core/derivation/precision.h"
#include "core/torch/analysis/cast_model.h"
#include "core/torch/judging/compare.h"
#include "core/torch/judging/named_results.h"
#include "core/torch/judging/perturb.h"

namespace retrograd {
namespace {

constexpr std::uint64_t movedRuns = 3;

/// How many runs round results of 16 bits otherwise. A run does so for one element of 64, and for a single one of a
/// small tensor: where there are few elements, more runs are made, so that those are among them that matter most.
std::uint64_t roundedRunsOf(const Analysis& analysis) {
  constexpr std::uint64_t runs = 3, ofFew = 64;
  const auto isHalf = [](const TensorMeta& meta) { return meta.dtype == DType::bf16 || meta.dtype == DType::f16; };
  return countElements(analysis, isHalf) < fewElements ? ofFew : runs;
}

/// The computation as if it had been exported in float64, for eager runs only: what was derived from it is not.
Analysis castToDouble(const Analysis& analysis, DType own) {
  auto wide = analysis;
  wide.file.document = std::make_shared<Document>(*analysis.file.document);
  castModel(wide.file, DType::f64);
  wide.document = wide.file.document;
  const auto castAll = [own](auto& tensors) {
    for (auto& [key, tensor] : tensors)
      if (const auto dtype = castDType(tensor.meta.dtype, own, DType::f64); dtype != tensor.meta.dtype)
        tensor = castTensor(tensor, dtype);
  };
  castAll(wide.request.inputs);
  castAll(wide.request.cotangents);
  if (wide.leftOut) {
    auto left = *wide.leftOut;
    castAll(left.filled);
    wide.leftOut = std::make_shared<LeftOut>(std::move(left));
  }
  return wide;
}

/// Running a model with other numbers or in another precision can fail where the model itself runs; that sample is then
/// left out.
template <class Body>
std::optional<TensorMap> attempt(Body&& body) {
  try {
    return body();
  } catch (const Error& e) {
    if (e.code() == ErrorCode::cancelled) throw;
  } catch (const std::bad_alloc&) {  // says nothing about the model
    throw;
  } catch (const std::exception&) {  // LibTorch's own
  }
  return std::nullopt;
}

/// Raises each tensor's movement to the largest distance of an element of `sample` from `base`.
void raise(std::map<std::string, double>& movements, const std::optional<TensorMap>& sample, const TensorMap& base) {
  if (!sample) return;
  for (const auto& [name, tensor] : *sample) {
    const auto* here = findTensor(base, name);
    if (!here) continue;
    const auto found = difference(*here, tensor, true);
    auto& movement = movements[name];
    if (found.failure.empty()) movement = std::max(movement, found.deviation);
  }
}

double movementOf(const std::map<std::string, double>& movements, const std::string& name) {
  const auto it = movements.find(name);
  return it == movements.end() ? 0 : it->second;
}

}  // namespace

bool drawsRandomNumbers(const Analysis& analysis) {
  return std::ranges::any_of(analysis.joint.ops, [&](BoundSymbolId op) {
    return analysis.document->boundSymbol(op).effects & effect::random;
  });
}

std::int64_t countElements(const Analysis& analysis, const std::function<bool(const TensorMeta&)>& counts) {
  const auto& document = *analysis.document;
  std::int64_t count = 0;
  for (const auto op : analysis.joint.ops)
    for (const auto output : document.outputs(op))
      if (output && document.isTensor(output) && (!counts || counts(document.meta(output))))
        count += std::min(document.meta(output).elements(), fewElements);
  return count;
}

Noise::Noise(std::shared_ptr<const Analysis> analysis) : Noise(std::move(analysis), Options()) {}

Noise::Noise(std::shared_ptr<const Analysis> analysis, Options options)
    : analysis_(std::move(analysis)), options_(options) {}

void Noise::runBase() {
  if (ran_) return;
  try {
    base_ = namedResults(*analysis_, runEager(*analysis_));
  } catch (const Error& e) {
    if (e.code() != ErrorCode::execution) throw;
    refusal_ = e.message();
    byJoint_ = true;
    base_ = run(*analysis_);
  }
  ran_ = true;  // not before: a run that was stopped, or had no memory, is none
}

TensorMap Noise::run(const Analysis& analysis, std::uint64_t roundedGradients) const {
  return namedResults(analysis, byJoint_ ? runJoint(analysis) : runEager(analysis, roundedGradients));
}

const TensorMap* Noise::eager() {
  runBase();
  return byJoint_ ? nullptr : &*base_;
}

const std::string& Noise::refusal() {
  runBase();
  return refusal_;
}

/// None where float64 is the model's own precision, and where it draws: in another precision it would draw other
/// numbers.
Noise::Run Noise::inDouble() const {
  if (byJoint_ || drawsRandomNumbers(*analysis_)) return std::nullopt;
  const auto own = ownPrecision(analysis_->file);
  if (own == DType::f64) return std::nullopt;
  return attempt([&] { return run(castToDouble(*analysis_, own)); });
}

Noise::Run Noise::moved(std::uint64_t seed) const {
  return attempt([&] { return run(*movedByOneStep(*analysis_, seed, options_.movesHalves), seed); });
}

Noise::Run Noise::rounded(std::uint64_t seed) const {
  return attempt([&] {
    return namedResults(*analysis_, runJointRounded(*analysis_, seed, options_.rounds == HalfOps::backward));
  });
}

double Noise::of(const std::string& name) {
  runBase();
  if (!double_) {
    Movements movements;
    raise(movements, inDouble(), *base_);
    double_ = std::move(movements);
  }
  return movementOf(*double_, name);
}

double Noise::refined(const std::string& name) {
  const auto noise = of(name);
  if (!refined_) refine();
  return std::max(noise, movementOf(*refined_, name));
}

double Noise::finest(const std::string& name) {
  const auto noise = refined(name);
  if (options_.rounds == HalfOps::none) return noise;
  if (!finest_) roundEachOp();
  return std::max(noise, movementOf(*finest_, name));
}

/// A movement that is no rounding any more, as where a step off turns a comparison round, is left out.
void Noise::roundEachOp() {
  constexpr std::uint64_t runs = 3, ofFew = 32;
  constexpr double mostSteps = 1e3;
  const auto unit = ownPrecision(analysis_->file) == DType::f64 ? 0x1p-53 : 0x1p-24;
  const auto joint = namedResults(*analysis_, runJoint(*analysis_));
  double flowing = 0;
  for (const auto& [position, tensor] : analysis_->request.cotangents)
    flowing = std::max(flowing, difference(tensor, tensor, true).scale);
  Movements movements;
  for (std::uint64_t i = 0; i < (countElements(*analysis_) < fewElements ? ofFew : runs); ++i) {
    Movements moved;
    raise(moved, attempt([&] { return namedResults(*analysis_, runRoundedByStep(*analysis_, (i + 1) << 32)); }), joint);
    for (const auto& [name, movement] : moved) {
      const auto scale = difference(joint.at(name), joint.at(name), true).scale;
      const auto most = std::max(std::sqrt(unit) * scale, mostSteps * unit * (flowing > 0 ? flowing : 1));
      if (movement <= most) movements[name] = std::max(movements[name], movement);
    }
  }
  finest_ = std::move(movements);
}

/// One run at a time: each has as many bytes of results as the model gives.
void Noise::refine() {
  Movements movements;
  for (std::uint64_t i = 0; i < movedRuns; ++i) raise(movements, moved(i + 1), *base_);
  if (options_.rounds != HalfOps::none) {
    const auto joint = namedResults(*analysis_, runJoint(*analysis_));
    const auto runs = roundedRunsOf(*analysis_);
    for (std::uint64_t i = 0; i < runs; ++i) raise(movements, rounded((i + 1) << 32), joint);
  }
  refined_ = std::move(movements);
}

}  // namespace retrograd
