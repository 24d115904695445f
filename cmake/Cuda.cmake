# nvcc builds libretrograd_cuda.so, a library of its own with a plain C interface (core/torch/execution/cuda/interface.h), so that the program links
# nothing of CUDA. By custom commands: CMake's own CUDA language wants a whole toolkit of an age that it knows.
# nvcc comes from the system or, fetched by scripts/setup, from external/cuda. Without one RETROGRAD_CUDA is off, and statistics of tensors on a
# GPU are made on the CPU.
find_program(RETROGRAD_NVCC nvcc HINTS "$ENV{CUDA_HOME}/bin" /usr/local/cuda/bin "${CMAKE_SOURCE_DIR}/external/cuda/bin")
if(RETROGRAD_NVCC)
  set(_cuda_default ON)
else()
  set(_cuda_default OFF)
endif()
option(RETROGRAD_CUDA "Build the GPU's kernels (needs nvcc)" ${_cuda_default})
if(NOT RETROGRAD_CUDA)
  return()
endif()
if(NOT RETROGRAD_NVCC)
  message(FATAL_ERROR "RETROGRAD_CUDA needs nvcc: run scripts/setup, or set RETROGRAD_NVCC")
endif()

# nvcc takes the versions of GCC that its distribution has, and of Clang only older ones than the rest is built with.
find_program(RETROGRAD_NVCC_HOST_COMPILER g++ REQUIRED)

# Machine code for the GPUs that are common, PTX for those that are newer than all of them.
execute_process(COMMAND "${RETROGRAD_NVCC}" --list-gpu-arch OUTPUT_VARIABLE _known OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _failed)
if(_failed)
  message(FATAL_ERROR "${RETROGRAD_NVCC} does not run")
endif()
string(REGEX MATCHALL "[0-9]+" _known "${_known}")
set(_architectures)
foreach(_architecture 80 90 120)
  if(_architecture IN_LIST _known)
    list(APPEND _architectures ${_architecture})
  endif()
endforeach()
set(RETROGRAD_CUDA_ARCHITECTURES "${_architectures}" CACHE STRING "Compute capabilities to compile for, without the dot")
set(RETROGRAD_CUDA_LIBRARY "${CMAKE_BINARY_DIR}/libretrograd_cuda.so")
set(_flags -std=c++20 -O3 -cudart static "-I${CMAKE_SOURCE_DIR}" -Xcompiler -fPIC,-Wall,-Wextra,-fvisibility=default -Xfatbin -compress-all)
foreach(_architecture IN LISTS RETROGRAD_CUDA_ARCHITECTURES)
  list(APPEND _flags -gencode "arch=compute_${_architecture},code=sm_${_architecture}")
endforeach()
list(GET RETROGRAD_CUDA_ARCHITECTURES -1 _newest)
list(APPEND _flags -gencode "arch=compute_${_newest},code=compute_${_newest}")

# retrograd_add_cuda_library(TARGET FILES...): the library from .cu files.
function(retrograd_add_cuda_library target)
  set(_objects)
  foreach(_source IN LISTS ARGN)
    get_filename_component(_name "${_source}" NAME_WE)
    set(_object "${CMAKE_CURRENT_BINARY_DIR}/cuda_${_name}.o")
    add_custom_command(
      OUTPUT "${_object}"
      COMMAND "${RETROGRAD_NVCC}" ${_flags} -ccbin "${RETROGRAD_NVCC_HOST_COMPILER}" -MD -MF "${_object}.d" -c "${_source}" -o "${_object}"
      DEPENDS "${_source}" DEPFILE "${_object}.d" COMMENT "Building CUDA object ${_name}.o" VERBATIM)
    list(APPEND _objects "${_object}")
  endforeach()
  add_custom_command(
    OUTPUT "${RETROGRAD_CUDA_LIBRARY}"
    COMMAND "${RETROGRAD_NVCC}" ${_flags} -ccbin "${RETROGRAD_NVCC_HOST_COMPILER}" -shared ${_objects} -o "${RETROGRAD_CUDA_LIBRARY}"
    DEPENDS ${_objects} COMMENT "Linking libretrograd_cuda.so" VERBATIM)
  add_custom_target(${target} ALL DEPENDS "${RETROGRAD_CUDA_LIBRARY}")
endfunction()
