#include "core/torch/packs/torchvision/roi_align.h"

#include <ATen/Dispatch.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

namespace retrograd::torchvision {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Options {
  double scale;
  std::int64_t height, width;  ///< of the result
  std::int64_t samples;        ///< in each direction for a cell; 0 or less: as many as it has pixels
  bool aligned;
};

constexpr std::int64_t mostSamples = 4096;  ///< of a cell in a direction

/// The four pixels around a sample, and their weights.
template <class Number>
struct Corners {
  std::array<std::int64_t, 4> at{};
  std::array<Number, 4> weight{};
};

template <class Number>
Corners<Number> cornersOf(Number y, Number x, std::int64_t height, std::int64_t width) {
  if (y < -1 || y > static_cast<Number>(height) || x < -1 || x > static_cast<Number>(width)) return {};
  const auto split = [](Number v, std::int64_t size) {
    v = std::max<Number>(v, 0);
    auto low = static_cast<std::int64_t>(v), high = low + 1;
    if (low >= size - 1) {
      low = high = size - 1;
      v = static_cast<Number>(low);
    }
    return std::tuple(low, high, v - static_cast<Number>(low));
  };
  const auto [top, bottom, down] = split(y, height);
  const auto [left, right, across] = split(x, width);
  return {{top * width + left, top * width + right, bottom * width + left, bottom * width + right},
          {(1 - down) * (1 - across), (1 - down) * across, down * (1 - across), down * across}};
}

/// Calls `visit(image, row, column, corners, 1 / samples)` for every sample of a region.
template <class Number, class Visit>
void forEachSample(const Number* region, const Options& options, std::int64_t height, std::int64_t width,
                   Visit&& visit) {
  const auto scale = static_cast<Number>(options.scale), offset = static_cast<Number>(options.aligned ? 0.5 : 0.0);
  const auto left = region[1] * scale - offset, top = region[2] * scale - offset;
  auto across = region[3] * scale - offset - left, down = region[4] * scale - offset - top;
  if (!options.aligned) {
    across = std::max<Number>(across, 1);
    down = std::max<Number>(down, 1);
  }
  const auto cellHeight = down / static_cast<Number>(options.height),
             cellWidth = across / static_cast<Number>(options.width);
  TORCH_CHECK(std::abs(cellHeight) < mostSamples && std::abs(cellWidth) < mostSamples && options.samples < mostSamples,
              "roi_align: a region is not finite, or its cells have more than ", mostSamples, " pixels on a side");
  const auto rows = options.samples > 0 ? options.samples : static_cast<std::int64_t>(std::ceil(cellHeight));
  const auto columns = options.samples > 0 ? options.samples : static_cast<std::int64_t>(std::ceil(cellWidth));
  const auto count = static_cast<Number>(std::max<std::int64_t>(rows * columns, 1));
  const auto image = static_cast<std::int64_t>(region[0]);
  for (std::int64_t i = 0; i < options.height; ++i)
    for (std::int64_t j = 0; j < options.width; ++j)
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto y = top + static_cast<Number>(i) * cellHeight +
                       (static_cast<Number>(r) + Number(0.5)) * cellHeight / static_cast<Number>(rows);
        for (std::int64_t c = 0; c < columns; ++c) {
          const auto x = left + static_cast<Number>(j) * cellWidth +
                         (static_cast<Number>(c) + Number(0.5)) * cellWidth / static_cast<Number>(columns);
          visit(image, i, j, cornersOf(y, x, height, width), count);
        }
      }
}

void checkRegions(const at::Tensor& regions, const at::Tensor& like, std::int64_t images) {
  TORCH_CHECK(regions.dim() == 2 && regions.size(1) == 5, "rois must have shape [K, 5], got ", regions.sizes());
  TORCH_CHECK(like.dim() == 4, "roi_align takes a tensor of 4 dimensions, got ", like.dim());
  TORCH_CHECK(regions.scalar_type() == like.scalar_type(), "roi_align: rois and input must have one type");
  if (regions.numel() == 0) return;
  const auto index = regions.select(1, 0);
  TORCH_CHECK(index.min().item().toDouble() >= 0 && index.max().item().toDouble() < static_cast<double>(images),
              "roi_align: a region names an image that there is not");
}

