#include "core/torch/tracing/extra_derivatives.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/alias.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/as_strided_scatter.h>
#include <ATen/ops/embedding_renorm.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/rrelu_with_noise.h>
#include <ATen/ops/unfold_backward.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>
#include <utility>

#include <tuple>

#include "core/torch/packs/libtorch/mathematical_forms.h"

namespace retrograd {
namespace {

/// copy(self, src): self's shape and strides with src's content. Keeping the strides matters, because decomposed graphs
/// take `as_strided` of the result. The gradient is copy_'s.
at::Tensor copy(const at::Tensor& self, const at::Tensor& source, bool nonBlocking) {
  auto result = at::empty_strided(self.sizes(), self.strides(), self.options().requires_grad(false));
  result.copy_(source, nonBlocking);
  return result;
}

/// The noise given is never read, only its shape: the op writes a fresh one and returns it.
std::tuple<at::Tensor, at::Tensor> rreluWithNoise(const at::Tensor& self, const at::Tensor& noise,
                                                  const at::Scalar& lower, const at::Scalar& upper, bool training,
                                                  std::optional<at::Generator> generator) {
  auto fresh = at::zeros_like(noise);
  auto result = at::rrelu_with_noise(self, fresh, lower, upper, training, std::move(generator));
  return {result, fresh};
}

/// Eager PyTorch renormalises rows under no_grad before it looks them up: the gradient passes as if nothing had
/// happened.
struct EmbeddingRenorm : torch::autograd::Function<EmbeddingRenorm> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& self,
                            const at::Tensor& indices, double maxNorm, double normType) {
    context->set_materialize_grads(false);  // where no gradient arrives none is passed on: LibTorch would make zeros
    at::AutoDispatchBelowADInplaceOrView below;
    return at::embedding_renorm(self, indices, maxNorm, normType);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list& gradients) {
    return {gradients[0], at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

at::Tensor embeddingRenorm(const at::Tensor& self, const at::Tensor& indices, double maxNorm, double normType) {
  return EmbeddingRenorm::apply(self, indices, maxNorm, normType);
}

/// as_strided_scatter on memory that is one contiguous run. The gradient is that of LibTorch's formula, for complex
/// numbers too.
struct StridedScatter : torch::autograd::Function<StridedScatter> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& self, const at::Tensor& source,
                            const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides,
                            std::int64_t offset) {
    context->set_materialize_grads(false);
    context->saved_data["sizes"] = sizes;
    context->saved_data["strides"] = strides;
    context->saved_data["offset"] = offset;
    at::AutoDispatchBelowADInplaceOrView below;
    return at::as_strided_scatter(self, source, sizes, strides, offset);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    if (!gradients[0].defined()) return torch::autograd::variable_list(5);
    const auto sizes = context->saved_data["sizes"].toIntVector(),
               strides = context->saved_data["strides"].toIntVector();
    const auto offset = context->saved_data["offset"].toInt();
    // The offset counts from the beginning of memory, and a gradient may be a part of another's.
    const auto gradient = gradients[0].storage_offset() == 0 ? gradients[0].contiguous()
                                                             : gradients[0].clone(at::MemoryFormat::Contiguous);
    at::Tensor ofSelf, ofSource;
    if (context->needs_input_grad(0))
      ofSelf = at::as_strided_scatter(gradient, at::zeros(sizes, gradient.options()), sizes, strides, offset);
    if (context->needs_input_grad(1)) ofSource = gradient.as_strided(sizes, strides, offset);
    return {ofSelf, ofSource, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

/// LibTorch differentiates this op on contiguous tensors alone and refuses others in eager mode, where it looks. Here
/// any tensor goes by way of all of its memory, which is contiguous.
at::Tensor stridedScatter(const at::Tensor& self, const at::Tensor& source, c10::SymIntArrayRef symSizes,
                          c10::SymIntArrayRef symStrides, std::optional<c10::SymInt> symOffset) {
  const auto sizes = C10_AS_INTARRAYREF_SLOW(symSizes).vec(), strides = C10_AS_INTARRAYREF_SLOW(symStrides).vec();
  const auto offset = symOffset ? symOffset->expect_int() : self.storage_offset();
  if (at::has_internal_overlap(self) == at::MemOverlap::Yes)
    return stridedScatter(self.contiguous(), source, symSizes, symStrides, offset);
  const auto memory = static_cast<std::int64_t>(self.storage().nbytes() / self.itemsize());
  if (self.is_contiguous() && self.storage_offset() == 0 && self.numel() == memory)
    return StridedScatter::apply(self, source, sizes, strides, offset);
  const auto all = StridedScatter::apply(self.as_strided({memory}, {1}, 0), source, sizes, strides, offset);
  return all.as_strided(self.sizes(), self.strides(), self.storage_offset());
}

/// unfold_backward, whose gradient LibTorch leaves as a view with several elements in one place. What derives that
/// again scatters into it, and LibTorch's scatter ops keep such a layout (they only look for strides of 0), so that one
/// write reaches several elements. Here the gradient has memory for each.
struct UnfoldBackward : torch::autograd::Function<UnfoldBackward> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& gradient,
                            const std::vector<std::int64_t>& sizes, std::int64_t dim, std::int64_t size,
                            std::int64_t step) {
    context->set_materialize_grads(false);
    context->saved_data["dim"] = dim;
    context->saved_data["size"] = size;
    context->saved_data["step"] = step;
    at::AutoDispatchBelowADInplaceOrView below;
    return at::unfold_backward(gradient, sizes, dim, size, step);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    if (!gradients[0].defined()) return torch::autograd::variable_list(5);
    const auto& saved = context->saved_data;
    return {
        gradients[0].unfold(saved.at("dim").toInt(), saved.at("size").toInt(), saved.at("step").toInt()).contiguous(),
        at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

at::Tensor unfoldBackward(const at::Tensor& gradient, c10::SymIntArrayRef sizes, std::int64_t dim, std::int64_t size,
                          std::int64_t step) {
  return UnfoldBackward::apply(gradient, C10_AS_INTARRAYREF_SLOW(sizes).vec(), dim, size, step);
}

/// with_gradient_of(data, lineage): the data of one tensor, with the gradient of another. It is in a joint trace
/// that will be differentiated again, where a write that autograd did not record changed the data of a tensor and left
/// its gradient as it was.
struct WithGradientOf : torch::autograd::Function<WithGradientOf> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& data,
                            const at::Tensor& lineage) {
    context->set_materialize_grads(false);
    at::AutoDispatchBelowADInplaceOrView below;
    static const auto op = c10::Dispatcher::singleton()
                               .findSchemaOrThrow("retrograd::with_gradient_of", "")
                               .typed<at::Tensor(const at::Tensor&, const at::Tensor&)>();
    return op.call(data, lineage);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list& gradients) {
    return {at::Tensor(), gradients[0]};
  }
};

at::Tensor withGradientOf(const at::Tensor& data, const at::Tensor& lineage) {
  return WithGradientOf::apply(data, lineage);
}
at::Tensor dataOf(const at::Tensor& data, const at::Tensor&) { return at::alias(data); }

}  // namespace

TORCH_LIBRARY(retrograd, library) {
  library.def("with_gradient_of(Tensor data, Tensor lineage) -> Tensor");
  library.impl("with_gradient_of", torch::dispatch(c10::DispatchKey::Autograd, TORCH_FN(withGradientOf)));
  for (auto key : {c10::DispatchKey::CPU, c10::DispatchKey::CUDA, c10::DispatchKey::Meta})
    library.impl("with_gradient_of", torch::dispatch(key, TORCH_FN(dataOf)));
}

void registerExtraDerivatives() {
  registerMathematicalForms();
  static const auto libraries = [] {
    std::vector<torch::Library> registered;
    for (auto key : {c10::DispatchKey::AutogradCPU, c10::DispatchKey::AutogradCUDA}) {
      auto& library = registered.emplace_back(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
      library.impl("embedding_renorm", embeddingRenorm);
      library.impl("copy", copy);
      library.impl("as_strided_scatter", stridedScatter);
      library.impl("unfold_backward", unfoldBackward);
      library.impl("rrelu_with_noise_functional", rreluWithNoise);
      // torch.randint_like takes shape and type alone of its operand; the op in its place asks for a derivative.
      for (const auto* name : {"randint_like", "randint_like.low_dtype", "randint_like.Tensor"})
        library.impl(name, torch::CppFunction::makeFallthrough());
    }
    return registered;
  }();
  (void)libraries;
}

}  // namespace retrograd
