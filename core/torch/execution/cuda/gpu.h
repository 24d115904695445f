#pragma once
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "core/torch/execution/cuda/driver.h"

namespace retrograd::cuda {

/// A kernel of ours, ready to launch. `resident`: how many of its blocks run at once on the whole GPU.
struct Kernel {
  void* function = nullptr;
  int resident = 1;
};

/// Memory of a GPU that is freed with it.
class Memory {
 public:
  Memory() = default;
  Memory(const Driver& driver, std::uint64_t address) : driver_(&driver), address_(address) {}
  ~Memory() {
    if (driver_) driver_->release(address_);
  }
  Memory(Memory&& other) noexcept : driver_(std::exchange(other.driver_, nullptr)), address_(other.address_) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(address_, other.address_);
    return *this;
  }
  explicit operator bool() const { return driver_ != nullptr; }
  std::uint64_t address() const { return address_; }

 private:
  const Driver* driver_ = nullptr;
  std::uint64_t address_ = 0;
};

/// One GPU as the driver sees it: its context, which is the one that LibTorch uses too, and our kernels in it. All work
/// goes to the null stream, behind what LibTorch has asked for there. Functions throw Error(execution) with the
/// driver's text. Safe to use from several threads.
class Gpu {
 public:
  Gpu(const Driver& driver, int index);

  /// Why there are no kernels of ours on this GPU; empty where there are. Loads them on first use.
  const std::string& withoutKernels();
  /// "summarise_f32". Throws Error(internal) for a name that is not there; needs withoutKernels() to be empty.
  Kernel kernel(const std::string& name);

  /// A grid of `columns` x `rows` blocks.
  void launch(const Kernel& kernel, int columns, int rows, std::span<void*> parameters);
  Memory allocate(std::size_t bytes);
  /// Waits until `from` may be let go.
  void copyToDevice(const Memory& memory, const void* from, std::size_t bytes, std::size_t offset = 0);
  void clear(const Memory& memory, std::size_t bytes, std::size_t offset = 0);
  /// Waits until `to` is filled, which comes after all launches before.
  void copyToHost(void* to, const Memory& memory, std::size_t bytes, std::size_t offset = 0);

  void* createEvent();
  void destroyEvent(void* event);
  void record(void* event);
  bool isReached(void* event);
  void wait(void* event);
  /// Seconds between two events that were reached.
  double secondsBetween(void* begin, void* end);

  /// Makes this GPU's context the thread's own, where it is not.
  void enter();
  const Driver& driver() const { return driver_; }

 private:
  void loadKernels();

  const Driver& driver_;
  const int index_;
  void* context_ = nullptr;
  std::mutex mutex_;  // of what is below
  bool tried_ = false;
  std::string without_;
  void* module_ = nullptr;
  int processors_ = 1;
  std::map<std::string, Kernel, std::less<>> kernels_;
};

/// GPU `index` of driver(). Throws as that, and Error(execution) where its context cannot be had.
Gpu& gpu(int index);

/// The file of our kernels, machine code and PTX; empty where this build has none (it had no nvcc).
std::string kernelFile();

}  // namespace retrograd::cuda
