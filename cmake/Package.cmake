# The Debian package, made by scripts/package. What it needs of other packages is read off the programs in it (dpkg-shlibdeps); LibTorch, which
# Debian 12 has in no such version, is inside. Nothing of NVIDIA's is: the component `cuda` stays out.
set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL retrograd)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS ${CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS})
set(CPACK_STRIP_FILES ON)   # our own programs; LibTorch is handed on as it came
set(CPACK_THREADS 0)

set(CPACK_PACKAGE_NAME retrograd)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_CONTACT "The Retrograd maintainers <maintainers@retrograd.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "debugger for autograd: a model's backward beside its forward")
set(CPACK_PACKAGE_DESCRIPTION
  "Retrograd opens a saved PyTorch model, derives its backward, links every\nbackward op to the forward op that it comes from, and runs both op by op,\n\
forwards and in reverse. It tells where a gradient, a NaN, a saved tensor or\na gigabyte comes from. All of it works in a terminal too.\n\
.\nLibTorch is inside and runs on the CPU.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${RETROGRAD_LIBTORCH}/lib" "${CMAKE_BINARY_DIR}/standins")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "fonts-dejavu-core, qt6-wayland, shared-mime-info, desktop-file-utils")
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)   # xz takes minutes for LibTorch
include(CPack)
