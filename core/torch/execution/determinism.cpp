#include "core/torch/execution/determinism.h"

#include <algorithm>
#include <map>

namespace retrograd {
namespace {

constexpr std::string_view atomics = "it adds by atomics, in the order in which threads arrive";

// LibTorch 2.11 to 2.15: what asks `globalContext().deterministicAlgorithms()`, and what calls
// `alertNotDeterministic()`, in aten/src/ATen/native and its folder cuda.
constexpr KernelRule rules[] = {
    // Another kernel, which is right.
    {"aten.convolution", GpuKernel::deterministic, "cuDNN's deterministic algorithms"},
    {"aten.convolution_backward", GpuKernel::deterministic, "cuDNN's deterministic algorithms"},
    {"aten.cudnn_convolution", GpuKernel::deterministic, "cuDNN's deterministic algorithms"},
    {"aten.cudnn_convolution_transpose", GpuKernel::deterministic, "cuDNN's deterministic algorithms"},
    {"aten.cudnn_convolution_relu", GpuKernel::deterministic, "cuDNN's deterministic algorithms"},
    {"aten.cudnn_convolution_add_relu", GpuKernel::deterministic, "cuDNN's deterministic algorithms"},
    {"aten.index_put", GpuKernel::deterministic, "sorted indices, summed in their order"},
    {"aten._index_put_impl", GpuKernel::deterministic, "sorted indices, summed in their order"},
    {"aten._unsafe_index_put", GpuKernel::deterministic, "sorted indices, summed in their order"},
    {"aten._unsafe_masked_index_put_accumulate", GpuKernel::deterministic, "sorted indices, summed in their order"},
    {"aten.embedding_dense_backward", GpuKernel::deterministic, "sorted indices, summed in their order"},
    {"aten.max_pool3d_with_indices_backward", GpuKernel::deterministic, "sorted indices, summed in their order"},
    {"aten.cumsum", GpuKernel::deterministic, "a scan whose blocks do not depend on timing"},
    {"aten.bmm", GpuKernel::deterministic, "of sparse matrices: cuSPARSE's deterministic algorithm"},
    // The same, but where the mode only warns these keep to the kernel that adds by atomics.
    {"aten._flash_attention_backward", GpuKernel::strict, "key blocks are summed in order"},
    {"aten._scaled_dot_product_flash_attention_backward", GpuKernel::strict, "key blocks are summed in order"},
    {"aten._efficient_attention_backward", GpuKernel::strict, "keys are not split"},
    {"aten._scaled_dot_product_efficient_attention_backward", GpuKernel::strict, "keys are not split"},
    {"aten._cudnn_attention_backward", GpuKernel::strict, "cuDNN's deterministic algorithm"},
    {"aten._scaled_dot_product_cudnn_attention_backward", GpuKernel::strict, "cuDNN's deterministic algorithm"},
    // By index_put, for which a tensor without dimensions has none that could be indexed: "too many indices for tensor
    // of dimension 0".
    {"aten.scatter", GpuKernel::ofDimensions, "by index_put"},
    {"aten.scatter_add", GpuKernel::ofDimensions, "by index_put"},
    {"aten.scatter_reduce", GpuKernel::ofDimensions, "by index_put"},
    {"aten.index_add", GpuKernel::ofDimensions, "by index_put"},
    {"aten.index_copy", GpuKernel::ofDimensions, "by index_put"},
    // reflection_pad2d_backward_det_out_kernel misses contributions of the border (off by 2.2 of 2.6 on an H200; eager
    // PyTorch in this mode has the same numbers).
    {"aten.reflection_pad2d_backward", GpuKernel::wrong, atomics},
    // Nothing but atomics.
    {"aten.index_reduce", GpuKernel::none, atomics},
    {"aten.reflection_pad1d_backward", GpuKernel::none, atomics},
    {"aten.reflection_pad3d_backward", GpuKernel::none, atomics},
    {"aten.replication_pad1d_backward", GpuKernel::none, atomics},
    {"aten.replication_pad2d_backward", GpuKernel::none, atomics},
    {"aten.replication_pad3d_backward", GpuKernel::none, atomics},
    {"aten.avg_pool3d_backward", GpuKernel::none, atomics},
    {"aten._adaptive_avg_pool2d_backward", GpuKernel::none, atomics},
    {"aten._adaptive_avg_pool3d_backward", GpuKernel::none, atomics},
    {"aten.adaptive_max_pool2d_backward", GpuKernel::none, atomics},
    {"aten.adaptive_max_pool3d_backward", GpuKernel::none, atomics},
    {"aten.fractional_max_pool2d_backward", GpuKernel::none, atomics},
    {"aten.fractional_max_pool3d_backward", GpuKernel::none, atomics},
    {"aten.max_unpool2d", GpuKernel::none, "of equal indices any may write last"},
    {"aten.max_unpool3d", GpuKernel::none, "of equal indices any may write last"},
    {"aten.upsample_linear1d_backward", GpuKernel::none, atomics},
    {"aten.upsample_bilinear2d_backward", GpuKernel::none, atomics},
    {"aten.upsample_bicubic2d_backward", GpuKernel::none, atomics},
    {"aten.upsample_trilinear3d_backward", GpuKernel::none, atomics},
    {"aten._upsample_bilinear2d_aa_backward", GpuKernel::none, atomics},
    {"aten._upsample_bicubic2d_aa_backward", GpuKernel::none, atomics},
    {"aten.grid_sampler_2d_backward", GpuKernel::none, atomics},
    {"aten.grid_sampler_3d_backward", GpuKernel::none, atomics},
    {"aten.nll_loss2d_forward", GpuKernel::none, atomics},
    {"aten.nll_loss2d_backward", GpuKernel::none, atomics},
    {"aten._ctc_loss_backward", GpuKernel::none, atomics},
    {"aten._embedding_bag_backward", GpuKernel::none, atomics},
    {"aten._embedding_bag_dense_backward", GpuKernel::none, atomics},
    {"aten.put", GpuKernel::none, atomics},
    {"aten.histc", GpuKernel::none, atomics},
    {"aten.bincount", GpuKernel::none, atomics},
    {"aten.median", GpuKernel::none, "of equal elements any may give the index"},
    {"aten.kthvalue", GpuKernel::none, "of equal elements any may give the index"},
};

/// "aten.scatter_add" for "aten.scatter_add_.default".
std::string_view baseName(std::string_view name) {
  const auto space = name.find('.');
  if (const auto overload = name.find('.', space + 1); overload != name.npos) name = name.substr(0, overload);
  if (name.ends_with('_') && !name.ends_with("__")) name.remove_suffix(1);
  return name;
}

const KernelRule* ruleOf(std::string_view name) {
  const auto base = baseName(name);
  const auto* const found =
      std::find_if(std::begin(rules), std::end(rules), [&](const auto& r) { return r.op == base; });
  return found == std::end(rules) ? nullptr : found;
}

const TensorMeta* metaOf(const Document& document, ValueId id) {
  return id && document.isTensor(id) ? &document.meta(id) : nullptr;
}

/// The literal of a text argument by name, as `reduce`; empty where there is none.
std::string_view textArgument(const Document& document, BoundSymbolId op, std::string_view name) {
  const auto& bound = document.boundSymbol(op);
  const auto at = document.symbol(bound.symbol).argumentIndex(name);
  const auto& arguments = document.pattern(bound.pattern).arguments;
  if (at < 0 || static_cast<std::size_t>(at) >= arguments.size()) return {};
  const auto& argument = arguments[at];
  return argument.kind == Argument::Kind::string ? std::string_view(argument.text) : std::string_view();
}

/// Whether the result is the same in whatever order its parts come: the largest or the smallest of many, or one
/// element.
bool hasNoOrder(const Document& document, BoundSymbolId op) {
  const auto reduce = textArgument(document, op, "reduce");
  const auto operands = document.operands(op);
  return reduce == "amax" || reduce == "amin" || std::ranges::all_of(operands, [&](ValueId id) {
           const auto* meta = metaOf(document, id);
           return !meta || meta->elements() <= 1;
         });
}

/// Whether the mode's index_put does what the op does: of reductions it knows sums only.
bool isByIndexPut(const Document& document, BoundSymbolId op) {
  const auto reduce = textArgument(document, op, "reduce");
  const auto operands = document.operands(op);
  const auto* into = operands.empty() ? nullptr : metaOf(document, operands.front());
  return into && !into->sizes.empty() && (reduce.empty() || reduce == "add" || reduce == "sum" || reduce == "mean");
}

}  // namespace

std::span<const KernelRule> gpuKernelRules() { return rules; }

KernelChoice gpuKernelOf(const Document& document, BoundSymbolId op) {
  const auto& symbol = document.symbol(op);
  const auto* rule = ruleOf(symbol.name);
  if (!rule) return {};
  const bool isChosen =
      rule->kernel == GpuKernel::ofDimensions ? isByIndexPut(document, op) : KernelChoice{rule->kernel, {}}.usesMode();
  if (isChosen) return {rule->kernel == GpuKernel::strict ? GpuKernel::strict : GpuKernel::deterministic, {}};
  const auto reason = rule->kernel == GpuKernel::ofDimensions ? atomics : rule->reason;
  return {rule->kernel, hasNoOrder(document, op) ? std::string_view() : reason};
}

std::string lastBitNote(const Document& document, std::span<const BoundSymbolId> ops) {
  std::map<std::string_view, std::string_view> reasons;
  for (const auto op : ops)
    if (const auto choice = gpuKernelOf(document, op); !choice.lastBit.empty())
      reasons.emplace(baseName(document.symbol(op).name), choice.lastBit);
  std::string text;
  for (const auto& [name, reason] : reasons)
    text += (text.empty() ? "" : ", ") + std::string(name) + " (" + std::string(reason) + ")";
  return text.empty() ? text
                      : "a step back over these ops may change the last bit of their results, because LibTorch has no "
                        "deterministic kernel for them that is right: " +
                            text;
}

}  // namespace retrograd
