#include "core/trace/op_traits.h"

#include <unordered_map>

namespace retrograd {
namespace {

constexpr std::uint32_t bits(auto... traits) { return (static_cast<std::uint32_t>(traits) | ...); }

const std::unordered_map<std::string_view, std::uint32_t>& table() {
  using enum OpTrait;
  static const std::unordered_map<std::string_view, std::uint32_t> traits{
      {"aten._assert_async", bits(check)},
      {"aten._assert_scalar", bits(check)},
      {"aten._assert_tensor_metadata", bits(check)},
      {"aten._print", bits(prints)},
      {"aten.sym_constrain_range", bits(check)},
      {"aten.sym_constrain_range_for_size", bits(check)},

      {"aten.sym_is_contiguous", bits(asksTensor)},
      {"aten.sym_numel", bits(asksTensor)},
      {"aten.sym_size", bits(asksTensor)},
      {"aten.sym_storage_offset", bits(asksTensor)},
      {"aten.sym_stride", bits(asksTensor)},

      {"aten.detach", bits(detach)},
      {"aten.detach_", bits(detach, changesGeometry)},
      {"aten.detach_copy", bits(detach)},

      {"aten.as_strided", bits(readsMemory)},
      {"aten.as_strided_", bits(readsMemory, changesGeometry)},
      {"aten.as_strided_copy", bits(readsMemory)},
      {"aten.as_strided_scatter", bits(readsMemory)},

      {"aten._empty_affine_quantized", bits(leavesUnwritten)},
      {"aten._empty_per_channel_affine_quantized", bits(leavesUnwritten)},
      {"aten.empty", bits(leavesUnwritten)},
      {"aten.empty_like", bits(leavesUnwritten)},
      {"aten.empty_permuted", bits(leavesUnwritten)},
      {"aten.empty_quantized", bits(leavesUnwritten)},
      {"aten.empty_strided", bits(leavesUnwritten)},
      {"aten.new_empty", bits(leavesUnwritten)},
      {"aten.new_empty_strided", bits(leavesUnwritten)},

      {"aten.full_like", bits(readsShape)},
      {"aten.new_full", bits(readsShape)},
      {"aten.new_ones", bits(readsShape)},
      {"aten.new_zeros", bits(readsShape)},
      {"aten.ones_like", bits(readsShape)},
      {"aten.rand_like", bits(readsShape)},
      {"aten.randint_like", bits(readsShape)},
      {"aten.randn_like", bits(readsShape)},
      {"aten.zeros_like", bits(readsShape)},

      {"aten.bernoulli_", bits(fillsWhole)},
      {"aten.cauchy_", bits(fillsWhole)},
      {"aten.copy_", bits(fillsWhole, readsConjugates)},
      {"aten.exponential_", bits(fillsWhole)},
      {"aten.fill_", bits(fillsWhole)},
      {"aten.geometric_", bits(fillsWhole)},
      {"aten.log_normal_", bits(fillsWhole)},
      {"aten.normal_", bits(fillsWhole)},
      {"aten.random_", bits(fillsWhole)},
      {"aten.uniform_", bits(fillsWhole)},
      {"aten.zero_", bits(fillsWhole)},
      {"aten.addmm_", bits(readsConjugates)},
      {"aten.baddbmm_", bits(readsConjugates)},

      {"aten.movedim_", bits(changesGeometry)},
      {"aten.permute_", bits(changesGeometry)},
      {"aten.squeeze_", bits(changesGeometry)},
      {"aten.swapaxes_", bits(changesGeometry)},
      {"aten.swapdims_", bits(changesGeometry)},
      {"aten.t_", bits(changesGeometry)},
      {"aten.transpose_", bits(changesGeometry)},
      {"aten.unsqueeze_", bits(changesGeometry)},

      {"aten._resize_output", bits(leavesUnwritten)},
      {"aten._resize_output_", bits(leavesUnwritten, replacesMemory)},
      {"aten.resize", bits(leavesUnwritten)},
      {"aten.resize_", bits(leavesUnwritten, replacesMemory)},
      {"aten.resize_as", bits(leavesUnwritten)},
      {"aten.resize_as_", bits(leavesUnwritten, replacesMemory)},
      {"aten.resize_as_sparse_", bits(replacesMemory)},
      {"aten.set_", bits(replacesMemory)},

      {"aten.instance_norm", bits(raisesVersion)},

      {"aten.contiguous", bits(copiesAtNeed, copiesOtherwise)},
      {"aten.to", bits(copiesAtNeed, copiesOtherwise)},
      {"aten.type_as", bits(copiesAtNeed, copiesOtherwise)},
      {"aten._reshape_alias_copy", bits(copiesAtNeed)},
      {"aten.flatten", bits(copiesAtNeed)},
      {"aten.ravel", bits(copiesAtNeed)},
      {"aten.reshape", bits(copiesAtNeed)},
      {"aten.reshape_as", bits(copiesAtNeed)},
      {"aten.unflatten", bits(copiesAtNeed)},

      {"higher_order.checkpoint", bits(region, passesOperands)},
      {"higher_order.tag_activation_checkpoint", bits(region, passesOperands, runsAgain)},
      {"higher_order.wrap_activation_checkpoint", bits(region)},
      {"higher_order.wrap_with_autocast", bits(region, passesOperands, setsAutocast)},
      {"higher_order.wrap_with_set_grad_enabled", bits(region, passesOperands, setsGradMode)},
      {"higher_order.cond", bits(passesOperands, dataDecides)},
      {"higher_order.hints_wrapper", bits(passesOperands)},
      {"higher_order.invoke_subgraph", bits(passesOperands)},
      {"higher_order.while_loop", bits(dataDecides)},
      {"higher_order.with_effects", bits(ordersEffects)},
      {"higher_order.wrap", bits(passesOperands)},
  };
  return traits;
}

/// "aten.detach" of "aten.detach.default"; "higher_order.cond" has no overload.
std::string_view withoutOverload(std::string_view op) {
  const auto first = op.find('.');
  return first == std::string_view::npos ? op : op.substr(0, op.find('.', first + 1));
}

}  // namespace

bool hasTrait(std::string_view op, OpTrait trait) {
  const auto& traits = table();
  const auto found = traits.find(withoutOverload(op));
  return found != traits.end() && (found->second & static_cast<std::uint32_t>(trait)) != 0;
}

}  // namespace retrograd
