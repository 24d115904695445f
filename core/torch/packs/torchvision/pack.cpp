// Ops that the package torchvision registers, of those that detection models call.
#include "core/torch/packs/torchvision/pack.h"

#include <memory>

#include "core/torch/packs/torchvision/nms.h"
#include "core/torch/packs/torchvision/roi_align.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

namespace retrograd {
namespace {

void registerOps() {
  static std::unique_ptr<torch::Library> library;
  if (c10::Dispatcher::singleton().findSchema({"torchvision::nms", ""})) return;  // of a library that a person named
  library = std::make_unique<torch::Library>(torch::Library::FRAGMENT, "torchvision", std::nullopt, __FILE__, __LINE__);
  torchvision::registerNms(*library);
  torchvision::registerRoiAlign(*library);
}

}  // namespace

OpPack torchvisionPack() {
  return {"torchvision",
          "torchvision 0.29",
          {"torchvision.nms.default", "torchvision.roi_align.default", "torchvision._roi_align_backward.default"},
          registerOps};
}

}  // namespace retrograd
