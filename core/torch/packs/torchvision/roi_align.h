#pragma once
#include <torch/library.h>

namespace retrograd::torchvision {

/// roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned): of each region (image,
/// x1, y1, x2, y2) a grid of means of bilinear samples, with its derivative by `input`, to any order. By `rois` it has
/// none, as torchvision says.
void registerRoiAlign(torch::Library& library);

}  // namespace retrograd::torchvision
