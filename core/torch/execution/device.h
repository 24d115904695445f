#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/base/tensor_meta.h"

namespace retrograd {

/// A device that a run can be asked for.
struct DeviceStatus {
  Device device;
  bool available = false;
  std::string name;    ///< "NVIDIA H200"; empty where it is not available, and for the CPU
  std::string reason;  ///< why it is not available and what to do about it
};

/// The CPU, then the GPUs; where there is none, one entry for `cuda` that says why. The first call asks the driver and,
/// where it finds a GPU, loads LibTorch's CUDA half, which takes a second or two.
std::vector<DeviceStatus> devices();

/// What devices() says of one device; loads as that does. Nothing of CUDA is touched for the CPU.
DeviceStatus deviceStatus(Device device);

/// Throws Error(badUse), saying what is missing and what to do, where nothing can run on `device`.
void requireDevice(Device device);

/// The GPU of one of several processes of a machine: each its own, as far as there are as many. Throws as
/// requireDevice() where there is none.
Device deviceOfProcess(int number);

/// The first GPU of `there` for a step that was recorded on one ("cuda:1"), nothing for any other: generators of GPUs
/// draw the same numbers on each of a kind.
std::optional<Device> deviceAsRecorded(const std::string& recorded, const std::vector<DeviceStatus>& there);

/// As requireDevice() without initialising the driver, so that the process may still fork: it finds a missing driver,
/// not a broken one.
void requireDriver(Device device);

/// Waits until all that was asked of the device is done; the CPU is always done. Throws c10::Error where something
/// failed on it.
void synchronise(Device device);

/// The most that LibTorch's allocator on a GPU has given out to tensors, and taken from the driver, in this process.
/// Zero for the CPU.
struct DeviceMemory {
  std::int64_t allocated = 0, reserved = 0;
};
DeviceMemory peakDeviceMemory(Device device);

/// While it lives, float32 products and convolutions on GPUs are computed as such, not in TF32, which LibTorch takes
/// for convolutions by default.
class FullPrecision {
 public:
  FullPrecision();
  ~FullPrecision();
  FullPrecision(const FullPrecision&) = delete;
  FullPrecision& operator=(const FullPrecision&) = delete;

 private:
  const bool convolutions_, products_;
};

}  // namespace retrograd
