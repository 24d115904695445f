#pragma once
#include "core/derivation/op_pack.h"

namespace retrograd {

/// What ops of LibTorch itself lack in C++: shapes, second derivatives.
OpPack libtorchPack();

}  // namespace retrograd
