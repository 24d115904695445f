# nvcc compiles the kernels (core/torch/execution/cuda/*.cu) to retrograd_kernels.fatbin, an image that the driver loads when a GPU is first asked for
# (cuda/gpu.h): machine code for the GPUs that are common, PTX for those that are newer. Nothing of CUDA is linked or included by anything else, so the
# image goes into everything that is installed. By a custom command: CMake's own CUDA language wants a whole toolkit of an age that it knows.
# nvcc comes from the system or, fetched by scripts/setup, from external/cuda. Without one RETROGRAD_CUDA is off, and statistics of tensors on a
# GPU are made on the CPU.
find_program(RETROGRAD_NVCC nvcc HINTS "$ENV{CUDA_HOME}/bin" /usr/local/cuda/bin "${CMAKE_SOURCE_DIR}/external/cuda/bin")
option(RETROGRAD_CUDA "Build the GPU's kernels, where there is nvcc" ON)
if(NOT RETROGRAD_NVCC)
  set(RETROGRAD_CUDA OFF)  # for this configuration alone: nvcc may be there at the next
endif()
if(NOT RETROGRAD_CUDA)
  return()
endif()

get_filename_component(_nvcc_folder "${RETROGRAD_NVCC}" DIRECTORY)
find_program(RETROGRAD_FATBINARY fatbinary HINTS "${_nvcc_folder}" REQUIRED)
# nvcc takes the versions of GCC that its distribution has, and of Clang only older ones than the rest is built with.
find_program(RETROGRAD_NVCC_HOST_COMPILER g++ REQUIRED)

execute_process(COMMAND "${RETROGRAD_NVCC}" --list-gpu-arch OUTPUT_VARIABLE _known OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _failed)
if(_failed)
  message(FATAL_ERROR "${RETROGRAD_NVCC} does not run")
endif()
string(REGEX MATCHALL "[0-9]+" _known "${_known}")
set(_architectures)
foreach(_architecture 80 90 100 120)
  if(_architecture IN_LIST _known)
    list(APPEND _architectures ${_architecture})
  endif()
endforeach()
set(RETROGRAD_GPU_ARCHITECTURES "${_architectures}" CACHE STRING "Compute capabilities to compile for, without the dot")
set(RETROGRAD_CUDA_KERNELS "${CMAKE_BINARY_DIR}/retrograd_kernels.fatbin")

# retrograd_add_cuda_kernels(TARGET FILE): the image from a .cu file. It is compiled to PTX once; each architecture assembles that by itself, so that
# these run next to each other, which takes most of the time. Without contracted sums, so that the twin on the CPU adds as the GPU does.
function(retrograd_add_cuda_kernels target source)
  list(GET RETROGRAD_GPU_ARCHITECTURES 0 _oldest)
  set(_parts "${CMAKE_BINARY_DIR}/kernels")
  file(MAKE_DIRECTORY "${_parts}")
  set(_ptx "${_parts}/kernels.ptx")
  add_custom_command(
    OUTPUT "${_ptx}"
    COMMAND "${RETROGRAD_NVCC}" -ptx -arch=compute_${_oldest} -std=c++20 -O3 -fmad=false "-I${CMAKE_SOURCE_DIR}"
      -ccbin "${RETROGRAD_NVCC_HOST_COMPILER}" -MD -MF "${_ptx}.d" "${source}" -o "${_ptx}"
    DEPENDS "${source}" DEPFILE "${_ptx}.d" COMMENT "Compiling the GPU's kernels" VERBATIM)
  set(_images "--image3=kind=ptx,sm=${_oldest},file=${_ptx}")
  set(_cubins)
  foreach(_architecture IN LISTS RETROGRAD_GPU_ARCHITECTURES)
    set(_cubin "${_parts}/sm_${_architecture}.cubin")
    add_custom_command(
      OUTPUT "${_cubin}"
      COMMAND "${RETROGRAD_NVCC}" -cubin -arch=sm_${_architecture} -fmad=false "${_ptx}" -o "${_cubin}"
      DEPENDS "${_ptx}" COMMENT "Assembling the GPU's kernels for sm_${_architecture}" VERBATIM)
    list(APPEND _images "--image3=kind=elf,sm=${_architecture},file=${_cubin}")
    list(APPEND _cubins "${_cubin}")
  endforeach()
  add_custom_command(
    OUTPUT "${RETROGRAD_CUDA_KERNELS}"
    COMMAND "${RETROGRAD_FATBINARY}" --create=${RETROGRAD_CUDA_KERNELS} -64 -compress-all ${_images}
    DEPENDS ${_cubins} COMMENT "Building the image of the GPU's kernels" VERBATIM)
  add_custom_target(${target} ALL DEPENDS "${RETROGRAD_CUDA_KERNELS}")
endfunction()
