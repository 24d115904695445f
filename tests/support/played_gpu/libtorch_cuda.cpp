// A stand-in for LibTorch's CUDA half. With the stand-in for the driver (fake_driver) in a folder that is in
// LD_LIBRARY_PATH, any program of ours finds a GPU: its memory is the host's, its kernels are those of the CPU, its
// generator is a seed and an offset. Where a GPU would make LibTorch wait, the driver's account says so.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <dlfcn.h>
#include <torch/library.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <set>

#include "tests/support/played_gpu/driver_account.h"
#include "tests/support/played_gpu/generator.h"
#include "tests/support/played_gpu/host_tensors.h"

namespace retrograd::test {

const DriverAccount& driverAccount() {
  static const DriverAccount account = [] {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    const auto find = [driver](const char* name) {
      void* found = driver ? dlsym(driver, name) : nullptr;
      TORCH_CHECK(found, "the played GPU needs the stand-in for the driver: ", name);
      return found;
    };
    return DriverAccount{reinterpret_cast<void (*)(const char*)>(find("fakeCudaLibTorchWaits")),
                         reinterpret_cast<void (*)(void*, std::size_t)>(find("fakeCudaLibTorchTakes")),
                         reinterpret_cast<void (*)(void*)>(find("fakeCudaLibTorchReleases"))};
  }();
  return account;
}

namespace {

const c10::Device gpu(c10::kCUDA, 0);

class PlayedAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* const memory = bytes ? std::malloc(bytes) : nullptr;
    TORCH_CHECK_WITH(OutOfMemoryError, memory || !bytes, "CUDA out of memory. Tried to allocate ", bytes, " bytes");
    return onPlayedGpu(memory, bytes, [memory] { std::free(memory); });
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override {
    c10::CachingDeviceAllocator::DeviceStats statistics;
    constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    const auto now = playedMemory();
    for (auto* one : {&statistics.allocated_bytes[all], &statistics.reserved_bytes[all]})
      one->current = now.bytes, one->peak = now.peak;
    return statistics;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}
};

PlayedAllocator allocator;
const c10::AllocatorRegisterer<c10::kCUDA> registeredAllocator(&allocator);

/// One stream, which is always done.
class PlayedGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::kCUDA; }
  c10::Device exchangeDevice(c10::Device) const override { return gpu; }
  c10::Device getDevice() const override { return gpu; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override { return c10::Stream(c10::Stream::DEFAULT, gpu); }
  c10::Stream getDefaultStream(c10::Device) const override { return c10::Stream(c10::Stream::DEFAULT, gpu); }
  c10::Stream exchangeStream(c10::Stream) const override { return c10::Stream(c10::Stream::DEFAULT, gpu); }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void**, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override { driverAccount().waited("synchronizeStream"); }
  void synchronizeEvent(void*) const override { driverAccount().waited("synchronizeEvent"); }
  void synchronizeDevice(c10::DeviceIndex) const override { driverAccount().waited("synchronizeDevice"); }
};

C10_REGISTER_GUARD_IMPL(CUDA, PlayedGuard)

}  // namespace
}  // namespace retrograd::test

namespace at {

/// In this namespace, as the registry asks.
class PlayedHooks final : public CUDAHooksInterface {
 public:
  explicit PlayedHooks(CUDAHooksArgs) {}
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasCUDA() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return 1; }
  DeviceIndex current_device() const override { return 0; }
  DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(DeviceIndex) const override {}
  DeviceIndex exchangeDevice(DeviceIndex) const override { return 0; }
  DeviceIndex maybeExchangeDevice(DeviceIndex) const override { return 0; }
  int getNumGPUs() const override { return 1; }
  Device getDeviceFromPtr(void*) const override { return retrograd::test::gpu; }
  Allocator* getPinnedMemoryAllocator() const override { return c10::GetAllocator(kCPU); }
  Allocator* getCUDADeviceAllocator() const override { return c10::GetAllocator(kCUDA); }
  const Generator& getDefaultGenerator(DeviceIndex) const override { return retrograd::test::playedGenerator(); }
  Generator getNewGenerator(DeviceIndex) const override { return retrograd::test::newPlayedGenerator(); }
  void deviceSynchronize(DeviceIndex) const override { retrograd::test::driverAccount().waited("deviceSynchronize"); }
  std::string showConfig() const override { return "a played GPU"; }
};

C10_REGISTER_CLASS(CUDAHooksRegistry, CUDAHooks, PlayedHooks)

}  // namespace at

namespace retrograd::test {
namespace {

bool isOnGpu(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() && value.toTensor().is_cuda();
}

/// Where LibTorch waits for a GPU: a number or a tensor goes to the host or comes from there, or the sizes of a result
/// depend on data.
bool waits(const std::string& op, const std::vector<c10::IValue>& arguments) {
  static const std::set<std::string> dataDependent{
      "aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select",     "aten::_unique2",
      "aten::unique_dim",          "aten::equal",   "aten::unique_consecutive"};
  if (op == "aten::copy_") return isOnGpu(arguments[0]) != isOnGpu(arguments[1]);
  return dataDependent.contains(op);
}

bool draws(const c10::OperatorHandle& op) { return op.hasTag(at::Tag::nondeterministic_seeded); }

/// Any op on the GPU: that of the CPU in the same memory.
void play(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const auto count = schema.arguments().size();
  const std::vector<c10::IValue> arguments(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
  torch::jit::drop(*stack, count);
  const bool isWait = waits(schema.name(), arguments);
  HostTensors tensors;
  std::optional<PlayedDraw> draw;
  for (const auto& argument : arguments) {
    if (argument.isGenerator() && argument.toGenerator().device().is_cuda()) {
      draw.emplace(argument.toGenerator());
      stack->emplace_back(at::detail::getDefaultCPUGenerator());
    } else {
      stack->push_back(tensors.toHost(argument));
    }
  }
  if (!draw && draws(op)) draw.emplace(playedGenerator());
  {
    const at::AutoDispatchBelowADInplaceOrView belowAutograd;
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  }
  draw.reset();
  tensors.writeBack();
  const auto results = schema.returns().size();
  for (auto result = stack->size() - results; result < stack->size(); ++result)
    (*stack)[result] = tensors.toDevice((*stack)[result]);
  if (isWait) driverAccount().waited(schema.name().c_str());
}

at::Tensor& playUniform(at::Tensor& self, double from, double to, std::optional<at::Generator> generator) {
  HostTensors tensors;
  auto host = tensors.toHost(self).toTensor();
  const auto& own = generator ? *generator : playedGenerator();
  if (drawUniform(host, from, to, own)) return self;
  const PlayedDraw draw(own);
  host.uniform_(from, to);
  return self;
}

TORCH_LIBRARY_IMPL(_, CUDA, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&play>()); }

// Ops for all devices that look for a kernel of the GPU themselves.
TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  for (const char* op : {"copy_", "_copy_from_and_resize", "convolution", "convolution_backward"})
    library.impl(op, torch::CppFunction::makeFromBoxedFunction<&play>());
  library.impl("uniform_", playUniform);
}

}  // namespace
}  // namespace retrograd::test
