#include "core/torch/execution/cuda_library.h"

#include <dlfcn.h>

#include <optional>

#include "core/base/installation.h"

namespace retrograd {
namespace {

constexpr const char* fileName = "libretrograd_cuda.so";

void* open() {
  const auto library = privateFile(fileName);
  return library.empty() ? nullptr : dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
}

std::optional<CudaLibrary> load() {
  void* library = open();
  if (!library) return std::nullopt;
  CudaLibrary functions{};
  bool complete = true;
  const auto bind = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    complete &= function != nullptr;
  };
  bind(functions.interface, "retrogradCudaInterface");
  if (!complete || functions.interface() != cuda::interfaceVersion) return std::nullopt;
  bind(functions.error, "retrogradCudaError");
  bind(functions.deviceCount, "retrogradCudaDeviceCount");
  bind(functions.summarise, "retrogradCudaSummarise");
  bind(functions.histogram, "retrogradCudaHistogram");
  bind(functions.rangePush, "retrogradCudaRangePush");
  bind(functions.rangePop, "retrogradCudaRangePop");
  bind(functions.allocate, "retrogradCudaAllocate");
  bind(functions.free, "retrogradCudaFree");
  bind(functions.upload, "retrogradCudaUpload");
  bind(functions.timeCopy, "retrogradCudaTimeCopy");
  bind(functions.timeSummary, "retrogradCudaTimeSummary");
  return complete ? std::optional(functions) : std::nullopt;
}

}  // namespace

const CudaLibrary* cudaLibrary() {
  static const auto library = load();
  return library ? &*library : nullptr;
}

ProfilerRange::ProfilerRange(const std::string& name) : library_(name.empty() ? nullptr : cudaLibrary()) {
  if (library_) library_->rangePush(name.c_str());
}

ProfilerRange::~ProfilerRange() {
  if (library_) library_->rangePop();
}

}  // namespace retrograd
