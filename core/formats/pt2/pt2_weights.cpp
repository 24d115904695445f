#include "core/formats/pt2/pt2_weights.h"

#include "core/base/error.h"
#include "core/formats/files/deferred_check.h"
#include "core/formats/json/json_tree.h"
#include "core/formats/pickle/pickle.h"
#include "core/formats/pickle/pickle_tensors.h"
#include "core/formats/pt2/pt2_values.h"

namespace retrograd::pt2 {
namespace {

class WeightReader {
 public:
  explicit WeightReader(std::shared_ptr<const Archive> archive) : archive_(std::move(archive)) {}

  void readConfig(const std::string& folder, const std::string& config,
                  std::map<std::string, Weight, std::less<>>& into, const Progress& progress) {
    const std::string record = folder + config;
    if (!archive_->has(record)) return;
    try {
      const JsonTree tree(archive_->read(record).text());
      const auto entries = tree.root().at("config").members();
      std::size_t done = 0;
      for (const auto& [name, payload] : entries) {
        progress.at("Read weights", static_cast<double>(done++) / static_cast<double>(entries.size()));
        readEntry(folder, name, payload, into);
      }
    } catch (const Error& e) {
      throw e.code() == ErrorCode::cancelled ? e : e.at(record);
    }
  }

 private:
  void readEntry(const std::string& folder, std::string_view name, const Json& payload,
                 std::map<std::string, Weight, std::less<>>& into) {
    try {
      const Json* meta = payload.find("tensor_meta");
      const bool pickled = payload.at("use_pickle").boolean();
      if (!pickled && (!meta || meta->isNull())) return;  // a custom object: nothing that a tensor could be made of
      Weight weight;
      weight.record = folder + std::string(payload.at("path_name").text());
      weight.isParameter = payload.at("is_param").boolean();
      pickled ? readPickled(weight) : readRaw(*meta, weight);
      if (!into.emplace(name, std::move(weight)).second) badInput("is listed twice");
    } catch (const Error& e) {
      throw e.at("'" + std::string(name) + "'");
    }
  }

  void readRaw(const Json& meta, Weight& weight) {
    weight.tensor.meta = readMeta(meta);
    if (!weight.tensor.meta.symbols.empty()) badInput("a weight of symbolic size");
    if (weight.tensor.meta.layout != Layout::strided)
      badInput("a sparse weight; only strided ones are stored as plain bytes");
    if (const Json* flag = meta.find("requires_grad")) weight.requiresGrad = flag->boolean();
    const auto region = aligned(weight.record, itemSize(weight.tensor.meta.dtype));
    weight.tensor.data = region.data;
    weight.tensor.bytes = region.size;
    weight.tensor.owner = region.owner;
    try {
      checkReach(weight.tensor.meta, region.size);
    } catch (const Error& e) {
      throw e.at("record " + weight.record);
    }
  }

  /// Tied weights ask for the same record: one region for all. PyTorch aligns records; where another tool has not, the
  /// bytes move.
  ByteRegion aligned(const std::string& record, std::size_t alignment) {
    auto [it, isNew] = regions_.try_emplace(record);
    if (isNew) it->second = archive_->readUnverified(record);
    auto& region = it->second;
    if (region.size == 0 || reinterpret_cast<std::uintptr_t>(region.data) % alignment == 0) return region;
    requireVerified(region.data);
    auto copy = std::make_shared<std::vector<std::byte>>(region.data, region.data + region.size);
    const auto* data = copy->data();
    region = {data, copy->size(), std::move(copy)};
    return region;
  }

  void readPickled(Weight& weight) {
    const auto inner = Archive::open(archive_->read(weight.record), weight.record);
    const Pickle pickle = readPickle(inner);
    const auto& value = pickle.at(pickle.root);
    if (value.kind != PickleValue::Kind::tensor) badInput("record " + weight.record + " is not a tensor");
    weight.tensor = value.tensor;
    weight.requiresGrad = weight.isParameter || value.integer != 0;
  }

  std::shared_ptr<const Archive> archive_;
  std::unordered_map<std::string, ByteRegion> regions_;
};

}  // namespace

const Weight* WeightTable::find(std::string_view name) const {
  if (const auto it = weights.find(name); it != weights.end()) return &it->second;
  if (const auto it = constants.find(name); it != constants.end()) return &it->second;
  return nullptr;
}

WeightTable readWeights(const std::shared_ptr<const Archive>& archive, const std::string& model,
                        const Progress& progress) {
  WeightTable table;
  WeightReader reader(archive);
  reader.readConfig("data/weights/", model + "_weights_config.json", table.weights, progress);
  reader.readConfig("data/constants/", model + "_constants_config.json", table.constants, progress);
  return table;
}

}  // namespace retrograd::pt2
