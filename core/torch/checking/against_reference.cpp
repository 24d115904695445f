#include "core/torch/checking/against_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/derivation/precision.h"
#include "core/torch/analysis/higher_order.h"
#include "core/torch/judging/compare.h"
#include "core/torch/judging/named_results.h"

namespace retrograd {
namespace {

/// PyTorch's run in double was of the model, not of this graph, whose literals may be rounded already.
bool eagerMisses(JudgedRun& inDouble, const std::string& name, const TensorData& expected) {
  const auto* eager = inDouble.judge.noise().eager();
  const auto* tensor = eager ? findTensor(*eager, name) : nullptr;
  return tensor && !inDouble.judge.compare(name, *tensor, expected, true).good();
}

}  // namespace

/// PyTorch 2.9's decomposed LSTM returns its states with one dimension of size 1 more than eager does. Where the file
/// itself says so, the elements are compared and the report says it.
TensorData AgainstReference::fitUnits(const Analysis& analysis, const std::string& name, TensorData actual,
                                      const TensorMeta& expected) {
  const auto units = [](std::vector<std::int64_t> sizes) { return std::erase(sizes, 1), sizes; };
  if (isComplex(actual.meta.dtype) || actual.meta.sizes == expected.sizes ||
      units(actual.meta.sizes) != units(expected.sizes))
    return actual;
  const auto values = namedValues(analysis);
  const auto declared = values.find(name);
  const auto& document = *analysis.document;
  if (declared == values.end() || !declared->second || !document.isTensor(declared->second) ||
      document.meta(declared->second).sizes != actual.meta.sizes)
    return actual;
  auto note = name + " has the file's shape, which differs from the reference's by dimensions of size 1";
  if (std::ranges::find(report_.notes, note) == report_.notes.end()) report_.notes.push_back(std::move(note));
  actual.meta.sizes = expected.sizes;
  actual.meta.strides = contiguousStrides(expected.sizes);
  return actual;
}

/// What a run has for a name of a reference; what was not written is as it was given.
std::optional<TensorData> AgainstReference::actualFor(const JudgedRun& judged, const std::string& name,
                                                      const TensorData& expected) {
  const auto* found = findTensor(judged.run, name);
  if (!found && isWrittenName(name)) found = afterTheRun(*judged.analysis, judged.run, name);
  if (!found) return std::nullopt;
  return name.starts_with("out.") ? fitUnits(*judged.analysis, name, *found, expected.meta) : *found;
}

NotJudged AgainstReference::notCompared(Producer by, const std::string& name) const {
  return retrograd::notCompared(*written_.analysis, fmt::format("{} of the {}", name, retrograd::name(by)));
}

/// Compares each tensor that the reference has, and finds gradients that it has not.
template <class Compare>
void AgainstReference::compareEach(JudgedRun& judged, Producer by, const TensorMap& expected, Compare&& compare) {
  const auto known = knownNames(*judged.analysis);
  for (const auto& [name, tensor] : expected) {
    if (leftOut_.names.contains(name) || !known.contains(name)) report_.notJudged.push_back(notCompared(by, name));
    else if (const auto actual = actualFor(judged, name, tensor)) compare(name, *actual, tensor);
    else if (isGradientName(name) && isZero(tensor))
      report_.notes.push_back(fmt::format("{} is None, the {} has zeros", name, retrograd::name(by)));
    else claims_.fail(by, name, "missing");
  }
  if (lacksGradients_) return;
  for (const auto& [name, tensor] : judged.run)
    if (isGradientName(name) && !expected.contains(name))
      claims_.fail(by, name, "should be None: the reference has none");
}

void AgainstReference::compareNumbers(const TensorMap& expected, bool isOfGpu) {
  const bool ofOther = written_.isOnGpu() && !isOfGpu;
  compareEach(written_, Producer::reference, expected,
              [&](const std::string& name, const TensorData& actual, const TensorData& tensor) {
                claims_.add(Producer::reference, name, written_.compare(name, actual, tensor, false, ofOther));
              });
}

void AgainstReference::compareShapes(const TensorMap& expected, bool isDrawnElsewhere) {
  std::string note = "compared with the reference by shape only: the results depend on draws";
  if (isDrawnElsewhere)
    note += written_.isOnGpu() ? ", and those of the reference are of a CPU"
                               : ", and those of the reference are of a GPU (--device cuda draws them again)";
  report_.notes.push_back(std::move(note));
  compareEach(written_, Producer::reference, expected,
              [&](const std::string& name, const TensorData& actual, const TensorData& tensor) {
                if (auto reason = shapeDifference(actual, tensor); !reason.empty())
                  claims_.fail(Producer::reference, name, std::move(reason));
              });
}

/// Of a derivative's derivative: the reference's outputs and gradients are all outputs of what was differentiated
/// again. What it says of float64 is held to the tolerance of the file's own precision.
void AgainstReference::compareFirstOrder(const Reference& reference) {
  const auto places = placesOfFirstOrder(*written_.analysis);
  const auto compareAll = [&](Producer by, const Expected& expected, bool anyFloatType) {
    for (const auto& [name, tensor] : namedExpectations(firstOf(*written_.analysis), expected)) {
      const auto place = places.find(name);
      const auto actual = place == places.end() ? std::nullopt : actualFor(written_, place->second, tensor);
      if (actual) claims_.add(by, place->second, written_.compare(place->second, *actual, tensor, anyFloatType));
      else report_.notJudged.push_back(notCompared(by, name));
    }
  };
  compareAll(Producer::reference, reference.expected, false);
  if (reference.inDouble) compareAll(Producer::doubleReference, *reference.inDouble, true);
}

void AgainstReference::compareInDouble(JudgedRun& inDouble, const Expected& expected,
                                       const std::optional<std::string>& pinned) {
  bool notMet = false;
  compareEach(inDouble, Producer::doubleReference, namedExpectations(*inDouble.analysis, expected),
              [&](const std::string& name, const TensorData& actual, const TensorData& tensor) {
                auto measure = inDouble.compare(name, actual, tensor, pinned.has_value(), inDouble.isOnGpu());
                if (!measure.good() && (pinned || eagerMisses(inDouble, name, tensor))) {
                  notMet = true;
                  measure = written_.compare(name, actual, tensor, true, written_.isOnGpu());
                }
                claims_.add(Producer::doubleReference, name, std::move(measure));
              });
  if (!notMet) return;
  const auto why = pinned ? "the graph pins float32 (" + *pinned + ")"
                          : "numbers of the graph are rounded (LibTorch's own run in double misses the reference too)";
  report_.notes.push_back(why + ": its run in double is held to the tolerance of " +
                          std::string(torchName(ownPrecision(written_.analysis->file))));
}

}  // namespace retrograd
