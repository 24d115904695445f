// Ops that the package transformers registers: products of groups of rows, which its mixture-of-experts models are made
// of.
#include "core/torch/packs/transformers/pack.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <tuple>

namespace retrograd {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Pair = std::tuple<at::Tensor, at::Tensor>;

/// Calls `visit(group, begin, end)` for each group that has rows. `offsets[i]` is where group i ends; the rows from the
/// last end on belong to none. Ends beyond the rows, and negative ones, mean what they mean in a Python slice.
template <class Visit>
void forEachGroup(const at::Tensor& offsets, std::int64_t rows, Visit&& visit) {
  const auto ends = offsets.to(at::kCPU, at::kLong).contiguous();
  const auto* end = static_cast<const std::int64_t*>(ends.const_data_ptr());
  const auto place = [rows](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rows : at, 0, rows); };
  std::int64_t start = 0;
  for (std::int64_t group = 0; group < ends.numel(); ++group) {
    if (start == end[group]) continue;
    const auto from = place(start), to = std::max(from, place(end[group]));
    visit(group, from, to);
    start = end[group];
  }
}

void checkShapes(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& offsets) {
  TORCH_CHECK(input.dim() == 2 && weight.dim() == 3 && offsets.dim() == 1,
              "grouped_mm_fallback takes tensors of 2, 3 and 1 dimensions, got ", input.dim(), ", ", weight.dim(),
              " and ", offsets.dim());
  TORCH_CHECK(input.size(1) == weight.size(1), "grouped_mm_fallback: rows of ", input.size(1), " for weights of ",
              weight.size(1), " rows");
  TORCH_CHECK(offsets.size(0) == weight.size(0), "grouped_mm_fallback: ", offsets.size(0), " groups for ",
              weight.size(0), " weights");
  TORCH_CHECK(at::isIntegralType(offsets.scalar_type(), false), "grouped_mm_fallback: offsets of type ",
              offsets.scalar_type());
}

/// Rows of `input` times the weight of their group; zeros for rows of no group.
at::Tensor groupedMm(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& offsets) {
  checkShapes(input, weight, offsets);
  auto output = at::zeros({input.size(0), weight.size(2)}, input.options());
  forEachGroup(offsets, input.size(0), [&](std::int64_t group, std::int64_t from, std::int64_t to) {
    auto rows = output.slice(0, from, to);
    at::mm_out(rows, input.slice(0, from, to), weight.select(0, group));
  });
  return output;
}

/// Gradients of `input` and `weight`, in their strides; zeros for rows of no group and weights without rows.
Pair groupedMmBackward(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& offsets,
                       const at::Tensor& gradient) {
  checkShapes(input, weight, offsets);
  auto ofInput = at::zeros_like(input), ofWeight = at::zeros_like(weight);
  forEachGroup(offsets, input.size(0), [&](std::int64_t group, std::int64_t from, std::int64_t to) {
    const auto part = gradient.slice(0, from, to);
    auto rows = ofInput.slice(0, from, to);
    auto one = ofWeight.select(0, group);
    at::mm_out(rows, part, weight.select(0, group).t());
    at::mm_out(one, input.slice(0, from, to).t(), part);
  });
  return {ofInput, ofWeight};
}

at::Tensor groupedMmShape(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& offsets) {
  checkShapes(input, weight, offsets);
  return at::empty({input.size(0), weight.size(2)}, input.options());
}

Pair groupedMmBackwardShape(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& offsets,
                            const at::Tensor&) {
  checkShapes(input, weight, offsets);
  return {at::empty_like(input), at::empty_like(weight)};
}

at::Tensor callForward(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& offsets) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("transformers::grouped_mm_fallback", "")
                             .typed<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&)>();
  return op.call(input, weight, offsets);
}

Pair callBackward(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& offsets,
                  const at::Tensor& gradient) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("transformers::grouped_mm_fallback_backward", "")
                             .typed<Pair(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&)>();
  return op.call(input, weight, offsets, gradient);
}

struct GroupedMm : torch::autograd::Function<GroupedMm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& weight,
                            const at::Tensor& offsets) {
    context->save_for_backward({input, weight, offsets});
    context->set_materialize_grads(false);
    at::AutoDispatchBelowADInplaceOrView below;
    return callForward(input, weight, offsets);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    if (!gradients[0].defined()) return variable_list(3);
    const auto saved = context->get_saved_variables();
    const auto [ofInput, ofWeight] = callBackward(saved[0], saved[1], saved[2], gradients[0]);
    return {ofInput, ofWeight, at::Tensor()};
  }
};

/// Both gradients are linear in `gradient`, one also in the weights and one in the input: their derivatives are
/// products of groups again.
struct GroupedMmBackward : torch::autograd::Function<GroupedMmBackward> {
  static variable_list forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& weight,
                               const at::Tensor& offsets, const at::Tensor& gradient) {
    context->save_for_backward({input, weight, offsets, gradient});
    context->set_materialize_grads(false);
    at::AutoDispatchBelowADInplaceOrView below;
    const auto [ofInput, ofWeight] = callBackward(input, weight, offsets, gradient);
    return {ofInput, ofWeight};
  }
  static variable_list backward(AutogradContext* context, const variable_list& arriving) {
    const auto saved = context->get_saved_variables();
    const auto &input = saved[0], &weight = saved[1], &offsets = saved[2], &gradient = saved[3];
    at::Tensor ofInput, ofWeight, ofGradient;
    if (arriving[1].defined()) {
      ofInput = callForward(gradient, arriving[1].transpose(1, 2), offsets);
      ofGradient = callForward(input, arriving[1], offsets);
    }
    if (arriving[0].defined()) {
      ofWeight = std::get<1>(callBackward(arriving[0], weight, offsets, gradient));
      const auto other = callForward(arriving[0], weight, offsets);
      ofGradient = ofGradient.defined() ? ofGradient.add(other) : other;
    }
    return {ofInput, ofWeight, at::Tensor(), ofGradient};
  }
};

at::Tensor differentiable(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& offsets) {
  return GroupedMm::apply(input, weight, offsets);
}

Pair differentiableBackward(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& offsets,
                            const at::Tensor& gradient) {
  const auto results = GroupedMmBackward::apply(input, weight, offsets, gradient);
  return {results[0], results[1]};
}

void registerOps() {
  if (c10::Dispatcher::singleton().findSchema({"transformers::grouped_mm_fallback", ""}))
    return;  // of a library that a person named
  static torch::Library library(torch::Library::FRAGMENT, "transformers", std::nullopt, __FILE__, __LINE__);
  library.def("grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor");
  library.def(
      "grouped_mm_fallback_backward(Tensor input, Tensor weight, Tensor offs, Tensor grad_output) -> (Tensor, Tensor)");
  const auto both = [](auto key, auto* forward, auto* backward) {
    library.impl("grouped_mm_fallback", torch::dispatch(key, forward));
    library.impl("grouped_mm_fallback_backward", torch::dispatch(key, backward));
  };
  both(c10::DispatchKey::CompositeExplicitAutograd, groupedMm, groupedMmBackward);
  both(c10::DispatchKey::Meta, groupedMmShape, groupedMmBackwardShape);
  both(c10::DispatchKey::Autograd, differentiable, differentiableBackward);
}

}  // namespace

OpPack transformersPack() {
  return {"transformers",
          "transformers 5.23",
          {"transformers.grouped_mm_fallback.default", "transformers.grouped_mm_fallback_backward.default"},
          registerOps};
}

}  // namespace retrograd
