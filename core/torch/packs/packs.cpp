#include "core/torch/packs/packs.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "core/torch/packs/libtorch/pack.h"
#include "core/torch/packs/torchvision/pack.h"
#include "core/torch/packs/transformers/pack.h"

namespace retrograd {

std::span<const OpPack> opPacks() {
  static const std::array<OpPack, 3> packs{libtorchPack(), torchvisionPack(), transformersPack()};
  return packs;
}

bool provideFromPack(std::string_view op) {
  const auto packs = opPacks();
  for (std::size_t i = 0; i < packs.size(); ++i) {
    if (std::ranges::find(packs[i].ops, op) == packs[i].ops.end()) continue;
    static std::array<std::once_flag, 8> registered;
    std::call_once(registered.at(i), packs[i].registerOps);
    return true;
  }
  return false;
}

}  // namespace retrograd
