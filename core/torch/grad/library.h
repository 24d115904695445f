#pragma once
#include <string>

#include "core/derivation/registry.h"

namespace retrograd {

/// Loads a shared library (`--library libmyops.so`): the ops that it registers with LibTorch may from now on be in
/// files, in all of the process, and its rules (RETROGRAD_LIBRARY) are added to `rules`. This runs the library's code:
/// only a person may name it, never a file. Loading one again adds its rules again. Throws Error(badUse) with the
/// reason where it cannot be loaded or brings nothing.
void loadLibrary(const std::string& path, RuleRegistry& rules);

}  // namespace retrograd
