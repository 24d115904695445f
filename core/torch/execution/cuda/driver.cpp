#include "core/torch/execution/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <atomic>

#include "core/base/error.h"

namespace retrograd::cuda {
namespace {

constexpr const char* fileName = "libcuda.so.1";

std::atomic<const Driver*> inPlace = nullptr;

void* open(const char* library, int flags) {
  if (void* handle = dlopen(library, flags)) return handle;
  const char* text = dlerror();
  throw Error(
      ErrorCode::badUse,
      fmt::format("there is no NVIDIA driver on this machine ({}); install the driver of the GPU, or run on the CPU",
                  text ? text : "unknown error"));
}

}  // namespace

Driver::Driver(const char* library) {
  void* handle = open(library, RTLD_NOW | RTLD_LOCAL);
  const auto bind = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    if (!function)
      throw Error(
          ErrorCode::badUse,
          fmt::format("the NVIDIA driver is incomplete ({} is missing); install a newer one, or run on the CPU", name));
  };
#define RETROGRAD_BIND(member, name, ...) bind(member, name);
  RETROGRAD_DRIVER_FUNCTIONS(RETROGRAD_BIND)
#undef RETROGRAD_BIND
  if (const int code = initialise(0); code != 0)
    throw Error(
        ErrorCode::badUse,
        fmt::format("the NVIDIA driver does not start (error {}); see what nvidia-smi says, or run on the CPU", code));
  if (const int code = deviceCount(&devices_); code != 0 || devices_ == 0)
    throw Error(
        ErrorCode::badUse,
        fmt::format("the NVIDIA driver finds no GPU (error {}); see what nvidia-smi and CUDA_VISIBLE_DEVICES say, or "
                    "run on the CPU",
                    code));
}

std::string Driver::nameOf(int device) const {
  std::array<char, 256> text{};
  return deviceName(text.data(), static_cast<int>(text.size()) - 1, device) == 0 ? text.data() : "GPU";
}

void Driver::check(int code, const char* what) const {
  if (code == 0) return;
  const char* text = nullptr;
  errorText(code, &text);
  throw Error(ErrorCode::execution,
              fmt::format("{} fails on the GPU: {}", what, text ? text : fmt::format("error {}", code)));
}

const Driver& driver() {
  if (const auto* other = inPlace.load()) return *other;
  static const Driver own(fileName);  // tried again next time where it throws
  return own;
}

DriverInPlace::DriverInPlace(const Driver& other) : before_(inPlace.exchange(&other)) {}
DriverInPlace::~DriverInPlace() { inPlace = before_; }

void requireDriverFile() {
  if (!inPlace) open(fileName, RTLD_LAZY | RTLD_LOCAL);
}

}  // namespace retrograd::cuda
