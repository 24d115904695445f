#include "app/window.h"

#include <cstdlib>

#include "core/base/error.h"
#if RETROGRAD_GUI
#include "views/window/app_window.h"
#endif

namespace retrograd {
namespace {

constexpr const char* headless = "these need none: trace, check, run, bench (see retrograd help)";

[[maybe_unused]] bool hasDisplay() {
  for (const char* variable : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"})
    if (const char* value = std::getenv(variable); value && *value) return true;
  return false;
}

}  // namespace

int showWindow([[maybe_unused]] int& argc, [[maybe_unused]] char** argv,
               [[maybe_unused]] const std::vector<std::string>& files,
               [[maybe_unused]] std::shared_ptr<const RuleRegistry> rules) {
#if RETROGRAD_GUI
  if (!hasDisplay())
    throw Error(ErrorCode::badUse,
                std::string("there is no display (DISPLAY, WAYLAND_DISPLAY) for the window; ") + headless);
  return runWindow(argc, argv, files, std::move(rules));
#else
  throw Error(ErrorCode::badUse, std::string("this build has no window; ") + headless);
#endif
}

}  // namespace retrograd
