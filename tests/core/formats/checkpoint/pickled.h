#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tests/core/formats/zip/zip_writer.h"

/// Pickles put together from opcodes: each function gives the code of a value.
namespace retrograd::test::pickled {

inline std::string number(std::uint64_t n, int width) {
  std::string out;
  put(out, n, width);
  return out;
}
inline std::string text(const std::string& s) { return "X" + number(s.size(), 4) + s; }
inline std::string whole(std::int64_t i) { return "J" + number(static_cast<std::uint64_t>(i), 4); }
inline std::string none() { return "N"; }
inline std::string tuple(const std::vector<std::string>& items) {
  std::string code = "(";
  for (const auto& item : items) code += item;
  return code + "t";
}
inline std::string list(const std::vector<std::string>& items) {
  std::string code = "](";
  for (const auto& item : items) code += item;
  return code + "e";
}
inline std::string dict(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string code = "}(";
  for (const auto& [key, value] : items) code += key + value;
  return code + "u";
}
inline std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
inline std::string call(const std::string& callee, const std::vector<std::string>& arguments) {
  return callee + tuple(arguments) + "R";
}
inline std::string object(const std::string& type, const std::string& state) { return type + ")\x81" + state + "b"; }
inline std::string shape(const std::vector<std::int64_t>& sizes) {
  std::vector<std::string> items;
  for (auto size : sizes) items.push_back(whole(size));
  return tuple(items);
}
inline std::string sizes(const std::vector<std::int64_t>& values) {
  return call(global("torch", "Size"), {shape(values)});
}
/// A contiguous float tensor of the storage `key`.
inline std::string tensor(const std::string& key, const std::vector<std::int64_t>& sizes,
                          const std::vector<std::int64_t>& strides, std::int64_t elements) {
  const auto storage =
      tuple({text("storage"), global("torch", "FloatStorage"), text(key), text("cpu"), whole(elements)}) + "Q";
  return call(global("torch._utils", "_rebuild_tensor_v2"), {storage, whole(0), shape(sizes), shape(strides), "\x89",
                                                             call(global("collections", "OrderedDict"), {})});
}
inline std::string pickle(const std::string& value) { return "\x80\x02" + value + "."; }

inline std::string floats(std::initializer_list<float> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(float)};
}

/// What torch.save writes.
inline std::string saved(const std::string& value, const std::vector<std::pair<std::string, std::string>>& storages) {
  ZipContent content{{"archive/data.pkl", pickle(value)}};
  for (const auto& [key, bytes] : storages) content.emplace_back("archive/data/" + key, bytes);
  return makeZip(content);
}

// A distributed checkpoint's metadata.
inline const std::string metadataModule = "torch.distributed.checkpoint.metadata";
inline std::string chunk(const std::vector<std::int64_t>& offsets, const std::vector<std::int64_t>& extent) {
  return object(global(metadataModule, "ChunkStorageMetadata"),
                dict({{text("offsets"), sizes(offsets)}, {text("sizes"), sizes(extent)}}));
}
inline std::string storedTensor(const std::vector<std::int64_t>& size, const std::vector<std::string>& chunks) {
  const auto properties =
      object(global(metadataModule, "TensorProperties"), tuple({global("torch", "float32"), none()}));
  return object(global(metadataModule, "TensorStorageMetadata"),
                dict({{text("properties"), properties}, {text("size"), sizes(size)}, {text("chunks"), list(chunks)}}));
}
inline std::string index(const std::string& name, const std::vector<std::int64_t>& offset) {
  return object(global(metadataModule, "MetadataIndex"),
                dict({{text("fqn"), text(name)}, {text("index"), whole(0)}, {text("offset"), sizes(offset)}}));
}
inline std::string place(const std::string& file, std::size_t offset, std::size_t length,
                         const std::string& transforms = {}) {
  std::vector<std::pair<std::string, std::string>> state{{text("relative_path"), text(file)},
                                                         {text("offset"), whole(static_cast<std::int64_t>(offset))},
                                                         {text("length"), whole(static_cast<std::int64_t>(length))}};
  if (!transforms.empty()) state.emplace_back(text("transform_descriptors"), transforms);
  return object(global("torch.distributed.checkpoint.filesystem", "_StorageInfo"), dict(state));
}
inline std::string metadata(const std::string& tensors, const std::string& storage, const std::string& planner) {
  return pickle(object(global(metadataModule, "Metadata"), dict({{text("state_dict_metadata"), tensors},
                                                                 {text("planner_data"), planner},
                                                                 {text("storage_data"), storage}})));
}

}  // namespace retrograd::test::pickled
