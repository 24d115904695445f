#pragma once
#include "core/derivation/op_pack.h"

namespace retrograd {

/// Ops that torchvision registers.
OpPack torchvisionPack();

}  // namespace retrograd
