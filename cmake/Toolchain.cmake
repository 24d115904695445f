# ccache, jemalloc and mold where they are installed: they only save time, the build is the same without. Commands that are listed for editors and clang-tidy
# name the compiler alone.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER AND NOT CMAKE_EXPORT_COMPILE_COMMANDS)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
  # The compiler takes an eighth less time with this allocator and huge pages. For compilers alone: a sanitizer wants to be loaded first.
  find_library(JEMALLOC_LIBRARY NAMES libjemalloc.so.2)
  if(JEMALLOC_LIBRARY)
    list(PREPEND CMAKE_CXX_COMPILER_LAUNCHER env "LD_PRELOAD=${JEMALLOC_LIBRARY}" MALLOC_CONF=thp:always)
  endif()
  # Precompiled headers and ccache need these two, or every build misses.
  set(ENV{CCACHE_SLOPPINESS} "pch_defines,time_macros,include_file_mtime,include_file_ctime")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  else()
    add_compile_options("SHELL:-Xclang -fno-pch-timestamp")  # or a header that is written again makes another compiled header
  endif()
endif()
find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  add_link_options(-fuse-ld=mold)
endif()
if(RETROGRAD_SANITIZE)
  add_compile_options(-fsanitize=${RETROGRAD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${RETROGRAD_SANITIZE})
endif()
