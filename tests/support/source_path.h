#pragma once

#include <string>
#include <string_view>

namespace retrograd {

// Where a file of the checkout lies, by its path in it ("tests/data/x"). One unit knows the folder, so that the objects
// of all others are the same in every checkout and ccache finds them. RETROGRAD_TEST_SOURCE=DIR: a copy of the
// checkout's tests, for programs that run on another machine than they were built on (scripts/on-gpu).
std::string sourcePath(std::string_view inside);

}  // namespace retrograd
