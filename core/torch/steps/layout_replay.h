#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/formats/recording/recording.h"
#include "core/judge/claim.h"
#include "core/torch/steps/step_values.h"

namespace retrograd {

/// Runs the recorded backward of each custom Function again with one gradient that lies otherwise in memory:
/// contiguous, expanded, as a slice. A right backward gives the same result each time. Nothing is said of a backward
/// with ops that cannot run again (custom kernels, draws), that raises with the other layout, or that asked for
/// contiguous memory.
class LayoutReplay {
 public:
  LayoutReplay(const Analysis& analysis, const StepValues& values);
  /// `linked`: positions of a backward's ops by forward op. A Function is judged by its first calls.
  std::vector<Claim> claims(const std::unordered_map<std::int32_t, std::vector<std::size_t>>& linked);

 private:
  using Tensors = std::vector<at::Tensor>;
  /// The backward of one call: its ops, and the gradients that flow in.
  struct Call {
    BoundSymbolId forward;
    std::vector<std::size_t> positions;
    std::vector<ValueId> gradients;
  };
  std::optional<Call> callOf(BoundSymbolId forward, const std::vector<std::size_t>& linked) const;
  bool isGradient(ValueId value) const;
  std::optional<Claim> judge(const Call& call) const;
  std::optional<std::vector<Tensors>> run(const Call& call, const Tensors& gradients) const;
  std::optional<std::size_t> firstToDiffer(const Call& call, const std::vector<Tensors>& a,
                                           const std::vector<Tensors>& b) const;
  std::vector<std::size_t> ends(const Call& call) const;

  const Document& document_;
  const StepRecording& recording_;
  const std::vector<BoundSymbolId>& ops_;
  const StepValues& values_;
};

}  // namespace retrograd
