# Finds LibTorch in RETROGRAD_LIBTORCH (include/, lib/). Its own CMake package is unusable here: it demands a CUDA toolkit.
# Defines LibTorch::LibTorch, LibTorch_VERSION (2.15) and LibTorch_VERSION_FULL (2.15.0).
set(_root "${RETROGRAD_LIBTORCH}")
find_path(LibTorch_INCLUDE_DIR ATen/ATen.h HINTS "${_root}/include" NO_DEFAULT_PATH)
foreach(_name torch_cpu c10)
  find_library(LibTorch_${_name} ${_name} HINTS "${_root}/lib" NO_DEFAULT_PATH)
endforeach()
# libtorch_cpu.so links these two whether or not there is a GPU. They are named so that a build finds them when it runs, and as needed: a program of ours that
# asked for them itself would have to find them where only LibTorch looks, in the folders of NVIDIA's packages for Python.
find_library(LibTorch_cupti NAMES libcupti.so.13 libcupti.so.12 HINTS "${_root}/lib" /usr/local/cuda/extras/CUPTI/lib64 /usr/local/cuda/lib64)
find_library(LibTorch_cudart NAMES libcudart.so.13 libcudart.so.12 HINTS "${_root}/lib" /usr/local/cuda/lib64)
if(LibTorch_INCLUDE_DIR)
  file(STRINGS "${LibTorch_INCLUDE_DIR}/torch/headeronly/version.h" _version REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*" "\\1.\\2" LibTorch_VERSION "${_version}")
  string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*PATCH ([0-9]+).*" "\\1.\\2.\\3" LibTorch_VERSION_FULL "${_version}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_torch_cpu LibTorch_c10 LibTorch_INCLUDE_DIR
  VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "run scripts/setup, or set RETROGRAD_LIBTORCH")
if(LibTorch_FOUND AND NOT TARGET LibTorch::LibTorch)
  add_library(LibTorch::LibTorch INTERFACE IMPORTED)
  set(_libraries "${LibTorch_torch_cpu}" "${LibTorch_c10}")
  foreach(_name cupti cudart)
    if(LibTorch_${_name})
      list(APPEND _libraries "${LibTorch_${_name}}")
    endif()
  endforeach()
  # LibTorch's folder brings headers of another {fmt}, whose compiled half is inside the library. The system's come first, so that every unit of ours
  # uses the one compiled {fmt}: as a header only it costs each unit some seconds.
  find_path(_fmt_headers fmt/format.h NO_CACHE)
  file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/headers-first")
  file(CREATE_LINK "${_fmt_headers}/fmt" "${CMAKE_BINARY_DIR}/headers-first/fmt" SYMBOLIC)
  set_target_properties(LibTorch::LibTorch PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_BINARY_DIR}/headers-first;${LibTorch_INCLUDE_DIR};${LibTorch_INCLUDE_DIR}/torch/csrc/api/include"
    INTERFACE_LINK_LIBRARIES "${_libraries}"
    INTERFACE_LINK_OPTIONS "-Wl,--allow-shlib-undefined;-Wl,--as-needed"
    INTERFACE_COMPILE_FEATURES cxx_std_20)
endif()
