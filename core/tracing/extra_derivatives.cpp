#include "core/tracing/extra_derivatives.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/embedding_renorm.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/rrelu_with_noise.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <tuple>

namespace retrograd {
namespace {

/// copy(self, src): self's shape and strides with src's content. Keeping the strides matters, because decomposed graphs take
/// `as_strided` of the result. The gradient is copy_'s.
at::Tensor copy(const at::Tensor& self, const at::Tensor& source, bool nonBlocking) {
  auto result = at::empty_strided(self.sizes(), self.strides(), self.options().requires_grad(false));
  result.copy_(source, nonBlocking);
  return result;
}

/// The noise given is never read, only its shape: the op writes a fresh one and returns it.
std::tuple<at::Tensor, at::Tensor> rreluWithNoise(const at::Tensor& self, const at::Tensor& noise, const at::Scalar& lower, const at::Scalar& upper,
                                                  bool training, std::optional<at::Generator> generator) {
  auto fresh = at::zeros_like(noise);
  auto result = at::rrelu_with_noise(self, fresh, lower, upper, training, generator);
  return {result, fresh};
}

/// Eager PyTorch renormalises rows under no_grad before it looks them up: the gradient passes as if nothing had happened.
struct EmbeddingRenorm : torch::autograd::Function<EmbeddingRenorm> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& self, const at::Tensor& indices, double maxNorm, double normType) {
    at::AutoDispatchBelowADInplaceOrView below;
    return at::embedding_renorm(self, indices, maxNorm, normType);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*, const torch::autograd::variable_list& gradients) {
    return {gradients[0], at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

at::Tensor embeddingRenorm(const at::Tensor& self, const at::Tensor& indices, double maxNorm, double normType) {
  return EmbeddingRenorm::apply(self, indices, maxNorm, normType);
}

}  // namespace

void registerExtraDerivatives() {
  static const auto libraries = [] {
    std::vector<std::unique_ptr<torch::Library>> registered;
    for (auto key : {c10::DispatchKey::AutogradCPU, c10::DispatchKey::AutogradCUDA}) {
      auto library = std::make_unique<torch::Library>(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
      library->impl("embedding_renorm", embeddingRenorm);
      library->impl("copy", copy);
      library->impl("rrelu_with_noise_functional", rreluWithNoise);
      registered.push_back(std::move(library));
    }
    return registered;
  }();
  (void)libraries;
}

}  // namespace retrograd
