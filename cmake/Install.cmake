# What is installed and where. All that the program needs and the system's packages do not have goes with it; an installed tree can be moved:
#
#   bin/retrograd                 the front (app/front.cpp); finds the rest from where it lies itself (core/base/installation.h)
#   lib/retrograd/                retrograd-program, LibTorch, retrograd-layout, the GPU's kernels; cuda/: NVIDIA's half of LibTorch where this machine has it
#   lib/retrograd/standins/       for the libraries of NVIDIA that LibTorch links even where there is no GPU (app/standins)
#   share/                        samples, documentation, licences, and what a desktop wants to know
#
# Components: `retrograd`, and `cuda` for NVIDIA's half of LibTorch, which no package carries.
include(GNUInstallDirs)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME retrograd)
set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(_private "lib/retrograd")
set(_share "${CMAKE_INSTALL_DATAROOTDIR}")
set(_id org.retrograd.retrograd)
set(_desktop "${CMAKE_SOURCE_DIR}/resources/desktop")

# The old kind of search path (RPATH), for it also holds for what libtorch_cpu.so needs; the new one (RUNPATH) is the program's alone.
target_link_options(retrograd-program PRIVATE -Wl,--disable-new-dtags)
set_target_properties(retrograd-program PROPERTIES INSTALL_RPATH "$ORIGIN/cuda:$ORIGIN:$ORIGIN/standins")
install(TARGETS retrograd RUNTIME DESTINATION bin)
install(TARGETS retrograd-program retrograd-layout RUNTIME DESTINATION ${_private})

# LibTorch: the two libraries that are linked and those that they need out of its own folder. OpenMP's is the system's; NVIDIA's stay behind.
set(_torch_libraries)
set(_queue "${LibTorch_torch_cpu}" "${LibTorch_c10}")
while(_queue)
  list(POP_FRONT _queue _library)
  list(APPEND _torch_libraries "${_library}")
  get_filename_component(_folder "${_library}" DIRECTORY)
  execute_process(COMMAND "${CMAKE_READELF}" -d "${_library}" OUTPUT_VARIABLE _dynamic COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "NEEDED[^\n]*" _needed "${_dynamic}")
  foreach(_line IN LISTS _needed)
    string(REGEX REPLACE ".*\\[(.*)\\].*" "\\1" _name "${_line}")
    if(EXISTS "${_folder}/${_name}" AND NOT _name MATCHES "^lib(cu|nv|gomp\\.so)" AND NOT "${_folder}/${_name}" IN_LIST _torch_libraries)
      list(APPEND _queue "${_folder}/${_name}")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES _queue)
endwhile()
install(FILES ${_torch_libraries} DESTINATION ${_private})
if(RETROGRAD_STANDINS)
  install(TARGETS ${RETROGRAD_STANDINS} LIBRARY DESTINATION ${_private}/standins NAMELINK_SKIP)
endif()
if(RETROGRAD_CUDA)
  install(FILES "${RETROGRAD_CUDA_KERNELS}" DESTINATION ${_private})
endif()
if(RETROGRAD_NCCL)
  install(TARGETS retrograd_nccl LIBRARY DESTINATION ${_private})
endif()
file(GLOB _cuda_half "${RETROGRAD_LIBTORCH}/lib/libtorch_cuda*.so")
if(_cuda_half)
  file(GLOB _cuda_half "${RETROGRAD_LIBTORCH}/lib/lib*.so*")
  list(REMOVE_ITEM _cuda_half ${_torch_libraries})
  install(FILES ${_cuda_half} DESTINATION ${_private}/cuda COMPONENT cuda)
endif()

# Samples, with the Python that made them; the build tree has them at the same place from the program's point of view.
install(DIRECTORY "${CMAKE_SOURCE_DIR}/resources/samples" DESTINATION ${_share}/retrograd)
file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/share")
file(CREATE_LINK "${CMAKE_SOURCE_DIR}/resources/samples" "${CMAKE_BINARY_DIR}/share/samples" SYMBOLIC)

# Documentation and licences.
install(FILES "${CMAKE_SOURCE_DIR}/README.md" DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY "${CMAKE_SOURCE_DIR}/docs" DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES "${CMAKE_SOURCE_DIR}/resources/licenses/copyright" DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY "${RETROGRAD_LIBTORCH}/licenses/" DESTINATION ${CMAKE_INSTALL_DOCDIR}/libtorch OPTIONAL)

# The manual page and completions, made by the program (app/CMakeLists.txt).
set(_help "${CMAKE_BINARY_DIR}/app/help")
install(FILES "${_help}/retrograd.1.gz" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
install(FILES "${_help}/retrograd" DESTINATION "${_share}/bash-completion/completions")
install(FILES "${_help}/_retrograd" DESTINATION "${_share}/zsh/site-functions")
install(FILES "${_help}/retrograd.fish" DESTINATION "${_share}/fish/vendor_completions.d")

# What a desktop wants to know.
if(RETROGRAD_GUI)
  configure_file("${_desktop}/${_id}.metainfo.xml.in" "${CMAKE_BINARY_DIR}/share/${_id}.metainfo.xml" @ONLY)
  install(FILES "${_desktop}/${_id}.desktop" DESTINATION ${_share}/applications)
  install(FILES "${_desktop}/${_id}.mime.xml" DESTINATION ${_share}/mime/packages RENAME ${_id}.xml)
  install(FILES "${CMAKE_BINARY_DIR}/share/${_id}.metainfo.xml" DESTINATION ${_share}/metainfo)
  install(FILES "${_desktop}/icons/${_id}.svg" DESTINATION ${_share}/icons/hicolor/scalable/apps)
  file(GLOB _mime_icons CONFIGURE_DEPENDS "${_desktop}/icons/application-*.svg")
  install(FILES ${_mime_icons} DESTINATION ${_share}/icons/hicolor/scalable/mimetypes)
endif()
