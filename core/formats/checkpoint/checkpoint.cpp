#include "core/formats/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/base/error.h"
#include "core/base/memory_account.h"
#include "core/formats/checkpoint/distributed.h"
#include "core/formats/checkpoint/saved_object.h"
#include "core/formats/checkpoint/strided_copy.h"
#include "core/formats/files/mapping_watch.h"
#include "core/formats/json/json_tree.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/formats/zip/zip_directory.h"

namespace fs = std::filesystem;

namespace retrograd {
namespace {

constexpr std::string_view indexEnding = ".index.json";

void addLoaded(Checkpoint& checkpoint, CheckpointTensor tensor, const TensorData& data) {
  tensor.meta = data.meta;
  tensor.load = [data = aligned(data)] { return data; };
  checkpoint.tensors.push_back(std::move(tensor));
}

Checkpoint fromSafetensors(const std::string& path) {
  Checkpoint checkpoint{path, "safetensors", {}, {}};
  for (auto& [name, data] : readSafetensors(path).tensors) addLoaded(checkpoint, namedTensor({name}), data);
  return checkpoint;
}

Checkpoint fromSaved(const std::string& path, const Progress& progress) {
  Checkpoint checkpoint{path, "torch.save", {}, {}};
  auto saved = readSavedObject(path, progress);
  for (auto& leaf : saved.leaves)
    if (leaf.tensor) addLoaded(checkpoint, namedTensor(leaf.keys), *leaf.tensor);
  checkpoint.others = std::move(saved.others);
  return checkpoint;
}

Checkpoint fromFile(const std::string& path, const Progress& progress) {
  const auto bytes = mapFile(path);
  return looksLikeZip(bytes.span()) ? fromSaved(path, progress) : fromSafetensors(path);
}

/// A file that another one names: next to it, and nowhere else.
std::string besideOf(const std::string& path, std::string_view name) {
  const fs::path relative(name);
  const bool leaves = relative.is_absolute() ||
                      std::any_of(relative.begin(), relative.end(), [](const fs::path& part) { return part == ".."; });
  if (name.empty() || leaves) badInput("names a file outside of its folder: '" + std::string(name) + "'", path);
  return (fs::path(path).parent_path() / relative).string();
}

Checkpoint fromIndex(const std::string& path, const Progress& progress) {
  std::map<std::string, std::map<std::string, bool>> wanted;  // by shard: name -> seen
  {
    const auto bytes = mapFile(path);
    const ReadingScope scope(bytes.size);
    try {
      const JsonTree tree(bytes.text());
      for (const auto& [name, shard] : tree.root().at("weight_map").members())
        wanted[std::string(shard.text())].emplace(name, false);
    } catch (const Error& e) {
      throw e.at(path);
    }
  }
  Checkpoint checkpoint{path, {}, {}, {}};
  for (auto& [shard, names] : wanted) {
    auto part = fromFile(besideOf(path, shard), progress);
    checkpoint.form = fmt::format("{}, {} {}", part.form, wanted.size(), wanted.size() == 1 ? "shard" : "shards");
    for (auto& tensor : part.tensors)
      if (const auto it = names.find(tensor.name); it != names.end() && !std::exchange(it->second, true))
        checkpoint.tensors.push_back(std::move(tensor));
    for (const auto& [name, seen] : names)
      if (!seen) badInput(fmt::format("lacks '{}', which {} says it holds", name, path), part.path);
  }
  return checkpoint;
}

/// What a folder holds: the file to read in it.
std::string inFolder(const std::string& path) {
  std::vector<std::string> indices, files;
  for (const auto& entry : fs::directory_iterator(path)) {
    const auto name = entry.path().filename().string();
    if (name.ends_with(indexEnding)) indices.push_back(entry.path().string());
    if (name.ends_with(".safetensors")) files.push_back(entry.path().string());
  }
  if (indices.size() == 1) return indices.front();
  if (indices.empty() && files.size() == 1) return files.front();
  badInput(indices.size() > 1 || files.size() > 1
               ? "holds several checkpoints; name one of its files"
               : "holds no checkpoint: neither .metadata (a distributed checkpoint), nor an index of shards "
                 "(*.index.json), nor a .safetensors file",
           path);
}

Checkpoint read(const std::string& path, const Progress& progress) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    if (fs::exists(fs::path(path) / ".metadata", ignored)) return readDistributed(path, progress);
    return read(inFolder(path), progress);
  }
  if (path.ends_with(indexEnding)) return fromIndex(path, progress);
  if (fs::path(path).filename() == ".metadata") return readDistributed(fs::path(path).parent_path().string(), progress);
  return fromFile(path, progress);
}

}  // namespace

bool isCheckpoint(const std::string& path) {
  std::error_code ignored;
  const fs::path place(path);
  if (fs::is_directory(place, ignored)) {
    if (fs::exists(place / "retrograd.json", ignored)) return false;
    if (fs::exists(place / ".metadata", ignored)) return true;
    for (const auto& entry : fs::directory_iterator(place, ignored)) {
      const auto name = entry.path().filename().string();
      if (name.ends_with(indexEnding) || name.ends_with(".safetensors")) return true;
    }
    return false;
  }
  if (!fs::is_regular_file(place, ignored)) return false;
  if (path.ends_with(indexEnding) || path.ends_with(".safetensors")) return true;
  try {
    const auto bytes = mapFile(path);
    if (!looksLikeZip(bytes.span())) return false;
    bool pickled = false, graph = false;
    for (const auto& entry : readZipDirectory(bytes.span())) {
      pickled |= entry.name.ends_with("/data.pkl");
      graph |= entry.name.find("/models/") != std::string::npos || entry.name.find("/code/") != std::string::npos ||
               entry.name.ends_with("/constants.pkl");
    }
    return pickled && !graph;
  } catch (const Error&) {
    return false;
  }
}

CheckpointTensor namedTensor(const std::vector<std::string>& keys) {
  CheckpointTensor tensor;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i > 0) tensor.borders.push_back(tensor.name.size() + 1);
    tensor.name += (i > 0 ? "." : "") + keys[i];
  }
  return tensor;
}

Checkpoint readCheckpoint(const std::string& path, const Progress& progress) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) badUse("no such file", path);
  try {
    auto checkpoint = read(path, progress);
    auto& tensors = checkpoint.tensors;
    std::sort(tensors.begin(), tensors.end(),
              [](const CheckpointTensor& a, const CheckpointTensor& b) { return a.name < b.name; });
    const auto twice = std::adjacent_find(tensors.begin(), tensors.end(),
                                          [](const auto& a, const auto& b) { return a.name == b.name; });
    if (twice != tensors.end()) badInput("holds two tensors of this name: '" + twice->name + "'", path);
    return checkpoint;
  } catch (const std::bad_alloc&) {
    badInput("does not fit into memory", path);
  } catch (const fs::filesystem_error& e) {
    badInput(e.code().message(), path);
  }
}

}  // namespace retrograd
