#pragma once
#include <span>
#include <string_view>

#include "core/derivation/op_pack.h"

namespace retrograd {

/// All packs, by name.
std::span<const OpPack> opPacks();

/// Whether a pack has the op ("torchvision.nms.default"); its ops are registered with LibTorch then. An op of that name
/// that a library brought before stays as it is. Callable from any thread.
bool provideFromPack(std::string_view op);

}  // namespace retrograd
