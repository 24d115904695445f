#include "core/torch/checking/noise.h"

#include <algorithm>

#include "core/derivation/precision.h"
#include "core/torch/analysis/rounded_run.h"
#include "core/torch/checking/compare.h"
#include "core/torch/checking/named_results.h"
#include "core/torch/checking/perturb.h"

namespace retrograd {
namespace {

constexpr std::uint64_t movedRuns = 3;

/// The computation as if it had been exported in float64, for eager runs only: what was derived from it is not.
Analysis castToDouble(const Analysis& analysis, DType own) {
  auto wide = analysis;
  wide.file.document = std::make_shared<Document>(*analysis.file.document);
  castModel(wide.file, DType::f64);
  wide.document = wide.file.document;
  for (auto* tensors : {&wide.request.inputs, &wide.request.cotangents})
    for (auto& [name, tensor] : *tensors)
      if (const auto dtype = castDType(tensor.meta.dtype, own, DType::f64); dtype != tensor.meta.dtype)
        tensor = castTensor(tensor, dtype);
  if (wide.leftOut) {
    auto left = *wide.leftOut;
    for (auto& [id, tensor] : left.filled)
      if (const auto dtype = castDType(tensor.meta.dtype, own, DType::f64); dtype != tensor.meta.dtype)
        tensor = castTensor(tensor, dtype);
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

}  // namespace

bool drawsRandomNumbers(const Analysis& analysis) {
  return std::any_of(analysis.joint.ops.begin(), analysis.joint.ops.end(),
                     [&](BoundSymbolId op) { return analysis.document->boundSymbol(op).effects & effect::random; });
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

double Noise::movement(const std::string& name, const Run& sample, const Run& base) {
  if (!sample || !base) return 0;
  const auto here = base->find(name);
  const auto other = sample->find(name);
  if (here == base->end() || other == sample->end()) return 0;
  const auto found = difference(here->second, other->second, true);
  return found.failure.empty() ? found.deviation : 0;
}

double Noise::of(const std::string& name) {
  runBase();
  if (!double_) double_ = inDouble();
  return movement(name, *double_, base_);
}

double Noise::refined(const std::string& name) {
  auto noise = of(name);
  while (moved_.size() < movedRuns) moved_.push_back(moved(moved_.size() + 1));
  for (const auto& sample : moved_) noise = std::max(noise, movement(name, sample, base_));
  if (options_.rounds == HalfOps::none) return noise;
  if (!joint_) joint_ = namedResults(*analysis_, runJoint(*analysis_));
  while (rounded_.size() < movedRuns) rounded_.push_back(rounded((rounded_.size() + 1) << 32));
  for (const auto& sample : rounded_) noise = std::max(noise, movement(name, sample, joint_));
  return noise;
}

}  // namespace retrograd
