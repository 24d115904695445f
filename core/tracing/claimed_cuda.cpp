#include "core/tracing/claimed_cuda.h"

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

}  // namespace

void claimCuda() {
  if (!c10::impl::hasDeviceGuardImpl(c10::kCUDA)) c10::impl::DeviceGuardImplRegistrar(c10::kCUDA, &noDevice);
}

bool runsOn(c10::Device device) {
  if (!device.is_cuda()) return true;
  return c10::impl::hasDeviceGuardImpl(c10::kCUDA) && c10::impl::getDeviceGuardImpl(c10::kCUDA) != &noDevice;
}

}  // namespace retrograd
