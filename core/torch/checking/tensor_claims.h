#pragma once
#include <set>
#include <string>
#include <vector>

#include "core/derivation/analysis.h"
#include "core/judge/report.h"
#include "core/torch/judging/compare.h"

namespace retrograd {

/// Gradients by what a reference says of them, by their names.
struct ReferenceGradients {
  std::set<std::string> wrong, right;  ///< `right`: those that are not zero
};

/// What the file has lost, as `trace` warns of it, each a suspicion: a verdict without that would promise too much.
void addWarnings(const Analysis& analysis, std::vector<Claim>& claims);
/// The suspicion that something was lost.
Claim warningClaim(std::string text);

/// Ops of joint and backward that come from no op and no value of the computation.
std::size_t countMissingOrigins(const Analysis& analysis);

/// Calls `visit` with each name of either map and its tensors, null where a map has none.
template <class Visit>
void forEachName(const TensorMap& a, const TensorMap& b, Visit&& visit) {
  for (const auto& [name, tensor] : a) visit(name, &tensor, findTensor(b, name));
  for (const auto& [name, tensor] : b)
    if (!a.contains(name)) visit(name, nullptr, &tensor);
}

/// Gathers claims on tensors for a report.
class TensorClaims {
 public:
  void add(Producer by, const std::string& name, Measure measure);
  /// What no tolerance covers.
  void fail(Producer by, const std::string& name, std::string reason) {
    add(by, name, Measure::failed(std::move(reason)));
  }
  bool comparedAny() const { return !compared_.empty(); }
  /// Where gradients are all that a reference differs in, and the run agrees with LibTorch; else nothing.
  std::optional<ReferenceGradients> referenceGradients() const;
  /// The faults, the furthest first, and what holds; how many of the tensors were compared. `given`: all tensors of the
  /// run; of those without a claim a note says that they were not compared.
  void writeTo(Report& report, const TensorMap& given) const;

 private:
  std::vector<Claim> claims_;
  std::set<std::string> compared_;
};

/// A note that nothing but the joint trace was compared with a tensor of the run.
Claim notComparedClaim(std::string name);
/// A tensor of a reference that nothing of the run was compared with.
NotJudged notCompared(const Analysis& analysis, std::string name);

/// Fails where a tensor is missing on one side or is not the same bit for bit, as the same ops on the same values are,
/// whether run as one trace, as two, or step by step.
void compareBits(TensorClaims& claims, Producer by, const TensorMap& run, const TensorMap& joint);

/// What opaque ops leave out of a check, by the names that a reference has.
struct LeftOutNames {
  std::set<std::string> names;    ///< outputs, gradients and mutations that there are not
  std::set<std::string> partial;  ///< gradients of which LibTorch's autograd, which runs no opaque op, has only a part:
                                  ///< those that the cotangent of an output that is left out leads to
};
LeftOutNames leftOutNames(const Analysis& analysis);

/// Adds a note on the opaque ops, and one on each tensor that is left out.
void addLeftOut(const Analysis& analysis, const LeftOutNames& left, std::vector<Claim>& claims);

}  // namespace retrograd
