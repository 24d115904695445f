#include "core/formats/recording/recording_store.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/memory_account.h"
#include "core/formats/files/mapped_file.h"
#include "core/formats/json/json_tree.h"
#include "core/formats/recording/recording.h"

namespace retrograd {
namespace {

namespace fs = std::filesystem;

bool isDataFile(const fs::path& path) { return path.extension() == ".safetensors" || path.extension() == ".partial"; }

/// The files of a recording; nothing else that may lie in its folder.
std::vector<fs::path> filesOf(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto* name : {"retrograd.json", "retrograd.json.new", "ops.jsonl"})
    if (fs::is_regular_file(fs::symlink_status(folder / name, ignored))) files.push_back(folder / name);
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder / "data", error); !error && entry != fs::directory_iterator();
       entry.increment(error))
    if (fs::is_regular_file(entry->symlink_status(ignored)) && isDataFile(entry->path()))
      files.push_back(entry->path());
  return files;
}

void readManifest(StoredRecording& stored) {
  try {
    const auto bytes = mapFile((fs::path(stored.path) / "retrograd.json").string());
    const ReadingScope scope(bytes.size);
    const JsonTree tree(bytes.text());
    const Json& manifest = tree.root();
    if (const Json* complete = manifest.find("complete")) stored.complete = complete->boolean();
    if (const Json* ops = manifest.find("ops")) stored.ops = ops->integer();
    if (const Json* made = manifest.find("made"))
      if (const Json* time = made->find("time")) stored.made = time->text();
    if (const Json* updates = manifest.find("updates"))
      for (const auto& update : updates->items()) stored.updates.push_back(update.integer());
  } catch (const Error&) {
    stored.complete = false;  // its files count all the same
  }
}

StoredRecording storedAt(const std::string& path) {
  StoredRecording stored;
  stored.path = path;
  std::error_code ignored;
  for (const auto& file : filesOf(path))
    if (const auto size = fs::file_size(file, ignored); !ignored) stored.bytes += size;
  readManifest(stored);
  return stored;
}

}  // namespace

std::vector<StoredRecording> recordingsBelow(const std::string& folder) {
  std::vector<StoredRecording> found;
  if (isRecording(folder)) found.push_back(storedAt(folder));
  std::error_code error;
  for (auto entry = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error))
    if (std::error_code ignored; entry->is_directory(ignored) && isRecording(entry->path().string()))
      found.push_back(storedAt(entry->path().string()));
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return found;
}

std::uint64_t removeRecording(const std::string& path) {
  if (!isRecording(path)) badUse("is not a recording", path);
  std::uint64_t freed = 0;
  std::error_code error;
  for (const auto& file : filesOf(path)) {
    const auto size = fs::file_size(file, error);
    if (!error) freed += size;
    if (!fs::remove(file, error) || error)
      throw Error(ErrorCode::io, "cannot be removed: " + error.message(), file.string());
  }
  fs::remove(fs::path(path) / "data", error);  // only where nothing else lies in it
  fs::remove(path, error);
  return freed;
}

}  // namespace retrograd
