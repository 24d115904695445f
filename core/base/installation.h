#pragma once
#include <filesystem>

namespace retrograd {

/// Where the files that come with the program lie, found from where the program itself lies, so that an installed tree
/// can be moved:
///
///     build tree: retrograd, NAME, share/NAME     installed: bin/retrograd, lib/retrograd/NAME (retrograd-program
///     too), share/retrograd/NAME
///
/// A wheel has a program for each minor version of PyTorch: lib/retrograd/torch-2.15/retrograd-program.

/// A program or library of ours ("retrograd-layout"); an empty path where it is not there. Throws nothing.
std::filesystem::path privateFile(const char* name);
/// A file or folder of data ("samples"); an empty path where it is not there. Throws nothing.
std::filesystem::path sharedFile(const char* name);

}  // namespace retrograd
