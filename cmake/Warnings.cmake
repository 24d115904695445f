# Our own code is built with these; headers of others are SYSTEM and stay quiet.
add_library(retrograd_warnings INTERFACE)
target_compile_options(retrograd_warnings INTERFACE -Wall -Wextra -Wpedantic -Wnon-virtual-dtor -Woverloaded-virtual -Wno-missing-field-initializers)
# std::stable_sort of GCC 12's library uses what C++17 deprecated, and Clang says so at each use of it.
target_compile_options(retrograd_warnings INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
