#include "core/torch/execution/device_statistics.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "core/torch/execution/cuda/statistics.h"
#include "core/torch/execution/cuda/summary.h"
#include "core/torch/execution/cuda_library.h"
#include "core/torch/tracing/convert.h"

namespace retrograd {
namespace {

constexpr int mostCells = 4096;  // that the kernel has counters for
constexpr void* defaultStream =
    nullptr;  // LibTorch's too, as nothing here chooses another: the kernel runs after what made the tensor

/// As the kernels take it; `kept` holds what had to be copied.
std::optional<cuda::Tensor> viewOf(const at::Tensor& tensor, at::Tensor& kept) {
  if (!tensor.defined() || !tensor.is_cuda() || !cudaLibrary()) return std::nullopt;
  kept = tensor.detach();
  if (kept.layout() != at::kStrided) kept = kept.to_dense();
  kept = kept.resolve_neg();  // conjugation leaves absolute values alone
  const bool dense = kept.is_non_overlapping_and_dense();
  if (!dense && kept.dim() > cuda::maximumDims) kept = kept.contiguous();
  const auto dtype = findDType(kept.scalar_type());
  if (!dtype) return std::nullopt;
  cuda::Tensor view{};
  view.data = kept.const_data_ptr();
  view.elements = kept.numel();
  view.dtype = static_cast<std::int32_t>(*dtype);
  view.contiguous = kept.is_non_overlapping_and_dense();
  if (view.contiguous) return view;
  view.dims = static_cast<std::int32_t>(kept.dim());
  for (std::int64_t d = 0; d < kept.dim(); ++d) {
    view.sizes[d] = kept.size(d);
    view.strides[d] = kept.stride(d);
  }
  return view;
}

void require(int code, const char* what) {
  if (code != 0)
    throw Error(ErrorCode::execution, std::string(what) + " fails on the GPU: " + cudaLibrary()->error(code));
}

cuda::Summary summarise(const cuda::Tensor& view, c10::Device device) {
  const auto* guard = c10::impl::getDeviceGuardImpl(c10::kCUDA);
  const auto before = guard->exchangeDevice(device);
  cuda::Summary summary;
  const int code = cudaLibrary()->summarise(&view, defaultStream, &summary);
  guard->setDevice(before);
  require(code, "the statistics kernel");
  return summary;
}

}  // namespace

std::optional<DeviceSummary> summariseOnDevice(const at::Tensor& tensor) {
  at::Tensor kept;
  const auto view = viewOf(tensor, kept);
  if (!view) return std::nullopt;
  const auto summary = summarise(*view, kept.device());
  return DeviceSummary{cuda::toStatistics(summary), {summary.magnitudes, summary.magnitudes + cuda::magnitudeCells}};
}

std::optional<std::vector<std::int64_t>> histogramOnDevice(const at::Tensor& tensor, int bins) {
  at::Tensor kept;
  const auto view = bins <= mostCells ? viewOf(tensor, kept) : std::nullopt;
  if (!view) return std::nullopt;
  std::vector<std::int64_t> counts(bins, 0);
  const auto summary = summarise(*view, kept.device());
  if (summary.finite == 0) return counts;
  const auto* guard = c10::impl::getDeviceGuardImpl(c10::kCUDA);
  const auto before = guard->exchangeDevice(kept.device());
  const int code =
      cudaLibrary()->histogram(&*view, summary.least, cuda::linearScale(summary.least, summary.greatest, bins), bins,
                               defaultStream, counts.data());
  guard->setDevice(before);
  require(code, "the histogram kernel");
  return counts;
}

}  // namespace retrograd
