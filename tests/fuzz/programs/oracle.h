#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <vector>

#include "tests/fuzz/programs/program.h"

namespace retrograd::fuzz {

/// What a run leaves, each tensor by itself; undefined where there is none.
struct Outcome {
  std::vector<at::Tensor> outputs;    ///< by result of the program; undefined for None and numbers
  std::vector<at::Tensor> gradients;  ///< by input
  std::vector<at::Tensor> contents;   ///< by input: what it holds after the run; parameters undefined
  at::Tensor generator;               ///< its state after the run
  std::vector<at::Tensor> second;     ///< order 2: gradients by input, then by the cotangent of each output
};

struct OracleOptions {
  bool inDouble = false;    ///< the same program in float64: how much the dtype errs
  double perturbation = 0;  ///< inputs and cotangents times 1 + this, each op's gradients times 1 + a quarter of it,
                            ///< with signs by turns: how much rounding is amplified
  int order = 1;
  std::int64_t size = 0;  ///< what s0 is
};

/// Gradients that flow in: by output for the first derivative; by result of the first derivative for the second
/// (outputs, then the gradients that there are, in the inputs' order).
struct Cotangents {
  std::map<std::size_t, at::Tensor> first, second;
};

/// Contents of the inputs as `retrograd` draws them for printed traces that only describe them: user inputs normal,
/// integers 0 or 1, and so on.
std::vector<at::Tensor> drawInputs(const Program& program, std::int64_t size);
/// Draws inputs one by one, in the order in which they are added.
class InputDraw {
 public:
  explicit InputDraw(std::uint64_t seed);
  at::Tensor draw(const Input& input, const std::vector<std::int64_t>& sizes);

 private:
  at::Generator users_, weights_;
};

/// Which inputs are differentiated follows from the program: floating or complex, no buffer, not marked, and none that
/// eager would refuse to write to as a leaf that requires a gradient. What is written under no_grad or detached keeps
/// its gradient, as it does in eager. False where LibTorch refuses to run it.
bool settleInputs(Program& program, std::optional<std::int64_t> size = std::nullopt);

/// Runs the program eagerly and differentiates it by LibTorch's autograd. An output that requires grad and has no
/// cotangent gets ones. Throws std::exception where LibTorch refuses: mostly c10::Error, std::runtime_error for a
/// number out of range.
Outcome runOracle(const Program& program, const std::vector<at::Tensor>& inputs, const Cotangents& cotangents,
                  const OracleOptions& options);

}  // namespace retrograd::fuzz
