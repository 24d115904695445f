#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace retrograd::cuda {

/// NVIDIA's driver: the functions of libcuda.so.1 that this program calls, found by name when a GPU is first asked for.
/// The program links nothing of CUDA and includes none of its headers, so that one binary serves machines with and
/// without a GPU. Contexts, modules, functions, streams and events are opaque; the null stream is the one that LibTorch
/// uses as long as nothing chooses another. A function returns 0, or a code that check() explains.
#define RETROGRAD_DRIVER_FUNCTIONS(X)                                                                            \
  X(initialise, "cuInit", unsigned flags)                                                                        \
  X(deviceCount, "cuDeviceGetCount", int* count)                                                                 \
  X(deviceName, "cuDeviceGetName", char* text, int size, int device)                                             \
  X(deviceAttribute, "cuDeviceGetAttribute", int* value, int attribute, int device)                              \
  X(retainContext, "cuDevicePrimaryCtxRetain", void** context, int device)                                       \
  X(currentContext, "cuCtxGetCurrent", void** context)                                                           \
  X(setContext, "cuCtxSetCurrent", void* context)                                                                \
  X(loadModule, "cuModuleLoadData", void** module, const void* image)                                            \
  X(findFunction, "cuModuleGetFunction", void** function, void* module, const char* name)                        \
  X(blocksAtOnce, "cuOccupancyMaxActiveBlocksPerMultiprocessor", int* blocks, void* function, int threads,       \
    std::size_t sharedBytes)                                                                                     \
  X(launch, "cuLaunchKernel", void* function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,   \
    unsigned blockY, unsigned blockZ, unsigned sharedBytes, void* stream, void** parameters, void** extra)       \
  X(allocate, "cuMemAlloc_v2", std::uint64_t* memory, std::size_t bytes)                                         \
  X(release, "cuMemFree_v2", std::uint64_t memory)                                                               \
  X(fill, "cuMemsetD8Async", std::uint64_t memory, unsigned char byte, std::size_t bytes, void* stream)          \
  X(copyToHost, "cuMemcpyDtoHAsync_v2", void* to, std::uint64_t from, std::size_t bytes, void* stream)           \
  X(copyToDevice, "cuMemcpyHtoDAsync_v2", std::uint64_t to, const void* from, std::size_t bytes, void* stream)   \
  X(copyOnDevice, "cuMemcpyDtoDAsync_v2", std::uint64_t to, std::uint64_t from, std::size_t bytes, void* stream) \
  X(synchroniseStream, "cuStreamSynchronize", void* stream)                                                      \
  X(createEvent, "cuEventCreate", void** event, unsigned flags)                                                  \
  X(recordEvent, "cuEventRecord", void* event, void* stream)                                                     \
  X(queryEvent, "cuEventQuery", void* event)                                                                     \
  X(synchroniseEvent, "cuEventSynchronize", void* event)                                                         \
  X(elapsed, "cuEventElapsedTime", float* milliseconds, void* begin, void* end)                                  \
  X(destroyEvent, "cuEventDestroy_v2", void* event)                                                              \
  X(errorText, "cuGetErrorString", int code, const char** text)

class Driver {
 public:
#define RETROGRAD_DECLARE(member, name, ...) int (*member)(__VA_ARGS__) = nullptr;
  RETROGRAD_DRIVER_FUNCTIONS(RETROGRAD_DECLARE)
#undef RETROGRAD_DECLARE

  /// Loads and starts the driver. Throws Error(badUse), saying what is missing and what to do.
  explicit Driver(const char* library);
  int devices() const { return devices_; }
  std::string nameOf(int device) const;

  /// Throws Error(execution) where `code` is not 0: "what: the driver's text".
  void check(int code, const char* what) const;

 private:
  int devices_ = 0;
};

/// The driver of this machine, loaded on first use. Throws as its constructor, each time.
const Driver& driver();

/// While it lives, driver() is another one: a stand-in that tests load.
class DriverInPlace {
 public:
  explicit DriverInPlace(const Driver& other);
  ~DriverInPlace();
  DriverInPlace(const DriverInPlace&) = delete;
  DriverInPlace& operator=(const DriverInPlace&) = delete;

 private:
  const Driver* before_;
};

/// Finds a missing driver without starting one, so that the process may still fork; a broken one is found later. Throws
/// as driver().
void requireDriverFile();

}  // namespace retrograd::cuda
