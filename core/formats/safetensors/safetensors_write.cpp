#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/error.h"
#include "core/formats/files/atomic_file.h"
#include "core/formats/files/deferred_check.h"
#include "core/formats/files/mapping_watch.h"
#include "core/formats/safetensors/safetensors.h"

namespace retrograd {
namespace {

using Entry = TensorMap::const_pointer;

void checkWritable(const std::string& name, const TensorData& tensor) {
  const auto refuse = [&](const std::string& why) { badUse(why, "tensor '" + name + "'"); };
  const auto& meta = tensor.meta;
  if (safetensorsName(meta.dtype).empty())
    refuse("safetensors has no dtype for " + std::string(torchName(meta.dtype)) +
           "; store complex numbers as pairs of reals (view_as_real)");
  if (meta.conjugate || meta.negative) refuse("a lazy conjugate or negative; make it contiguous first");
  if (meta.strides.size() != meta.sizes.size()) refuse("as many strides as sizes are needed");
  const auto wanted = contiguousStrides(meta.sizes);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (meta.sizes[i] > 1 && meta.strides[i] != wanted[i] && meta.elements() > 0) refuse("is not contiguous");
  const auto begin = meta.offset * itemSize(meta.dtype);
  if (begin < 0 || static_cast<std::uint64_t>(begin + meta.bytes()) > tensor.bytes)
    refuse("reaches beyond its storage");
}

/// Largest items first, so that each tensor is aligned; then by name.
std::vector<Entry> inFileOrder(const TensorMap& tensors) {
  std::vector<Entry> order;
  for (const auto& entry : tensors) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(),
                   [](Entry a, Entry b) { return itemSize(a->second.meta.dtype) > itemSize(b->second.meta.dtype); });
  return order;
}

std::string headerOf(const std::vector<Entry>& order, const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::int64_t at = 0;
  for (const Entry entry : order) {
    const auto& meta = entry->second.meta;
    header[entry->first] = {
        {"dtype", safetensorsName(meta.dtype)}, {"shape", meta.sizes}, {"data_offsets", {at, at + meta.bytes()}}};
    at += meta.bytes();
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

std::string lengthPrefix(std::size_t length) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(length >> (8 * i) & 0xff);
  return bytes;
}

}  // namespace

void writeSafetensors(const std::string& path, const TensorMap& tensors,
                      const std::map<std::string, std::string>& metadata) {
  for (const auto& [name, tensor] : tensors) checkWritable(name, tensor);
  const auto order = inFileOrder(tensors);
  std::string header;
  try {
    header = headerOf(order, metadata);
  } catch (const nlohmann::json::exception&) {
    badUse("a name or a metadata text is not valid UTF-8", path);
  }
  AtomicFile file(path);
  file.write(lengthPrefix(header.size()));
  file.write(header);
  for (const Entry entry : order) {
    const auto& meta = entry->second.meta;
    requireVerified(entry->second.data);
    if (meta.bytes() > 0)
      file.write(
          std::span(entry->second.data + meta.offset * itemSize(meta.dtype), static_cast<std::size_t>(meta.bytes())));
    requireUnchanged(entry->second.data);
  }
  file.commit();
}

}  // namespace retrograd
