#include "core/torch/experiments/shrink.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/analysis/joint_run.h"
#include "core/torch/experiments/grad_check.h"
#include "core/torch/judging/compare.h"
#include "core/torch/reading/session_file.h"
#include "core/torch/tracing/convert.h"

namespace retrograd {
namespace {

bool anyNaN(const TensorMap& tensors) {
  return std::ranges::any_of(tensors, [](const auto& entry) { return countNonFinite(entry.second).nan > 0; });
}

/// The largest difference over the largest element; infinite where one is finite and the other is not. Of values, not
/// of dtypes: a reference may be of another one.
double relativeDifference(const TensorData& a, const TensorData& b) {
  const auto wide = isComplex(a.meta.dtype) || isComplex(b.meta.dtype) ? at::kComplexDouble : at::kDouble;
  const auto widened = [wide](const TensorData& tensor) { return copyOut(borrowTensor(tensor).to(wide)); };
  const auto found = difference(widened(a), widened(b), true);
  if (!found.failure.empty()) return std::numeric_limits<double>::infinity();
  return found.scale > 0       ? found.deviation / found.scale
         : found.deviation > 0 ? std::numeric_limits<double>::infinity()
                               : 0;
}

/// Results of a run by name, outputs by their place.
TensorMap resultsBy(const RunResult& run) {
  auto results = run.gradients;
  for (std::size_t i = 0; i < run.outputs.size(); ++i)
    if (run.outputs[i]) results.emplace("out." + std::to_string(i), *run.outputs[i]);
  return results;
}

/// What runs: the joint, or the computation alone where nothing could be derived.
TensorMap resultsOf(const Analysis& candidate) {
  return resultsBy(candidate.derived() ? runJoint(candidate) : runEager(candidate));
}

class Search {
 public:
  Search(const Analysis& analysis, const FaultTest& shows, std::size_t most, const Progress& progress)
      : analysis_(analysis), all_(analysis.computation().trace.ops), shows_(shows), most_(most), progress_(progress) {}

  Shrunk run() {
    auto end = all_.size(), begin = std::size_t{0};
    if (end == 0) throw Error(ErrorCode::badUse, "has no ops", analysis_.file.path);
    if (!shows(0, end))
      throw Error(ErrorCode::badUse, "the whole graph does not show the fault, so that there is nothing to shrink",
                  analysis_.file.path);
    for (std::size_t least = 1; least < end;) {  // the shortest beginning that shows it
      const auto middle = least + (end - least) / 2;
      if (shows(0, middle)) end = middle;
      else least = middle + 1;
    }
    for (std::size_t most = end - 1; begin < most;) {  // the latest place to begin
      const auto middle = begin + (most - begin + 1) / 2;
      if (shows(middle, end)) begin = middle;
      else most = middle - 1;
    }
    tryShorter(begin, end);
    Shrunk result;
    result.ops.assign(all_.begin() + begin, all_.begin() + end);
    result.candidate = candidate(begin, end);
    result.tests = tests_;
    return result;
  }

 private:
  std::shared_ptr<const Analysis> candidate(std::size_t begin, std::size_t end) const {
    const std::vector<BoundSymbolId> ops(all_.begin() + begin, all_.begin() + end);
    return analyse(extractOps(analysis_, ops, progress_),
                   {.seed = analysis_.request.seed, .rules = analysis_.request.rules}, progress_);
  }
  bool shows(std::size_t begin, std::size_t end) {
    progress_.check();
    progress_.at("ops " + std::to_string(begin) + " to " + std::to_string(end),
                 static_cast<double>(tests_) / static_cast<double>(most_));
    ++tests_;
    try {
      return shows_(candidate(begin, end));
    } catch (const Error& e) {
      if (e.code() == ErrorCode::cancelled || (begin == 0 && end == all_.size())) throw;
      return false;  // a range that cannot be derived alone shows nothing
    }
  }
  void tryShorter(std::size_t& begin, std::size_t& end) {
    for (std::size_t length = 1; length < end - begin; ++length)
      for (std::size_t from = begin; from + length <= end; ++from) {
        if (tests_ >= most_) return;
        if (!shows(from, from + length)) continue;
        begin = from;
        end = from + length;
        return;
      }
  }

  const Analysis& analysis_;
  const std::vector<BoundSymbolId>& all_;
  const FaultTest& shows_;
  std::size_t most_, tests_ = 0;
  const Progress& progress_;
};

}  // namespace

FaultTest holdsNaN() {
  return [](const std::shared_ptr<const Analysis>& candidate) {
    return !anyNaN(candidate->request.inputs) && anyNaN(resultsOf(*candidate));
  };
}

FaultTest differsFromDouble(double tolerance) {
  return [tolerance](const std::shared_ptr<const Analysis>& candidate) {
    auto options = optionsFromModel(*candidate);
    options.precision = DType::f64;
    auto file = candidate->file;
    file.document = std::make_shared<Document>(*candidate->file.document);
    const auto wide = analyse(std::move(file), options);
    const auto own = resultsOf(*candidate), exact = resultsOf(*wide);
    return std::ranges::any_of(own, [&](const auto& entry) {
      const auto it = exact.find(entry.first);
      return it != exact.end() && relativeDifference(entry.second, it->second) > tolerance;
    });
  };
}

FaultTest differsFrom(TensorMap reference, double tolerance) {
  return [reference = std::move(reference), tolerance](const std::shared_ptr<const Analysis>& candidate) {
    const auto run = runEager(*candidate);
    const auto& computation = candidate->computation();
    for (std::size_t i = 0; i < computation.outputs.size() && i < run.outputs.size(); ++i) {
      if (!computation.outputs[i].value || !run.outputs[i]) continue;
      const auto it = reference.find(candidate->document->displayName(computation.outputs[i].value));
      if (it != reference.end() && relativeDifference(*run.outputs[i], it->second) > tolerance) return true;
    }
    return false;
  };
}

Shrunk shrink(const Analysis& analysis, const FaultTest& shows, std::size_t mostTests, const Progress& progress) {
  return Search(analysis, shows, mostTests, progress).run();
}

}  // namespace retrograd
