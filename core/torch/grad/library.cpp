#include "core/torch/grad/library.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "core/base/error.h"
#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/op_table.h"

namespace retrograd {
namespace {

std::set<std::string> registeredOps() {
  std::set<std::string> names;
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getAllOpNames())
    if (const auto op = dispatcher.findSchema(name)) names.insert(symbolName(*op));
  return names;
}

/// Libraries stay loaded: LibTorch keeps pointers into them.
void* open(const std::string& path) {
  // A name without a slash would be searched for on the system.
  void* handle = dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw Error(ErrorCode::badUse, fmt::format("cannot be loaded: {}", dlerror()), path);
  return handle;
}

}  // namespace

void loadLibrary(const std::string& path, RuleRegistry& rules) {
  static std::set<std::string> loaded;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) throw Error(ErrorCode::badUse, "no such library", path);
  const auto before = registeredOps();
  void* handle = nullptr;
  try {
    handle = open(path);
  } catch (const c10::Error& e) {  // a registration that LibTorch refuses
    throw Error(ErrorCode::badUse, std::string("LibTorch refuses its ops: ") + e.what_without_backtrace(), path);
  }
  bool bringsOps = false;
  for (const auto& name : registeredOps()) {
    if (before.contains(name)) continue;
    allowLibraryOp(name);
    bringsOps = true;
  }
  const auto version = reinterpret_cast<int (*)()>(dlsym(handle, "retrograd_library_version"));
  const auto add = reinterpret_cast<void (*)(RuleRegistry&)>(dlsym(handle, "retrograd_library_rules"));
  if (version && version() != libraryVersion)
    throw Error(ErrorCode::badUse,
                fmt::format("is compiled for version {} of the rules' interface, this is version {}", version(),
                            libraryVersion),
                path);
  if (version && add) add(rules);
  const bool isNew = loaded.insert(std::filesystem::canonical(path, ignored)).second;
  if (isNew && !bringsOps && !add)
    throw Error(ErrorCode::badUse, "it brings neither ops for LibTorch (TORCH_LIBRARY) nor rules (RETROGRAD_LIBRARY)",
                path);
}

}  // namespace retrograd
