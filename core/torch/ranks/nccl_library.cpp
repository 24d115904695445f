#include "core/torch/ranks/nccl_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "core/base/installation.h"

namespace retrograd {
namespace {

constexpr const char* fileName = "libretrograd_nccl.so";
constexpr const char* whatToDo = "run scripts/setup --nccl, which fetches NCCL's headers, and build again";

/// "2.30.7" of NCCL_VERSION_CODE.
std::string versionText(int code) { return fmt::format("{}.{}.{}", code / 10'000, code / 100 % 100, code % 100); }

int loadedVersion() {
  int version = 0;
  const auto get = reinterpret_cast<int (*)(int*)>(dlsym(RTLD_DEFAULT, "ncclGetVersion"));
  return get && get(&version) == 0 ? version : 0;
}

NcclLibrary load() {
  NcclLibrary found;
  const auto refuse = [&](std::string why) {
    found.trouble = std::move(why);
    return found;
  };
  const auto file = privateFile(fileName);
  if (file.empty()) return refuse(fmt::format("NCCL is not part of this build: {}", whatToDo));
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return refuse(fmt::format("NCCL does not load: {}", dlerror()));
  bool complete = true;
  const auto bind = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    complete = complete && function;
  };
  bind(found.interface, "retrogradNcclInterface");
  if (!complete || found.interface() != nccl::interfaceVersion)
    return refuse(fmt::format("{} is of another version of this program: build it again", fileName));
  bind(found.headers, "retrogradNcclHeaders");
  bind(found.unit, "retrogradNcclUnit");
  bind(found.group, "retrogradNcclGroup");
  if (!complete) return refuse(fmt::format("{} is incomplete: build it again", fileName));
  found.trouble = ncclMismatch(found.headers(), loadedVersion());
  return found;
}

}  // namespace

std::string ncclMismatch(int headers, int library) {
  if (headers == library) return {};
  if (library == 0) return "LibTorch's CUDA half came without NCCL";
  return fmt::format("this build has the headers of NCCL {}, LibTorch that of {}: {}", versionText(headers),
                     versionText(library), whatToDo);
}

const NcclLibrary& ncclLibrary() {
  static const auto library = load();
  return library;
}

}  // namespace retrograd
