# libretrograd_nccl.so: c10d's NCCL backend behind a small interface (core/torch/ranks/nccl/interface.h), a library of its own, so that the program links nothing of
# NVIDIA's. It takes the headers of NCCL, which scripts/setup --nccl fetches on any machine (external/cuda-headers), and those of the CUDA runtime, which come with nvcc.
# Of the CUDA libraries that ATen's headers name, nccl/standins declares the handles. Where a CUDA Toolkit's NCCL is taken, it may be another than LibTorch's: the program
# then says so and does without (ncclMismatch), but the code has been compiled. Without headers RETROGRAD_NCCL is off.
set(_nccl_headers)
set(_nccl_complete TRUE)
foreach(_header nccl.h cuda_runtime_api.h crt/host_defines.h)
  string(MAKE_C_IDENTIFIER "RETROGRAD_HEADER_${_header}" _variable)
  find_path(${_variable} "${_header}" NO_DEFAULT_PATH
    PATHS "${CMAKE_SOURCE_DIR}/external/cuda-headers" "${CMAKE_SOURCE_DIR}/external/cuda/include" "$ENV{CUDA_HOME}/include" /usr/local/cuda/include /usr/include)
  mark_as_advanced(${_variable})
  if(${_variable})
    list(APPEND _nccl_headers "${${_variable}}")
  else()
    set(_nccl_complete FALSE)
  endif()
endforeach()
list(REMOVE_DUPLICATES _nccl_headers)
list(REMOVE_ITEM _nccl_headers /usr/include)
option(RETROGRAD_NCCL "Build the NCCL backend of pipelines (needs headers of NCCL and CUDA)" ${_nccl_complete})
if(RETROGRAD_NCCL AND NOT _nccl_complete)
  message(FATAL_ERROR "RETROGRAD_NCCL needs the headers of NCCL and CUDA: run scripts/setup --nccl")
endif()
set(RETROGRAD_NCCL_INCLUDES "${CMAKE_SOURCE_DIR}/core/torch/ranks/nccl/standins" ${_nccl_headers})

# retrograd_add_nccl_library(TARGET FILES...). What it leaves unresolved is in LibTorch's CUDA half, which is loaded before it and need not be on this machine.
function(retrograd_add_nccl_library target)
  add_library(${target} MODULE ${ARGN})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME retrograd_nccl LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
  target_include_directories(${target} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_include_directories(${target} SYSTEM PRIVATE ${RETROGRAD_NCCL_INCLUDES})
  target_link_libraries(${target} PRIVATE LibTorch::LibTorch)
endfunction()
