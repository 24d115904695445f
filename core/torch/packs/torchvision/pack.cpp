// Ops that the package torchvision registers, of those that detection models call.
#include "core/torch/packs/torchvision/pack.h"

#include <ATen/Dispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sort.h>
#include <torch/library.h>

#include <algorithm>
#include <vector>

#include "core/torch/packs/torchvision/roi_align.h"

namespace retrograd {
namespace {

template <class Number>
struct Box {
  Number x1, y1, x2, y2;
  Number area() const { return (x2 - x1) * (y2 - y1); }
};

template <class Number>
Number overlap(const Box<Number>& a, const Box<Number>& b) {
  const auto width = std::max<Number>(0, std::min(a.x2, b.x2) - std::max(a.x1, b.x1));
  const auto height = std::max<Number>(0, std::min(a.y2, b.y2) - std::max(a.y1, b.y1));
  const auto both = width * height;
  return both / (a.area() + b.area() - both);
}

at::Tensor nms(const at::Tensor& boxes, const at::Tensor& scores, double threshold) {
  TORCH_CHECK(boxes.dim() == 2 && boxes.size(1) == 4, "boxes should be a tensor of shape [N, 4], got ", boxes.sizes());
  TORCH_CHECK(scores.dim() == 1 && scores.size(0) == boxes.size(0), "there should be one score for each of ",
              boxes.size(0), " boxes, got ", scores.sizes());
  TORCH_CHECK(boxes.scalar_type() == scores.scalar_type(), "boxes should have the type of scores");
  const auto device = boxes.device();
  const auto order =
      std::get<1>(scores.detach().cpu().sort(/*stable=*/true, /*dim=*/0, /*descending=*/true)).contiguous();
  const auto all = boxes.detach().cpu().contiguous();
  const auto count = all.size(0);
  std::vector<std::int64_t> kept;
  AT_DISPATCH_FLOATING_TYPES(all.scalar_type(), "nms", [&] {
    const auto* at = static_cast<const scalar_t*>(all.const_data_ptr());
    const auto* ranked = static_cast<const std::int64_t*>(order.const_data_ptr());
    const auto box = [&](std::int64_t i) {
      const auto* b = at + 4 * i;
      return Box<scalar_t>{b[0], b[1], b[2], b[3]};
    };
    std::vector<char> removed(count, 0);
    for (std::int64_t i = 0; i < count; ++i) {
      if (removed[ranked[i]]) continue;
      kept.push_back(ranked[i]);
      const auto best = box(ranked[i]);
      for (std::int64_t j = i + 1; j < count; ++j)
        if (!removed[ranked[j]] && overlap(best, box(ranked[j])) > threshold) removed[ranked[j]] = 1;
    }
  });
  auto result = at::empty({std::ssize(kept)}, at::kLong);
  std::ranges::copy(kept, result.mutable_data_ptr<std::int64_t>());
  return result.to(device);
}

/// nms(dets, scores, iou_threshold): indices of the boxes (x1, y1, x2, y2) that stay, by falling score, when each box
/// removes those after it that it overlaps by more than the threshold. It has no gradient.
void registerNms(torch::Library& library) {
  library.def(torch::schema("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"),
              {at::Tag::dynamic_output_shape});
  library.impl("nms", torch::dispatch(c10::DispatchKey::CPU, nms));
  library.impl("nms", torch::dispatch(c10::DispatchKey::CUDA, nms));
  library.impl("nms", torch::dispatch(c10::DispatchKey::Autograd, torch::CppFunction::makeFallthrough()));
}

void registerOps() {
  if (c10::Dispatcher::singleton().findSchema({"torchvision::nms", ""})) return;  // of a library that a person named
  static torch::Library library(torch::Library::FRAGMENT, "torchvision", std::nullopt, __FILE__, __LINE__);
  registerNms(library);
  torchvision::registerRoiAlign(library);
}

}  // namespace

OpPack torchvisionPack() {
  return {"torchvision",
          "torchvision 0.29",
          {"torchvision.nms.default", "torchvision.roi_align.default", "torchvision._roi_align_backward.default"},
          registerOps};
}

}  // namespace retrograd
