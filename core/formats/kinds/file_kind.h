#pragma once
#include <string>

#include "core/formats/zip/archive.h"

namespace retrograd {

/// Whether a file holds printed traces (formats/text/text_trace.h): text with a line that defines one.
bool looksLikeTraces(const ByteRegion& bytes);

/// What kind a file other than a zip archive is (ONNX, safetensors, a legacy pickle, ...), and how to make one that can
/// be read: the message of an Error. `bytes` is the whole file.
std::string describeForeignFile(const ByteRegion& bytes);

/// The same for a zip archive without a graph: TorchScript, a state dict, an AOTInductor package, an older torch.export
/// layout.
std::string describeForeignArchive(const Archive& archive);

/// Whether these are the bytes of a session file (session_file.h), by what is in them; cheap, nothing is verified.
bool looksLikeSessionFile(const ByteRegion& bytes);
/// The same of a file. Throws Error(badInput) where it cannot be read: taken for a model, a session would be derived
/// again, without what it keeps.
bool isSessionFile(const std::string& path);

}  // namespace retrograd
