#pragma once
#include <cstdint>
#include <string_view>

namespace retrograd {

/// What ops do that no schema says, but for arguments that they write (effects.h). One table has each op's traits, by
/// its name without overload (op_traits.cpp).
enum class OpTrait : std::uint32_t {
  check = 1 << 0,            ///< checks what was true on export, and computes nothing
  detach = 1 << 1,           ///< ends the gradient of what it reads, also in place
  readsMemory = 1 << 2,      ///< sees all memory that its operand lies in, by offsets of its own
  leavesUnwritten = 1 << 3,  ///< makes memory, or more of it, that holds what was there before
  fillsWhole = 1 << 4,       ///< writes each element of its first operand and reads none of them
  changesGeometry = 1 << 5,  ///< in place: other sizes or strides, and no element is written; detach_ changes neither
  replacesMemory = 1 << 6,   ///< gives a tensor other memory
  /// Its kernels take conjugates and negatives as they are. For any other op PyTorch first makes copies of them, also
  /// of what is written, and copies back what the op leaves there: then nothing is read that was just written.
  readsConjugates = 1 << 7,
  raisesVersion = 1 << 8,     ///< autograd sees that it writes running statistics; effects.h says which ops write them
  copiesAtNeed = 1 << 9,      ///< gives a view of its operand, or a copy where that cannot be
  copiesOtherwise = 1 << 10,  ///< the same, and a view only of equal strides
  prints = 1 << 11,           ///< writes text
  region = 1 << 12,           ///< runs its body under another mode, or again in the backward; does nothing by itself
  passesOperands = 1 << 13,   ///< its body's inputs are the operands behind the body, in order
  readsShape = 1 << 14,       ///< reads what its operand is like, and none of its elements
  setsGradMode = 1 << 15,     ///< a region whose first argument says whether gradients are recorded in it
  setsAutocast = 1 << 16,     ///< a region that begins with the arguments of torch.autocast
  runsAgain = 1 << 17,        ///< a region whose body the backward runs again
  dataDecides = 1 << 18,      ///< which body runs, or how often, depends on data
  ordersEffects = 1 << 19,    ///< calls another op, in an order that a token keeps
  asksTensor = 1 << 20,       ///< gives a number of its operand's sizes, strides or offset
};

/// Whether the op of this name ("aten.detach.default", the overload may be missing) has the trait.
bool hasTrait(std::string_view op, OpTrait trait);

}  // namespace retrograd
