#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/derivation/model_request.h"
#include "core/formats/folder/folder.h"
#include "core/questions/parting.h"
#include "core/torch/judging/health.h"
#include "core/torch/judging/judge.h"
#include "core/torch/judging/reference.h"

namespace retrograd {

enum class CheckStatus : std::uint8_t { pass, fail, error, skip };
std::string_view name(CheckStatus);

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

/// What one check found. Each tensor was judged by its own tolerance (judge.h).
struct CheckReport {
  std::string name;
  CheckStatus status = CheckStatus::pass;
  std::string worst;  ///< the tensor furthest beyond, or nearest to, its tolerance: "grad.p.w", "f64/out.0",
                      ///< "eager/grad.in.x", "split/out.0"; empty where nothing differs
  double error = 0,
         tolerance =
             0;      ///< its deviation and tolerance, in its own unit; `error` is infinite where it cannot be compared
  double scale = 0;  ///< its largest element
  std::string reason;                    ///< why it does not pass
  std::optional<Health> health;          ///< NaN and infinities, whatever they were compared with; none: not looked at
  std::vector<std::string> warnings;     ///< of the file that bear on the verdict: a backward that it has lost
  std::optional<PartsAt> partsAt;        ///< where the reference's gradients alone differ
  std::vector<std::string> notes;        ///< "float32 is pinned by the graph (...)"
  std::vector<TensorVerdict> tensors;    ///< every comparison of numbers
  std::vector<std::string> tooNoisy;     ///< tensors whose tolerance is beyond 1 % of their largest element
  std::vector<std::string> notCompared;  ///< tensors whose numbers were compared with nothing but the joint trace's
  std::vector<std::string>
      uncomparedReference;  ///< tensors of the reference that nothing was compared with, by their names in it
  std::vector<std::string>
      leftOut;  ///< outputs, gradients and mutations that there are not because they depend on opaque ops
  OpCounts ops;
  std::size_t originsMissing = 0;
  double seconds = 0;
  bool unknownOps = false;  ///< the model has opaque ops: a pass says nothing of what is left out
};

/// Runs forward and backward of a file, or of a session file as it was saved, and compares: with the reference (in
/// double once more where it has f64/), with the joint trace bit for bit, with LibTorch's own autograd; on a GPU also
/// with a run on the CPU, and there by tolerances, not by bits, for its kernels may add in any order, and draws
/// are compared by shape only; counts ops without an origin. It fails where a tensor is beyond its tolerance or
/// missing, where there is a gradient that should be None, and where NaN or infinity is where the reference has
/// none, and where a loss, a gradient, a parameter or a buffer has any (health.h). Where everything agrees and a tensor
/// of the reference was compared with nothing, or nothing was compared at all, the status is `skip`. Throws Error where
/// the file or the reference can't be read, and for a derivation or a run that fails.
CheckReport checkModel(const std::string& path, const CheckOptions& options, const Progress& progress = {});

/// The same in two steps: the runs are made once, and can then be held against other references of the same inputs.
class ModelCheck {
 public:
  /// Derives and runs. Throws as checkModel().
  ModelCheck(const std::string& path, const CheckOptions& options, const Progress& progress = {});
  ~ModelCheck();

  /// The verdict by the reference of the options, where there is one.
  CheckReport report();
  /// The verdict by `other` in its place, which has the same inputs, cotangents and seed.
  CheckReport against(const Reference& other);
  /// That of the options; null where there is none.
  const Reference* reference() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// "pass  mlp  worst grad.p.l1.weight: off by 1.2e-09, tolerance 4.5e-08, ..."
std::string reportLine(const CheckReport& report);
/// The lines below it: the run's health, where gradients part, warnings. `brief`: without those that say that all is
/// well.
std::vector<std::string> reportDetails(const CheckReport& report, bool brief);
/// An entry of the JSON report (docs/check.schema.json).
nlohmann::ordered_json toJson(const CheckReport& report);
CheckReport checkReportFromJson(const nlohmann::ordered_json& json);

}  // namespace retrograd
