#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace retrograd {

/// A recording that lies somewhere, without its ops.
struct StoredRecording {
  std::string path;
  std::uint64_t bytes = 0;            ///< of its files
  std::vector<std::int64_t> updates;  ///< that were recorded
  std::int64_t ops = 0;
  bool complete = false;  ///< false: it was cut off, or still runs
  std::string made;       ///< when, as the manifest says; empty: unknown
};

/// The recordings in `folder`, at any depth, by path; `folder` itself may be one. Links are not followed.
std::vector<StoredRecording> recordingsBelow(const std::string& folder);

/// Removes the files of a recording, and the folder. Files that are not part of a recording stay, and the folder with
/// it. Returns the bytes that became free. Throws Error(badUse) for what is not a recording, Error(io).
std::uint64_t removeRecording(const std::string& path);

}  // namespace retrograd
