#pragma once
#include <ATen/core/Tensor.h>

#include "core/base/ids.h"

namespace retrograd {

/// A content that somebody put into a value by hand.
struct ValueEdit {
  ValueId value;
  at::Tensor content;
};

}  // namespace retrograd
