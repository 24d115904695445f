#include "core/torch/execution/device.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <set>

#include "core/base/error.h"
#include "core/base/installation.h"
#include "core/torch/execution/warnings.h"
#include "core/torch/tracing/convert.h"
#include "core/trace/relocate.h"

namespace retrograd {
namespace {

constexpr const char* driverLibrary = "libcuda.so.1";
constexpr const char* cudaHalf = "libtorch_cuda.so";

std::string lastLoadError() {
  const char* text = dlerror();
  return text ? text : "unknown error";
}

std::string noDriver() {
  return fmt::format("there is no NVIDIA driver on this machine ({}); install the driver of the GPU, or run on the CPU",
                     lastLoadError());
}

/// The few functions of the driver that tell what there is.
class Driver {
 public:
  /// What is missing; empty where GPUs were found.
  std::string start() {
    void* library = dlopen(driverLibrary, RTLD_NOW | RTLD_GLOBAL);
    if (!library) return noDriver();
    const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(library, "cuInit"));
    const auto count = reinterpret_cast<int (*)(int*)>(dlsym(library, "cuDeviceGetCount"));
    const auto name = reinterpret_cast<int (*)(char*, int, int)>(dlsym(library, "cuDeviceGetName"));
    if (!init || !count || !name) return "the NVIDIA driver is incomplete; install it again, or run on the CPU";
    int found = 0;
    if (const int code = init(0); code != 0)
      return fmt::format("the NVIDIA driver does not start (error {}); see what nvidia-smi says, or run on the CPU",
                         code);
    if (const int code = count(&found); code != 0 || found == 0)
      return fmt::format(
          "the NVIDIA driver finds no GPU (error {}); see what nvidia-smi and CUDA_VISIBLE_DEVICES say, or run on the "
          "CPU",
          code);
    for (int i = 0; i < found; ++i) {
      std::array<char, 256> text{};
      names.emplace_back(name(text.data(), static_cast<int>(text.size()) - 1, i) == 0 ? text.data() : "GPU");
    }
    return {};
  }
  std::vector<std::string> names;
};

std::vector<DeviceStatus> findDevices() {
  std::vector<DeviceStatus> found{{Device(), true, {}, {}}};
  Driver driver;
  auto missing = driver.start();
  if (missing.empty() && !dlopen(cudaHalf, RTLD_NOW | RTLD_GLOBAL)) {
    const auto why = lastLoadError();
    const bool isInstalled = !privateFile("libtorch_cpu.so").empty();
    missing = fmt::format("LibTorch's CUDA half does not load ({}); {}, or run on the CPU", why,
                          isInstalled ? "put it into lib/retrograd/cuda as docs/packaging.md says"
                                      : "run scripts/setup on this machine, which fetches it where there is a GPU");
  }
  if (!missing.empty()) {
    found.push_back({Device{Device::Type::cuda, -1}, false, {}, missing});
    return found;
  }
  for (std::size_t i = 0; i < driver.names.size(); ++i)
    found.push_back({Device{Device::Type::cuda, static_cast<std::int8_t>(i)}, true, driver.names[i], {}});
  return found;
}

/// LibTorch warns where the first that a thread asks of a GPU is a product of cuBLAS, though all is well: memory asked
/// for before makes the driver's context. The autograd engine's own threads cannot be reached like that.
void makeContext(Device device) {
  thread_local std::set<std::int8_t> made;
  if (!made.insert(withIndex(device).index).second) return;
  ignoreWarnings("no current CUDA context");
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
  if (device.type != Device::Type::cuda || dlopen(driverLibrary, RTLD_LAZY | RTLD_LOCAL)) return;
  throw Error(ErrorCode::badUse, "cannot be run on: " + noDriver(), toString(device));
}

void synchronise(Device device) {
  if (device.type != Device::Type::cuda) return;
  c10::impl::getDeviceGuardImpl(c10::kCUDA)->synchronizeDevice(toTorchDevice(withIndex(device)).index());
}

DeviceMemory deviceMemory(Device device) {
  if (device.type != Device::Type::cuda) return {};
  const auto statistics = c10::getDeviceAllocator(c10::kCUDA)->getDeviceStats(toTorchDevice(withIndex(device)).index());
  constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return {statistics.allocated_bytes[all].current, statistics.reserved_bytes[all].current};
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
