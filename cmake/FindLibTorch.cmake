# Finds LibTorch in RETROGRAD_LIBTORCH (include/, lib/). Its own CMake package is unusable here: it demands a CUDA toolkit.
# Defines LibTorch::LibTorch and LibTorch_VERSION.
set(_root "${RETROGRAD_LIBTORCH}")
find_path(LibTorch_INCLUDE_DIR ATen/ATen.h HINTS "${_root}/include" NO_DEFAULT_PATH)
foreach(_name torch_cpu c10)
  find_library(LibTorch_${_name} ${_name} HINTS "${_root}/lib" NO_DEFAULT_PATH)
endforeach()
# libtorch_cpu.so links these two whether or not there is a GPU.
find_library(LibTorch_cupti NAMES libcupti.so.13 libcupti.so.12 HINTS "${_root}/lib" /usr/local/cuda/extras/CUPTI/lib64 /usr/local/cuda/lib64)
find_library(LibTorch_cudart NAMES libcudart.so.13 libcudart.so.12 HINTS "${_root}/lib" /usr/local/cuda/lib64)
if(LibTorch_INCLUDE_DIR)
  file(STRINGS "${LibTorch_INCLUDE_DIR}/torch/headeronly/version.h" _version REGEX "define TORCH_VERSION_(MAJOR|MINOR) ")
  string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*" "\\1.\\2" LibTorch_VERSION "${_version}")
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
  set_target_properties(LibTorch::LibTorch PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${LibTorch_INCLUDE_DIR};${LibTorch_INCLUDE_DIR}/torch/csrc/api/include"
    INTERFACE_LINK_LIBRARIES "${_libraries}"
    INTERFACE_LINK_OPTIONS "-Wl,--allow-shlib-undefined"
    INTERFACE_COMPILE_FEATURES cxx_std_20)
endif()
