#pragma once
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/derivation/model_request.h"
#include "core/formats/folder/folder.h"
#include "core/judge/report.h"
#include "core/torch/judging/reference.h"

namespace retrograd {

struct CheckOptions : ModelRequest {
  std::string reference;              ///< safetensors file; empty: LibTorch's autograd is the only comparison
  std::optional<double> tolerance;    ///< of each tensor relative to its largest element, instead of the judge's
  bool deterministic = true;          ///< false: against the reference only what does not depend on the draw
  std::vector<std::string> warnings;  ///< that bear on the verdict: what a recorded folder could not keep
  std::vector<CustomBackward> customBackward;  ///< what PyTorch ran in the recorded backward and no graph holds
};

struct OpCounts {
  std::size_t computation = 0, joint = 0, forward = 0, backward = 0;
};
OpCounts opCounts(const Analysis& analysis);
nlohmann::ordered_json toJson(const OpCounts& ops);
/// As details of a report: "forward_ops", ...
void addDetails(Report& report, const OpCounts& ops);

/// Runs forward and backward of a file, or of a session file as it was saved, and compares: with the reference (in
/// double once more where it has f64/), with the joint trace bit for bit, with LibTorch's own autograd; on a GPU also
/// with a run on the CPU, and there by tolerances, not by bits, for its kernels may add in any order, and draws
/// are compared by shape only; looks for ops without an origin. Its claims are the tensors (kind "tensor", what holds
/// included), health (health.h), and where gradients part (parting.h). It fails where a tensor is beyond its tolerance
/// or missing, where there is a gradient that should be None, and where NaN or infinity is where the reference has
/// none, and where a loss, a gradient, a parameter or a buffer has any. A tensor of the reference that was compared
/// with nothing was not judged. Throws Error where the file or the reference can't be read, and for a derivation or a
/// run that fails.
Report checkModel(const std::string& path, const CheckOptions& options, const Progress& progress = {});

/// The same in two steps: the runs are made once, and can then be held against other references of the same inputs.
class ModelCheck {
 public:
  /// Derives and runs. Throws as checkModel().
  ModelCheck(const std::string& path, const CheckOptions& options, const Progress& progress = {});
  ~ModelCheck();

  /// The verdict by the reference of the options, where there is one.
  Report report();
  /// The verdict by `other` in its place, which has the same inputs, cotangents and seed.
  Report against(const Reference& other);
  /// That of the options; null where there is none.
  const Reference* reference() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace retrograd
