#include "core/torch/tracing/claimed_cuda.h"

#include <ATen/SDPBackend.h>
#include <ATen/native/transformers/attention.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace retrograd {
namespace {

class NoDevice final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::kCUDA; }
  c10::Device exchangeDevice(c10::Device device) const override { return device; }
  c10::Device getDevice() const override { return {c10::kCUDA, 0}; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
};

const NoDevice noDevice;

/// Which kernel attention takes is decided by the GPU at hand. Without one, the memory-efficient kernel is taken
/// where every GPU of the last years can run it (it takes masks and all of half, bfloat16 and float32), else the
/// composite of matrix products.
std::int64_t chooseAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                             const std::optional<at::Tensor>&, double, bool, std::optional<double>, bool) {
  const auto type = query.scalar_type();
  const bool half = type == at::kHalf || type == at::kBFloat16;
  const std::int64_t alignment = half ? 8 : 4;  // elements in the 16 bytes that it loads at once
  const auto fits = [&](const at::Tensor& t) {
    return t.dim() == 4 && t.scalar_type() == type && t.numel() > 0 && t.stride(-1) == 1 &&
           t.size(-1) % alignment == 0 && t.size(0) == query.size(0) && t.size(1) == query.size(1);
  };
  const bool possible = (half || type == at::kFloat) && fits(query) && fits(key) && fits(value);
  return static_cast<std::int64_t>(possible ? at::SDPBackend::efficient_attention : at::SDPBackend::math);
}

}  // namespace

void claimCuda() {
  if (c10::impl::hasDeviceGuardImpl(c10::kCUDA)) return;
  c10::impl::DeviceGuardImplRegistrar(c10::kCUDA, &noDevice);
  at::native::_fused_sdp_choice_stub.set_cuda_dispatch_ptr(chooseAttention);
}

bool runsOn(c10::Device device) {
  if (!device.is_cuda()) return true;
  return c10::impl::hasDeviceGuardImpl(c10::kCUDA) && c10::impl::getDeviceGuardImpl(c10::kCUDA) != &noDevice;
}

}  // namespace retrograd
