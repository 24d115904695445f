#pragma once
#include "core/derivation/registry.h"

namespace retrograd {

/// Rules that go before LibTorch's own derivatives on the CPU, where the formula that LibTorch takes while ops are
/// intercepted gives other numbers than the one it takes in an eager run. Registered rules go before these.
const RuleRegistry& ownRules();

}  // namespace retrograd
