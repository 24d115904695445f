#pragma once
#include "core/derivation/op_pack.h"

namespace retrograd {

/// Ops that transformers registers.
OpPack transformersPack();

}  // namespace retrograd
