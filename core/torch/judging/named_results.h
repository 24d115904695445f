#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/torch/analysis/joint_run.h"
#include "core/torch/judging/reference.h"

namespace retrograd {

/// Tied parameters have several names; all of them lead to the first.
class ParameterNames {
 public:
  explicit ParameterNames(const Computation& computation);
  const std::string& first(const std::string& name) const;

 private:
  std::map<std::string, std::string> first_;
};

/// All that a run gives by the names that a reference has for it: "out.0", "grad.in.x", "grad.p.w",
/// "mut.b.running_mean", "mut.in.x". A user output that is a number of the graph counts as a tensor of one element;
/// what is None is absent.
TensorMap namedResults(const Analysis& analysis, const RunResult& run);

/// Those of a run of a session, which keeps nothing for going back.
TensorMap namedSessionResults(const std::shared_ptr<const Analysis>& analysis, const Progress& progress);

/// The values of the joint behind these names.
std::map<std::string, ValueId> namedValues(const Analysis& analysis);

/// The gradients that opaque ops keep from being derived, by these names.
std::vector<std::string> refusedGradientNames(const Analysis& analysis);

bool isGradientName(const std::string& name);  ///< "grad.*"
bool isWrittenName(const std::string& name);   ///< "mut.*"

/// What is in memory after a run whose results have nothing under this name, "mut.b.x" or "mut.in.x": what it left
/// under another name of a tied buffer, else what the file or the inputs gave. Null for other names.
const TensorData* afterTheRun(const Analysis& analysis, const TensorMap& results, const std::string& name);

/// What a reference expects by the names of namedResults(): "out.0", "grad.p.w", "mut.b.mean". The names of a tied
/// parameter count as one.
TensorMap namedExpectations(const Analysis& analysis, const Expected& expected);

/// The inputs of the computation by the names of their gradients.
std::map<std::string, ValueId> inputsByGradient(const Analysis& analysis);

/// Every name that a result of this model can have.
std::set<std::string> knownNames(const Analysis& analysis);

/// Where results of the first derivative are among those of an analysis of a higher order, by their names in a
/// reference: "grad.p.w" may be "out.3" there.
std::map<std::string, std::string> placesOfFirstOrder(const Analysis& analysis);

/// Tensors of a reference that are neither a result nor an input of the model, by their names in it: "in.y".
std::vector<std::string> namesNotUsed(const Reference& reference, const Computation& computation);

/// Whether it expects no result at all.
bool holdsNothing(const Reference& reference);

/// "a, b, c, ..."
std::string firstOfThem(const std::vector<std::string>& names);

}  // namespace retrograd
