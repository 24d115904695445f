#include "core/formats/checkpoint/distributed.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/memory_account.h"
#include "core/base/tensor_meta.h"
#include "core/formats/checkpoint/saved_object.h"
#include "core/formats/checkpoint/strided_copy.h"
#include "core/formats/files/mapping_watch.h"
#include "core/formats/pickle/pickle.h"
#include "core/formats/safetensors/safetensors.h"

namespace fs = std::filesystem;

namespace retrograd {
namespace {

using Kind = PickleValue::Kind;
using Sizes = std::vector<std::int64_t>;

/// The files of slices, mapped when first asked for.
class SliceFiles {
 public:
  explicit SliceFiles(std::string folder) : folder_(std::move(folder)) {}

  ByteRegion file(const std::string& name) {
    const std::lock_guard lock(mutex_);
    auto [it, isNew] = files_.try_emplace(name);
    if (isNew) it->second = mapFile(path(name));
    return it->second;
  }
  const SafetensorsFile& safetensors(const std::string& name) {
    const auto bytes = file(name);
    const std::lock_guard lock(mutex_);
    auto it = safetensors_.find(name);
    if (it == safetensors_.end()) it = safetensors_.emplace(name, readSafetensors(bytes, path(name))).first;
    return it->second;
  }
  std::string path(const std::string& name) const { return (fs::path(folder_) / name).string(); }

 private:
  std::string folder_;
  std::mutex mutex_;
  std::map<std::string, ByteRegion> files_;
  std::map<std::string, SafetensorsFile> safetensors_;
};

/// Where the bytes of a chunk lie.
struct Slice {
  std::string file;
  std::uint64_t offset = 0, length = 0;
};

struct Chunk {
  Sizes offsets, sizes;
  Slice slice;
};

TensorData readSlice(SliceFiles& files, const std::string& name, const Slice& slice) {
  const auto bytes = files.file(slice.file);
  const auto place = files.path(slice.file) + ": '" + name + "'";
  return readUnchanged(bytes.data, [&] {
    if (slice.offset > bytes.size || slice.length > bytes.size - slice.offset)
      badInput("its slice lies outside of the file", place);
    const ByteRegion part{bytes.data + slice.offset, slice.length, bytes.owner};
    if (looksLikeZip(part.span())) {
      auto saved = readSavedObject(part, place);
      if (saved.leaves.size() != 1 || !saved.leaves.front().tensor) badInput("its slice is not a tensor", place);
      return *saved.leaves.front().tensor;
    }
    const auto& tensors =
        files.safetensors(slice.file).tensors;  // SerializationFormat.SAFETENSORS: the file is one of many tensors
    const auto it = tensors.find(name);
    if (it == tensors.end()) badInput("its slice is neither an archive of torch.save nor in a safetensors file", place);
    return it->second;
  });
}

/// Marks the elements of a chunk; false where one was marked already.
bool markChunk(std::vector<bool>& seen, const TensorMeta& meta, const Chunk& chunk) {
  Sizes index(chunk.sizes.size(), 0);
  if (std::find(chunk.sizes.begin(), chunk.sizes.end(), 0) != chunk.sizes.end()) return true;
  for (;;) {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < index.size(); ++i) at += (chunk.offsets[i] + index[i]) * meta.strides[i];
    if (seen[at]) return false;
    seen[at] = true;
    auto dimension = index.size();
    while (dimension > 0 && ++index[dimension - 1] == chunk.sizes[dimension - 1]) index[--dimension] = 0;
    if (dimension == 0) return true;
  }
}

/// The whole tensor of its chunks. Nothing is allocated before the slices were found to hold that many bytes.
TensorData assemble(SliceFiles& files, const std::string& name, const TensorMeta& meta,
                    const std::vector<Chunk>& chunks) {
  std::vector<TensorData> parts;
  std::int64_t elements = 0;
  for (const auto& chunk : chunks) {
    auto part = readSlice(files, name, chunk.slice);
    if (part.meta.sizes != chunk.sizes || part.meta.dtype != meta.dtype)
      badInput("a slice of '" + name + "' is " + typeComment(part.meta) + ", not what .metadata says");
    if (static_cast<std::uint64_t>(part.meta.bytes()) > part.bytes)
      badInput("a slice of '" + name + "' has elements that share memory");
    elements += part.meta.elements();
    parts.push_back(std::move(part));
  }
  if (elements != meta.elements())
    badInput("the slices of '" + name + "' hold " + std::to_string(elements) + " of its " +
             std::to_string(meta.elements()) + " elements");
  if (chunks.size() == 1) return aligned(parts.front());
  std::vector<bool> seen(elements);
  auto storage = std::make_shared<std::vector<std::byte>>(meta.bytes());
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (!markChunk(seen, meta, chunks[i])) badInput("slices of '" + name + "' overlap");
    copyElements(parts[i], meta, storage->data(), chunks[i].offsets);
  }
  TensorData tensor{meta, storage->data(), storage->size(), nullptr};
  tensor.owner = std::move(storage);
  return tensor;
}

