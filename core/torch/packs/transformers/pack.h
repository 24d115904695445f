#pragma once
#include "core/derivation/op_pack.h"

namespace retrograd {

OpPack transformersPack();

}  // namespace retrograd
