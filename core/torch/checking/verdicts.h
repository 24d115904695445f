#pragma once
#include <set>
#include <string>
#include <vector>

#include "core/derivation/analysis.h"
#include "core/torch/checking/check.h"
#include "core/torch/judging/compare.h"
#include "core/torch/judging/judge.h"

namespace retrograd {

/// "grad.p.w" for "f64/grad.p.w", "eager/grad.p.w" and itself.
std::string tensorOf(const std::string& verdictName);

/// Gradients by what a reference says of them, by their names.
struct ReferenceGradients {
  std::set<std::string> wrong, right;  ///< `right`: those that are not zero
};

/// Adds what the file has lost, as `trace` warns of it: a verdict without that would promise too much.
void addWarnings(const Analysis& analysis, std::vector<std::string>& warnings);

/// Ops of joint and backward that come from no op and no value of the computation.
std::size_t countMissingOrigins(const Analysis& analysis);

/// Calls `visit` with each name of either map and its tensors, null where a map has none.
template <class Visit>
void forEachName(const TensorMap& a, const TensorMap& b, Visit&& visit) {
  for (const auto& [name, tensor] : a) visit(name, &tensor, findTensor(b, name));
  for (const auto& [name, tensor] : b)
    if (!a.contains(name)) visit(name, nullptr, &tensor);
}

/// Gathers verdicts on tensors for a report.
class Verdicts {
 public:
  void add(TensorVerdict verdict);
  /// What no tolerance covers.
  void fail(const std::string& name, std::string reason);
  /// Of tensors that were compared bit for bit: only a failure is worth a row.
  void markCompared(const std::string& name) { compared_.insert(tensorOf(name)); }

  bool compared(const std::string& name) const { return compared_.contains(tensorOf(name)); }
  bool comparedAny() const { return !compared_.empty(); }
  /// Where gradients are all that a reference differs in, and the run agrees with LibTorch; else nothing.
  std::optional<ReferenceGradients> referenceGradients() const;
  /// Status, reason, worst tensor and lists of the report. `given`: all tensors of the run; those without a verdict are
  /// listed as not compared.
  void writeTo(CheckReport& report, const TensorMap& given) const;

 private:
  std::vector<TensorVerdict> verdicts_;
  std::set<std::string> compared_;
};

/// Fails where a tensor is missing on one side or is not the same bit for bit, as the same ops on the same values are,
/// whether run as one trace, as two, or step by step.
void compareBits(Verdicts& verdicts, const std::string& prefix, const TensorMap& run, const TensorMap& joint);

/// What opaque ops leave out of a check, by the names that a reference has.
struct LeftOutNames {
  std::set<std::string> names;    ///< outputs, gradients and mutations that there are not
  std::set<std::string> partial;  ///< gradients of which LibTorch's autograd, which runs no opaque op, has only a part:
                                  ///< those that the cotangent of an output that is left out leads to
};
LeftOutNames leftOutNames(const Analysis& analysis);

/// "opaque ops did not run: myops.f.default; left out: out.0, grad.p.w, ..."
std::string leftOutNote(const Analysis& analysis, const LeftOutNames& left);

}  // namespace retrograd