/// The Metadata object of the pickle, by the names of its attributes.
class MetadataReader {
 public:
  MetadataReader(Pickle pickle, std::string folder, Checkpoint& checkpoint)
      : pickle_(std::move(pickle)), files_(std::make_shared<SliceFiles>(std::move(folder))), checkpoint_(checkpoint) {}

  void run() {
    const auto& root = pickle_.at(pickle_.root);
    if (root.kind != Kind::object || root.text != "torch.distributed.checkpoint.metadata Metadata")
      badInput("is not a Metadata of torch.distributed.checkpoint");
    readStorage(dict(attribute(root, "storage_data")));
    if (const auto* planned = find(root, "planner_data"); planned && planned->kind == Kind::dict) readPaths(*planned);
    const auto& tensors = dict(attribute(root, "state_dict_metadata"));
    for (std::size_t i = 0; i + 1 < tensors.items.size(); i += 2) {
      const auto name = text(pickle_.at(tensors.items[i]));
      try {
        addTensor(name, pickle_.at(tensors.items[i + 1]));
      } catch (const Error& e) {
        throw e.at("'" + name + "'");
      }
    }
  }

 private:
  /// The value of an object's attribute; null where it has none.
  const PickleValue* find(const PickleValue& object, std::string_view name) const {
    if (object.kind != Kind::object || object.items.empty()) return nullptr;
    const auto& state = pickle_.at(object.items.back());
    if (state.kind != Kind::dict) return nullptr;
    for (std::size_t i = 0; i + 1 < state.items.size(); i += 2)
      if (pickle_.at(state.items[i]).kind == Kind::string && pickle_.at(state.items[i]).text == name)
        return &pickle_.at(state.items[i + 1]);
    return nullptr;
  }
  const PickleValue& attribute(const PickleValue& object, std::string_view name) const {
    const auto* value = find(object, name);
    if (!value) badInput("an object of " + object.text + " lacks '" + std::string(name) + "'");
    return *value;
  }
  static const PickleValue& dict(const PickleValue& value) {
    if (value.kind != Kind::dict) badInput("a dictionary was expected");
    return value;
  }
  static std::string text(const PickleValue& value) {
    if (value.kind != Kind::string) badInput("a text was expected");
    return value.text;
  }
  Sizes sizes(const PickleValue& value) const {
    if (value.kind != Kind::tuple && value.kind != Kind::list) badInput("a shape was expected");
    if (value.items.size() > maxRank) badInput("a tensor of more than 64 dimensions");
    Sizes result;
    for (const auto item : value.items) {
      if (pickle_.at(item).kind != Kind::integer || pickle_.at(item).integer < 0)
        badInput("a size that is not a whole number");
      result.push_back(pickle_.at(item).integer);
    }
    return result;
  }

  void readStorage(const PickleValue& table) {
    for (std::size_t i = 0; i + 1 < table.items.size(); i += 2) {
      const auto &index = pickle_.at(table.items[i]), &place = pickle_.at(table.items[i + 1]);
      const auto name = text(attribute(index, "fqn"));
      const auto* offset = find(index, "offset");
      const auto* transforms = find(place, "transform_descriptors");
      if (transforms && transforms->kind != Kind::none && !transforms->items.empty())
        refuseTransforms(name, *transforms);
      Slice slice;
      slice.file = text(attribute(place, "relative_path"));
      const fs::path relative(slice.file);
      if (slice.file.empty() || relative.is_absolute() ||
          std::any_of(relative.begin(), relative.end(), [](const fs::path& part) { return part == ".."; }))
        badInput("names a file outside of its folder: '" + slice.file + "'");
      const auto &from = attribute(place, "offset"), &length = attribute(place, "length");
      if (from.kind != Kind::integer || length.kind != Kind::integer || from.integer < 0 || length.integer < 0)
        badInput("a slice of no place: '" + name + "'");
      slice.offset = static_cast<std::uint64_t>(from.integer);
      slice.length = static_cast<std::uint64_t>(length.integer);
      slices_[name].emplace(offset && offset->kind != Kind::none ? sizes(*offset) : Sizes(), std::move(slice));
    }
  }
  [[noreturn]] void refuseTransforms(const std::string& name, const PickleValue& transforms) const {
    std::string names;
    for (const auto item : transforms.items)
      names += (names.empty() ? "" : ", ") + (pickle_.at(item).kind == Kind::string ? pickle_.at(item).text : "?");
    badInput("'" + name + "' was written through transforms (" + names +
             "), which are not undone here; save it without them, or convert it with " +
             "torch.distributed.checkpoint.format_utils.dcp_to_torch_save");
  }
  void readPaths(const PickleValue& table) {
    for (std::size_t i = 0; i + 1 < table.items.size(); i += 2) {
      const auto& path = pickle_.at(table.items[i + 1]);
      if (path.kind != Kind::tuple) continue;
      auto& keys = paths_[text(pickle_.at(table.items[i]))];
      for (const auto item : path.items) {
        const auto& key = pickle_.at(item);
        keys.push_back(key.kind == Kind::integer ? std::to_string(key.integer) : text(key));
      }
    }
  }

