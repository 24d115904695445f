#pragma once
#include <map>
#include <string>
#include <string_view>

#include "core/formats/files/mapped_file.h"
#include "core/trace/tensor_data.h"

namespace retrograd {

/// A safetensors file: tensors (mapped, contiguous) and the `__metadata__` strings.
struct SafetensorsFile {
  TensorMap tensors;
  std::map<std::string, std::string> metadata;
};

/// The format's name of a dtype ("F32"); empty where it has none.
std::string_view safetensorsName(DType);

/// Reads and verifies (header length, JSON, dtypes, offsets inside the file and as long as the shape says, no overlap).
/// Throws Error(badInput or io) naming the file.
SafetensorsFile readSafetensors(const std::string& path);
/// The same for bytes in memory; `place` names them in errors.
SafetensorsFile readSafetensors(const ByteRegion& bytes, const std::string& place);

/// Writes contiguous tensors; others are an Error(badUse). Writes next to the target and renames, so a full
/// disk loses nothing. Throws Error(io).
void writeSafetensors(const std::string& path, const TensorMap& tensors,
                      const std::map<std::string, std::string>& metadata = {});

}  // namespace retrograd
