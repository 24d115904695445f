#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/progress.h"
#include "core/grad/registry.h"
#include "core/split/partition.h"
#include "core/tracing/trace_inputs.h"

namespace retrograd {

enum class CheckStatus : std::uint8_t { pass, fail, error, skip };
std::string_view name(CheckStatus);

struct CheckOptions {
  std::string reference;                           ///< safetensors file; empty: LibTorch's autograd is the only comparison
  std::optional<double> tolerance;                 ///< in place of the ones by precision
  std::optional<std::pair<double, double>> noise;  ///< [outputs, gradients]: how far float32 is from float64 in this case
  bool deterministic = true;                       ///< false: against the reference only what does not depend on the draw
  std::optional<std::uint64_t> seed;               ///< in place of the reference's
  std::optional<std::vector<std::string>> gradInputs;
  std::optional<int> order;                        ///< 2 and up: gradients of gradients, which no reference holds
  TraceKind again = TraceKind::joint;
  std::map<std::string, Argument> numbers;         ///< as AnalysisOptions
  std::map<std::string, InputShape> shapes;
  std::optional<PartitionOptions> partition;       ///< absent: the default, or what a session file was saved with
  std::shared_ptr<const RuleRegistry> rules;       ///< registered gradient rules; may be null
  std::optional<Device> device;                    ///< absent: the CPU, or what a session file was saved with
};

struct OpCounts {
  std::size_t computation = 0, joint = 0, forward = 0, backward = 0;
};

/// What one check found. `error` is the largest difference, relative to the largest output or gradient; infinite where a tensor
/// is missing or of another shape.
struct CheckReport {
  std::string name;
  CheckStatus status = CheckStatus::pass;
  double error = 0, tolerance = 0;
  std::string worst;               ///< the tensor of `error`: "grad.p.w", "f64/out.0", "eager/grad.in.x", "split/out.0"
  std::string reason;              ///< why it is no pass
  std::vector<std::string> notes;  ///< "float32 is pinned by the graph (...)"
  OpCounts ops;
  std::size_t originsMissing = 0;
  double seconds = 0;
  bool unknownOps = false;  ///< the reason of the skip: ops LibTorch does not have
};

/// Runs forward and backward of a file, or of a session file as it was saved, and compares: with the reference (in double once more where it has f64/), with the joint
/// trace bit for bit, with LibTorch's own autograd; on a GPU also with a run on the CPU, and there tolerances stand in place of bits, for its
/// kernels may add in any order, and draws are compared by shape only; counts ops without an origin. Tolerances: `options.tolerance`, else 2e-2 where
/// bfloat16 or float16 is computed in, 1e-9 where all is float64, else max(1e-5, 20 * noise), 1e-4 without noise.
/// Throws Error where the file or the reference can't be read, and for a derivation or a run that fails.
CheckReport checkModel(const std::string& path, const CheckOptions& options, const Progress& progress = {});

/// "pass  mlp  1.2e-07 at grad.p.l1.weight ..."
std::string reportLine(const CheckReport& report);
/// An entry of the JSON report (docs/check.schema.json).
nlohmann::ordered_json toJson(const CheckReport& report);
CheckReport reportFromJson(const nlohmann::ordered_json& json);

}  // namespace retrograd
