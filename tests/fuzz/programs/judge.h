#pragma once
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "tests/fuzz/programs/oracle.h"

namespace retrograd::fuzz {

/// How exactly a tensor of this program is computed: by the coarsest floating dtype in it.
enum class Precision { f64, f32, f16, bf16 };
Precision precisionOf(const Program& program);

/// Compares what Retrograd made with what eager LibTorch made, tensor by tensor. Each is held to 1e-9 (f64) of its own
/// largest element plus a floor of 64 roundings of the program's largest value; what lies beyond is held against
/// eager's own noise, which is computed then: in float64, what rounding of the inputs makes of the tensor, or, where
/// that leaves no two digits, nothing is compared and the tensor is counted; in a shorter dtype, four times what eager
/// errs against its own run in float64, or twice what one step of the inputs makes of it. Integers are equal where
/// rounding does not change them in eager, NaN and infinities are in the same places, None is where eager has
/// None.
class Judge {
 public:
  Judge(const Program& program, const std::vector<at::Tensor>& inputs, const Cotangents& cotangents,
        const OracleOptions& options);

  /// What differs, "gradient of x: ..."; empty where nothing does. `generator`: whether its state is compared.
  std::string compare(const Outcome& expected, const Outcome& actual, bool generator);
  /// Tensors of the last comparison that are noise in eager itself.
  int noisy() const { return noisy_; }

 private:
  std::string compareAll(const std::string& what, const std::vector<at::Tensor>& expected,
                         const std::vector<at::Tensor>& actual, std::vector<at::Tensor> Outcome::* part,
                         const std::function<std::string(std::size_t)>& name);
  std::string compareOne(const at::Tensor& expected, const at::Tensor& actual, std::vector<at::Tensor> Outcome::* part,
                         std::size_t i);
  bool isNoise(const at::Tensor& expected, const at::Tensor& actual, std::vector<at::Tensor> Outcome::* part,
               std::size_t i);
  double noise(const at::Tensor& expected, std::vector<at::Tensor> Outcome::* part, std::size_t i);
  bool isAllNoise(const at::Tensor& expected, std::vector<at::Tensor> Outcome::* part, std::size_t i);
  bool isInfiniteComplex(std::vector<at::Tensor> Outcome::* part) const;
  const Outcome* reference();
  Outcome perturbed(double by);

  const Program& program_;
  const std::vector<at::Tensor>& inputs_;
  const Cotangents& cotangents_;
  OracleOptions options_;
  Precision precision_;
  double largest_ = 1;
  bool asked_ = false;
  std::vector<Outcome> references_;
  std::vector<std::array<Outcome, 2>> moved_;  ///< by 1, 2, ... times the perturbation, up and down
  bool infinite_ = false;                      ///< a gradient of eager is not finite somewhere
  int noisy_ = 0;
};

}  // namespace retrograd::fuzz
