#pragma once
#include <torch/library.h>

namespace retrograd::torchvision {

/// nms(dets, scores, iou_threshold): indices of the boxes (x1, y1, x2, y2) that stay, by falling score, when each box
/// removes those after it that it overlaps by more than the threshold. It has no gradient.
void registerNms(torch::Library& library);

}  // namespace retrograd::torchvision
