#pragma once
#include "core/derivation/op_pack.h"

namespace retrograd {

OpPack libtorchPack();

}  // namespace retrograd
