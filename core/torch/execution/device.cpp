#include "core/torch/execution/device.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <set>

#include "core/base/error.h"
#include "core/base/installation.h"
#include "core/torch/execution/cuda/driver.h"
#include "core/torch/tracing/convert.h"
#include "core/trace/relocate.h"

namespace retrograd {
namespace {

constexpr const char* cudaHalf = "libtorch_cuda.so";

std::vector<DeviceStatus> findDevices() {
  std::vector<DeviceStatus> found{{Device(), true, {}, {}}};
  std::string missing;
  try {
    cuda::driver();
    if (!dlopen(cudaHalf, RTLD_NOW | RTLD_GLOBAL)) {
      const char* text = dlerror();
      const bool isInstalled = !privateFile("libtorch_cpu.so").empty();
      missing =
          fmt::format("LibTorch's CUDA half does not load ({}); {}, or run on the CPU", text ? text : "unknown error",
                      isInstalled ? "put it into lib/retrograd/cuda as docs/packaging.md says"
                                  : "run scripts/setup on this machine, which fetches it where there is a GPU");
    }
  } catch (const Error& e) {
    missing = e.what();
  }
  if (!missing.empty()) {
    found.push_back({Device{Device::Type::cuda, -1}, false, {}, missing});
    return found;
  }
  for (int i = 0; i < cuda::driver().devices(); ++i)
    found.push_back({Device{Device::Type::cuda, static_cast<std::int8_t>(i)}, true, cuda::driver().nameOf(i), {}});
  return found;
}

/// What the autograd engine's threads warn of comes from the thread that waits for them.
class WithoutContextWarning : public c10::WarningHandler {
 public:
  WithoutContextWarning() { c10::WarningUtils::set_warning_handler(this); }
  void process(const c10::Warning& warning) override {
    if (warning.msg().find("no current CUDA context") == std::string::npos) next_->process(warning);
  }

 private:
  c10::WarningHandler* next_ = c10::WarningUtils::get_warning_handler();
};

/// LibTorch warns where the first that a thread asks of a GPU is a product of cuBLAS, though all is well: memory asked
/// for before makes the driver's context. The autograd engine's own threads cannot be reached like that.
void makeContext(Device device) {
  thread_local std::set<std::int8_t> made;
  if (!made.insert(withIndex(device).index).second) return;
  thread_local WithoutContextWarning filter;
  (void)at::empty({1}, at::TensorOptions().device(toTorchDevice(withIndex(device))));
}

}  // namespace

std::vector<DeviceStatus> devices() {
  static const auto found = findDevices();
  return found;
}

DeviceStatus deviceStatus(Device device) {
  if (device.type == Device::Type::cpu) return {device, true, {}, {}};
  if (device.type != Device::Type::cuda) return {device, false, {}, "only cpu and cuda devices can be run on"};
  device = withIndex(device);
  const auto all = devices();
  for (const auto& status : all)
    if (status.device == device) return status;
  if (!all.back().available) return {device, false, {}, all.back().reason};
  return {device,
          false,
          {},
          fmt::format("there are {} GPUs, the last one is {}", all.size() - 1, toString(all.back().device))};
}

void requireDevice(Device device) {
  const auto status = deviceStatus(device);
  if (!status.available) throw Error(ErrorCode::badUse, "cannot be run on: " + status.reason, toString(device));
  if (device.type != Device::Type::cuda) return;
  at::globalContext().lazyInitDevice(c10::kCUDA);  // before generators and allocator figures are asked for
  makeContext(device);
}

Device deviceOfProcess(int number) {
  requireDevice({Device::Type::cuda, 0});
  const auto count = static_cast<int>(devices().size()) - 1;
  return {Device::Type::cuda, static_cast<std::int8_t>(number % count)};
}

std::optional<Device> deviceAsRecorded(const std::string& recorded, const std::vector<DeviceStatus>& there) {
  if (!recorded.starts_with("cuda")) return std::nullopt;
  for (const auto& status : there)
    if (status.available && status.device.type == Device::Type::cuda) return status.device;
  return std::nullopt;
}

void requireDriver(Device device) {
  if (device.type != Device::Type::cuda) return;
  try {
    cuda::requireDriverFile();
  } catch (const Error& e) {
    throw Error(ErrorCode::badUse, std::string("cannot be run on: ") + e.what(), toString(device));
  }
}

void synchronise(Device device) {
  if (device.type != Device::Type::cuda) return;
  c10::impl::getDeviceGuardImpl(c10::kCUDA)->synchronizeDevice(toTorchDevice(withIndex(device)).index());
}

DeviceMemory peakDeviceMemory(Device device) {
  if (device.type != Device::Type::cuda) return {};
  const auto statistics = c10::getDeviceAllocator(c10::kCUDA)->getDeviceStats(toTorchDevice(withIndex(device)).index());
  constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return {statistics.allocated_bytes[all].peak, statistics.reserved_bytes[all].peak};
}

FullPrecision::FullPrecision()
    : convolutions_(at::globalContext().allowTF32CuDNN()), products_(at::globalContext().allowTF32CuBLAS()) {
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setAllowTF32CuBLAS(false);
}

FullPrecision::~FullPrecision() {
  at::globalContext().setAllowTF32CuDNN(convolutions_);
  at::globalContext().setAllowTF32CuBLAS(products_);
}

}  // namespace retrograd
