# retrograd_folder(FOLDER SENTENCE [ATEN] [OBJECTS] [USES FOLDER...] [LIBRARIES TARGET...])
#
# A folder of core is a library: all its sources and no others, named after it ("formats/zip" is retrograd_formats_zip). SENTENCE says what the folder is for.
# The order of these calls is the order of layers: a folder may use those that were declared before it. scripts/include-graph reads that order from the calls,
# and a test compares it with the includes.
#   ATEN       its units may include LibTorch's headers, through one precompiled header. Only below torch/.
#   OBJECTS    its units register themselves, so programs link the objects; of a library only what is asked for would be taken.
#   USES       folders of core whose headers it includes
#   LIBRARIES  of others that it needs
# The variable precompiled_header, where it is set, names the target whose precompiled header the folders that follow share.
function(retrograd_folder folder sentence)
  cmake_parse_arguments(PARSE_ARGV 2 part "ATEN;OBJECTS" "" "USES;LIBRARIES")
  string(REPLACE "/" "_" target "retrograd_${folder}")
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  if(part_OBJECTS)
    add_library(${target} OBJECT ${sources})
  elseif(sources)
    add_library(${target} STATIC ${sources})
  else()
    message(FATAL_ERROR "core/${folder} has no sources")
  endif()
  target_include_directories(${target} PUBLIC "${CMAKE_SOURCE_DIR}")
  set(uses ${part_USES})
  list(TRANSFORM uses REPLACE "/" "_")
  list(TRANSFORM uses PREPEND "retrograd_")
  target_link_libraries(${target} PUBLIC ${uses} ${part_LIBRARIES} PRIVATE retrograd_warnings)
  if(part_ATEN)
    target_link_libraries(${target} PRIVATE LibTorch::LibTorch)
    # What registers ops names its file: as the checkout has it, wherever that lies.
    target_compile_options(${target} PRIVATE "-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=")
    if(TARGET retrograd_aten_header)
      target_precompile_headers(${target} REUSE_FROM retrograd_aten_header)
    endif()
  endif()
  if(NOT part_ATEN AND TARGET "${precompiled_header}")
    target_precompile_headers(${target} REUSE_FROM ${precompiled_header})
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")  # the build with GCC shows that each unit includes what it uses
    retrograd_batches(${target})
  endif()
  set_property(GLOBAL APPEND PROPERTY RETROGRAD_FOLDERS ${target})
endfunction()
