# Our own code is built with these; headers of others are SYSTEM and stay quiet.
add_library(retrograd_warnings INTERFACE)
target_compile_options(retrograd_warnings INTERFACE -Wall -Wextra -Wpedantic -Wnon-virtual-dtor -Woverloaded-virtual -Wno-missing-field-initializers)