at::Tensor roiAlign(const at::Tensor& input, const at::Tensor& regions, double scale, std::int64_t height,
                    std::int64_t width, std::int64_t samples, bool aligned) {
  checkRegions(regions, input, input.dim() == 4 ? input.size(0) : 0);
  const Options options{scale, height, width, samples, aligned};
  const auto pixels = input.contiguous(), all = regions.contiguous();
  const auto channels = input.size(1), high = input.size(2), wide = input.size(3);
  auto result = at::zeros({regions.size(0), channels, height, width}, input.options());
  AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "roi_align", [&] {
    const auto* from = static_cast<const scalar_t*>(pixels.const_data_ptr());
    auto* to = result.mutable_data_ptr<scalar_t>();
    for (std::int64_t k = 0; k < all.size(0); ++k)
      forEachSample(static_cast<const scalar_t*>(all.const_data_ptr()) + 5 * k, options, high, wide,
                    [&](auto image, auto row, auto column, const Corners<scalar_t>& corners, scalar_t count) {
                      for (std::int64_t c = 0; c < channels; ++c) {
                        const auto* plane = from + (image * channels + c) * high * wide;
                        scalar_t sum = 0;
                        for (int corner = 0; corner < 4; ++corner)
                          sum += corners.weight[corner] * plane[corners.at[corner]];
                        to[((k * channels + c) * height + row) * width + column] += sum / count;
                      }
                    });
  });
  return result;
}

at::Tensor roiAlignBackward(const at::Tensor& gradient, const at::Tensor& regions, double scale, std::int64_t height,
                            std::int64_t width, std::int64_t images, std::int64_t channels, std::int64_t high,
                            std::int64_t wide, std::int64_t samples, bool aligned) {
  checkRegions(regions, gradient, images);
  const Options options{scale, height, width, samples, aligned};
  const auto arriving = gradient.contiguous(), all = regions.contiguous();
  auto result = at::zeros({images, channels, high, wide}, gradient.options());
  AT_DISPATCH_FLOATING_TYPES(gradient.scalar_type(), "_roi_align_backward", [&] {
    const auto* from = static_cast<const scalar_t*>(arriving.const_data_ptr());
    auto* to = result.mutable_data_ptr<scalar_t>();
    for (std::int64_t k = 0; k < all.size(0); ++k)
      forEachSample(static_cast<const scalar_t*>(all.const_data_ptr()) + 5 * k, options, high, wide,
                    [&](auto image, auto row, auto column, const Corners<scalar_t>& corners, scalar_t count) {
                      for (std::int64_t c = 0; c < channels; ++c) {
                        const auto part = from[((k * channels + c) * height + row) * width + column] / count;
                        auto* plane = to + (image * channels + c) * high * wide;
                        for (int corner = 0; corner < 4; ++corner)
                          plane[corners.at[corner]] += corners.weight[corner] * part;
                      }
                    });
  });
  return result;
}

at::Tensor roiAlignShape(const at::Tensor& input, const at::Tensor& regions, double, std::int64_t height,
                         std::int64_t width, std::int64_t, bool) {
  return at::empty({regions.size(0), input.size(1), height, width}, input.options());
}

at::Tensor roiAlignBackwardShape(const at::Tensor& gradient, const at::Tensor&, double, std::int64_t, std::int64_t,
                                 std::int64_t images, std::int64_t channels, std::int64_t high, std::int64_t wide,
                                 std::int64_t, bool) {
  return at::empty({images, channels, high, wide}, gradient.options());
}

using Forward = at::Tensor(const at::Tensor&, const at::Tensor&, double, std::int64_t, std::int64_t, std::int64_t,
                           bool);
using Backward = at::Tensor(const at::Tensor&, const at::Tensor&, double, std::int64_t, std::int64_t, std::int64_t,
                            std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool);

auto forwardOp() {
  return c10::Dispatcher::singleton().findSchemaOrThrow("torchvision::roi_align", "").typed<Forward>();
}
auto backwardOp() {
  return c10::Dispatcher::singleton().findSchemaOrThrow("torchvision::_roi_align_backward", "").typed<Backward>();
}