  void addTensor(const std::string& name, const PickleValue& described) {
    if (described.kind != Kind::object) badInput("is not the metadata of a tensor");
    if (described.text.ends_with(" BytesStorageMetadata")) return;  // a number or an object, pickled on its own
    if (!described.text.ends_with(" TensorStorageMetadata"))
      return void(checkpoint_.others.push_back(name + ": " + described.text));
    auto tensor = tensorNamed(name);
    tensor.meta.dtype = dtypeOf(attribute(described, "properties"));
    tensor.meta.sizes = sizes(attribute(described, "size"));
    tensor.meta.strides = contiguousStrides(tensor.meta.sizes);
    checkExtent(tensor.meta);
    auto chunks = chunksOf(name, tensor.meta, attribute(described, "chunks"));
    tensor.load = [files = files_, name, meta = tensor.meta, chunks = std::move(chunks)] {
      return assemble(*files, name, meta, chunks);
    };
    checkpoint_.tensors.push_back(std::move(tensor));
  }
  /// With the keys that the planner says; where it does not, the first part of the name is taken for the key of a
  /// dictionary.
  CheckpointTensor tensorNamed(const std::string& name) const {
    if (const auto it = paths_.find(name); it != paths_.end()) {
      auto tensor = namedTensor(it->second);
      if (tensor.name == name) return tensor;
    }
    const auto dot = paths_.empty() ? name.find('.') : std::string::npos;
    return dot == std::string::npos ? namedTensor({name}) : namedTensor({name.substr(0, dot), name.substr(dot + 1)});
  }
  /// TensorProperties is pickled as a tuple that begins with the dtype, in older versions as a dictionary.
  DType dtypeOf(const PickleValue& properties) const {
    const PickleValue* dtype = find(properties, "dtype");
    if (!dtype && properties.kind == Kind::object && !properties.items.empty())
      if (const auto& state = pickle_.at(properties.items.back()); state.kind == Kind::tuple && !state.items.empty())
        dtype = &pickle_.at(state.items.front());
    const std::string_view global =
        dtype && dtype->kind == Kind::global ? std::string_view(dtype->text) : std::string_view();
    const auto known = global.starts_with("torch ") ? dtypeFromTorchName(global.substr(6)) : std::nullopt;
    if (!known) badInput("a tensor of unknown dtype");
    return *known;
  }
  std::vector<Chunk> chunksOf(const std::string& name, const TensorMeta& meta, const PickleValue& list) const {
    const auto slices = slices_.find(name);
    std::vector<Chunk> chunks;
    for (const auto item : list.items) {
      Chunk chunk{sizes(attribute(pickle_.at(item), "offsets")), sizes(attribute(pickle_.at(item), "sizes")), {}};
      bool inside = chunk.offsets.size() == meta.sizes.size() && chunk.sizes.size() == meta.sizes.size();
      for (std::size_t i = 0; inside && i < meta.sizes.size(); ++i)
        inside = chunk.sizes[i] <= meta.sizes[i] && chunk.offsets[i] <= meta.sizes[i] - chunk.sizes[i];
      if (!inside) badInput("a chunk lies outside of the tensor");
      if (slices == slices_.end()) badInput("no file holds it");
      auto place = slices->second.find(chunk.offsets);
      if (place == slices->second.end() && list.items.size() == 1) place = slices->second.find(Sizes());
      if (place == slices->second.end()) badInput("no file holds one of its chunks");
      chunk.slice = place->second;
      chunks.push_back(std::move(chunk));
    }
    return chunks;
  }

  Pickle pickle_;
  std::shared_ptr<SliceFiles> files_;
  Checkpoint& checkpoint_;
  std::unordered_map<std::string, std::map<Sizes, Slice>> slices_;  // by name and offsets
  std::unordered_map<std::string, std::vector<std::string>> paths_;
};

}  // namespace

void readMetadata(std::string_view pickle, const std::string& folder, Checkpoint& checkpoint) {
  PickleRecord record;
  record.opaque = true;
  record.maxValues = 8'000'000;
  MetadataReader(readPickle(pickle, record), folder, checkpoint).run();
}

Checkpoint readDistributed(const std::string& folder, const Progress& progress) {
  Checkpoint checkpoint{folder, "distributed checkpoint", {}, {}};
  const auto path = (fs::path(folder) / ".metadata").string();
  progress.at("Read weights", 0);
  const auto bytes = mapFile(path);
  const ReadingScope scope(bytes.size);
  readUnchanged(bytes.data, [&] {
    try {
      readMetadata(bytes.text(), folder, checkpoint);
    } catch (const Error& e) {
      throw e.at(path);
    }
    return true;
  });
  return checkpoint;
}

}  // namespace retrograd
