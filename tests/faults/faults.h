#pragma once
// What the calls of calls.cpp ask of the plan in faults.cpp, and what they count.
#include <dlfcn.h>
#include <sys/types.h>

#include <cstdint>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace faults {

enum Kind { kRead, kWrite, kSync, kRename, kMmap, kTruncate, kOpen, kSpawn, kThread, kClose, kLarge, kSmall, kinds };

/// Which calls fail, and how.
struct Plan {
  int kind = -1;
  uint64_t first = 0;
  bool on = false;  ///< for all calls from the first
  int error = 0;
  bool isShort = false, kills = false, killsAfter = false;
};
extern Plan plan;

/// Keeps calls of our own from being counted.
struct Guard {
  Guard();
  ~Guard();
  bool before;
};

/// The function of that name which the program would have called.
#define REAL(name)                                                       \
  static decltype(&::name) real = nullptr;                               \
  if (!real) {                                                           \
    const faults::Guard guard;                                           \
    real = reinterpret_cast<decltype(&::name)>(dlsym(RTLD_NEXT, #name)); \
  }

/// Counts a call; true where it has to fail. `about` names it in the log: a path, a size.
bool fails(Kind kind, const char* call, const char* about = "", long long amount = -1);
/// The same of a call on an open file; false for sockets, devices, libraries and standard error.
bool failsAt(Kind kind, const char* call, int handle, size_t size);
/// Whether a path is one of the program's files: no system folder, no library.
bool isOurs(const char* path);

void endProcess();
/// To be asked after a call that went on because the process is to end behind it.
template <class Result>
Result after(bool failed, Result result) {
  if (failed && plan.killsAfter) endProcess();
  return result;
}
inline bool goesOn(bool failed) { return !failed || plan.killsAfter || plan.isShort; }
inline size_t halved(bool failed, size_t size) { return failed && plan.isShort && size > 1 ? size / 2 : size; }

}  // namespace faults