/// What both directions keep: they are linear in the pixels, and each is the other's derivative.
void keep(AutogradContext* context, const at::Tensor& regions, const Options& options, at::IntArrayRef sizes) {
  context->save_for_backward({regions});
  context->set_materialize_grads(false);
  context->saved_data["scale"] = options.scale;
  context->saved_data["numbers"] =
      std::vector<std::int64_t>{options.height, options.width, options.samples, options.aligned};
  context->saved_data["sizes"] = sizes.vec();
}

struct Kept {
  explicit Kept(AutogradContext* context)
      : regions(context->get_saved_variables()[0]),
        scale(context->saved_data["scale"].toDouble()),
        numbers(context->saved_data["numbers"].toIntVector()),
        sizes(context->saved_data["sizes"].toIntVector()) {}
  at::Tensor forward(const at::Tensor& input) const {
    return forwardOp().call(input, regions, scale, numbers[0], numbers[1], numbers[2], numbers[3] != 0);
  }
  at::Tensor backward(const at::Tensor& gradient) const {
    return backwardOp().call(gradient, regions, scale, numbers[0], numbers[1], sizes[0], sizes[1], sizes[2], sizes[3],
                             numbers[2], numbers[3] != 0);
  }

  at::Tensor regions;
  double scale;
  std::vector<std::int64_t> numbers, sizes;
};

struct RoiAlign : torch::autograd::Function<RoiAlign> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& regions, double scale,
                            std::int64_t height, std::int64_t width, std::int64_t samples, bool aligned) {
    keep(context, regions, {scale, height, width, samples, aligned}, input.sizes());
    at::AutoDispatchBelowADInplaceOrView below;
    return forwardOp().call(input, regions, scale, height, width, samples, aligned);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list result(7);
    if (gradients[0].defined()) result[0] = Kept(context).backward(gradients[0]);
    return result;
  }
};

struct RoiAlignBackward : torch::autograd::Function<RoiAlignBackward> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gradient, const at::Tensor& regions,
                            double scale, std::int64_t height, std::int64_t width, std::int64_t images,
                            std::int64_t channels, std::int64_t high, std::int64_t wide, std::int64_t samples,
                            bool aligned) {
    keep(context, regions, {scale, height, width, samples, aligned}, {images, channels, high, wide});
    at::AutoDispatchBelowADInplaceOrView below;
    return backwardOp().call(gradient, regions, scale, height, width, images, channels, high, wide, samples, aligned);
  }
  static variable_list backward(AutogradContext* context, const variable_list& arriving) {
    variable_list result(11);
    if (arriving[0].defined()) result[0] = Kept(context).forward(arriving[0]);
    return result;
  }
};

at::Tensor differentiable(const at::Tensor& input, const at::Tensor& regions, double scale, std::int64_t height,
                          std::int64_t width, std::int64_t samples, bool aligned) {
  return RoiAlign::apply(input, regions, scale, height, width, samples, aligned);
}

at::Tensor differentiableBackward(const at::Tensor& gradient, const at::Tensor& regions, double scale,
                                  std::int64_t height, std::int64_t width, std::int64_t images, std::int64_t channels,
                                  std::int64_t high, std::int64_t wide, std::int64_t samples, bool aligned) {
  return RoiAlignBackward::apply(gradient, regions, scale, height, width, images, channels, high, wide, samples,
                                 aligned);
}

}  // namespace

void registerRoiAlign(torch::Library& library) {
  library.def(
      "roi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, int "
      "sampling_ratio, bool aligned) -> Tensor");
  library.def(
      "_roi_align_backward(Tensor grad, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, int "
      "batch_size, int channels, int height, int "
      "width, "
      "int sampling_ratio, bool aligned) -> Tensor");
  const auto both = [&](auto key, Forward* forward, Backward* backward) {
    library.impl("roi_align", torch::dispatch(key, forward));
    library.impl("_roi_align_backward", torch::dispatch(key, backward));
  };
  both(c10::DispatchKey::CPU, roiAlign, roiAlignBackward);
  both(c10::DispatchKey::Meta, roiAlignShape, roiAlignBackwardShape);
  both(c10::DispatchKey::Autograd, differentiable, differentiableBackward);
}

}  // namespace retrograd::torchvision
