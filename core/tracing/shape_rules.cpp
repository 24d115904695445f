#include "core/tracing/shape_rules.h"

namespace retrograd {

bool applyShapeRule(const c10::OperatorHandle&, torch::jit::Stack&) { return false; }

}  // namespace retrograd
