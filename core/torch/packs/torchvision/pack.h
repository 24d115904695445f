#pragma once
#include "core/derivation/op_pack.h"

namespace retrograd {

OpPack torchvisionPack();

}  // namespace retrograd
