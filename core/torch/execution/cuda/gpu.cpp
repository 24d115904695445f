#include "core/torch/execution/cuda/gpu.h"

#include <fstream>
#include <iterator>

#include "core/base/error.h"
#include "core/base/installation.h"
#include "core/torch/execution/cuda/interface.h"

namespace retrograd::cuda {
namespace {

constexpr int processorCount = 16;  // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
constexpr int notReady = 600;       // CUDA_ERROR_NOT_READY
constexpr void* stream = nullptr;

}  // namespace

std::string kernelFile() { return privateFile(kernelFileName).string(); }

Gpu::Gpu(const Driver& driver, int index) : driver_(driver), index_(index) {
  driver_.check(driver_.retainContext(&context_, index), "the context");
}

void Gpu::enter() {
  void* current = nullptr;
  driver_.check(driver_.currentContext(&current), "the context");
  if (current != context_) driver_.check(driver_.setContext(context_), "the context");
}

void Gpu::loadKernels() {
  tried_ = true;
  const auto path = kernelFile();
  if (path.empty()) {
    without_ = "this build has no kernels for GPUs: it was made without nvcc";
    return;
  }
  std::ifstream file(path, std::ios::binary);
  const std::string image{std::istreambuf_iterator<char>(file), {}};
  try {
    enter();
    driver_.check(driver_.loadModule(&module_, image.data()), "loading kernels");
    driver_.check(driver_.deviceAttribute(&processors_, processorCount, index_), "the GPU's description");
  } catch (const Error& e) {
    without_ = path + ": " + e.what();
  }
}

const std::string& Gpu::withoutKernels() {
  const std::lock_guard lock(mutex_);
  if (!tried_) loadKernels();
  return without_;
}

Kernel Gpu::kernel(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (const auto known = kernels_.find(name); known != kernels_.end()) return known->second;
  enter();
  Kernel kernel;
  if (driver_.findFunction(&kernel.function, module_, name.c_str()) != 0)
    throw Error(ErrorCode::internal, "the kernel is not in " + kernelFile(), name);
  int perProcessor = 1;
  driver_.check(driver_.blocksAtOnce(&perProcessor, kernel.function, threads, 0), "the kernel's description");
  kernel.resident = perProcessor * processors_;
  return kernels_.emplace(name, kernel).first->second;
}

void Gpu::launch(const Kernel& kernel, int columns, int rows, std::span<void*> parameters) {
  enter();
  driver_.check(driver_.launch(kernel.function, static_cast<unsigned>(columns), static_cast<unsigned>(rows), 1, threads,
                               1, 1, 0, stream, parameters.data(), nullptr),
                "a kernel");
}

Memory Gpu::allocate(std::size_t bytes) {
  enter();
  std::uint64_t address = 0;
  driver_.check(driver_.allocate(&address, bytes), "memory for statistics");
  return {driver_, address};
}

void Gpu::copyToDevice(const Memory& memory, const void* from, std::size_t bytes, std::size_t offset) {
  enter();
  driver_.check(driver_.copyToDevice(memory.address() + offset, from, bytes, stream), "a copy");
  driver_.check(driver_.synchroniseStream(stream), "an op or a kernel before a copy");
}

void Gpu::clear(const Memory& memory, std::size_t bytes, std::size_t offset) {
  enter();
  driver_.check(driver_.fill(memory.address() + offset, 0, bytes, stream), "clearing memory");
}

void Gpu::copyToHost(void* to, const Memory& memory, std::size_t bytes, std::size_t offset) {
  enter();
  driver_.check(driver_.copyToHost(to, memory.address() + offset, bytes, stream), "a copy");
  driver_.check(driver_.synchroniseStream(stream), "an op or a kernel before a copy");
}

void* Gpu::createEvent() {
  enter();
  void* event = nullptr;
  driver_.check(driver_.createEvent(&event, 0), "an event");
  return event;
}

void Gpu::destroyEvent(void* event) { driver_.destroyEvent(event); }

void Gpu::record(void* event) {
  enter();
  driver_.check(driver_.recordEvent(event, stream), "an event");
}

bool Gpu::isReached(void* event) {
  const int code = driver_.queryEvent(event);
  if (code == notReady) return false;
  driver_.check(code, "an op before an event");
  return true;
}

void Gpu::wait(void* event) { driver_.check(driver_.synchroniseEvent(event), "an op before an event"); }

double Gpu::secondsBetween(void* begin, void* end) {
  float milliseconds = 0;
  driver_.check(driver_.elapsed(&milliseconds, begin, end), "the time between two events");
  return milliseconds * 1e-3;
}

Gpu& gpu(int index) {
  static std::mutex mutex;
  static std::map<std::pair<const Driver*, int>, std::unique_ptr<Gpu>> all;
  const auto& now = driver();
  const std::lock_guard lock(mutex);
  auto& found = all[{&now, index}];
  if (!found) found = std::make_unique<Gpu>(now, index);
  return *found;
}

}  // namespace retrograd::cuda
