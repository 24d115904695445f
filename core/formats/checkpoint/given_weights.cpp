#include "core/formats/checkpoint/given_weights.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "core/base/error.h"
#include "core/base/user_choice.h"
#include "core/formats/checkpoint/name_binding.h"
#include "core/formats/checkpoint/strided_copy.h"

namespace retrograd {
namespace {

bool isWeight(const InputSpec& spec) { return spec.kind == InputKind::parameter || spec.kind == InputKind::buffer; }

/// What a name of the model is in the file: its description in the graph, or the tensor itself.
const TensorMeta* metaOf(const ModelFile& file, const InputSpec& spec) {
  const auto& document = *file.document;
  if (spec.value && document.isTensor(spec.value)) return &document.meta(spec.value);
  const auto it = file.weights.find(spec.target);
  return it == file.weights.end() ? nullptr : &it->second.meta;
}

/// Names of the model that are one storage; each is a tensor of its own where no others share it.
using Ties = std::map<std::string, std::vector<std::string>>;  // first name -> all names

class WeightBinder {
 public:
  WeightBinder(ModelFile& file, const GivenData& given) : file_(file), given_(given) {}

  void run(const Progress& progress) {
    collect();
    const auto checkpoint = readCheckpoint(given_.weights, progress);
    auto binding = bindNames(checkpoint, wanted_, given_.under);
    forgive(binding);
    const auto trouble = describeMismatches(binding, !given_.ofWhole);
    const auto from = binding.under.empty() ? checkpoint.form : checkpoint.form + ", under '" + binding.under + "'";
    if (!trouble.empty() && !given_.partial)
      badUse("does not fit the model (" + from + "; " + nameOf(UserChoice::partialWeights) +
                 " takes what fits):" + trouble,
             given_.weights);
    if (binding.bound.empty()) badUse("holds none of the model's weights (" + from + "):" + trouble, given_.weights);
    std::size_t done = 0;
    for (const auto& [name, tensor] : binding.bound) {
      progress.at("Read weights", static_cast<double>(done++) / static_cast<double>(binding.bound.size()));
      bind(name, *tensor);
    }
    shareTied(binding);
    file_.problems.push_back({Problem::Severity::note,
                              std::to_string(binding.bound.size()) + " weights taken from it (" + from + ")" +
                                  (trouble.empty() ? "" : ", though it does not fit:" + trouble),
                              given_.weights, -1});
  }

 private:
  void collect() {
    for (const auto& spec : file_.computation.inputs) {
      if (!isWeight(spec)) continue;
      const auto* meta = metaOf(file_, spec);
      if (!meta) continue;
      add(spec, spec.target, *meta);
      for (const auto& alias : spec.aliases) add(spec, alias, *meta);
    }
    // Weights that the graph does not use are part of the state dict all the same.
    for (const auto& [name, tensor] : file_.weights) wanted_.emplace(name, tensor.meta);
  }
  void add(const InputSpec& spec, const std::string& name, const TensorMeta& meta) {
    if (!wanted_.emplace(name, meta).second) return;
    if (!spec.persistent) mayLack_.insert(name);
    if (!spec.storageKey.empty()) ties_[spec.storageKey].push_back(name);
  }
  /// Not a fault: a buffer that is not saved, and a name whose tensor came under another one.
  void forgive(NameBinding& binding) const {
    std::set<std::string> tied;
    for (const auto& [key, names] : ties_)
      if (std::any_of(names.begin(), names.end(),
                      [&](const std::string& name) { return binding.bound.contains(name); }))
        tied.insert(names.begin(), names.end());
    std::erase_if(binding.missing,
                  [&](const Mismatch& one) { return mayLack_.contains(one.name) || tied.contains(one.name); });
  }
  void bind(const std::string& name, const CheckpointTensor& tensor) {
    try {
      auto data = laidOutLike(tensor.load(), wanted_.at(name));
      data.meta.device = wanted_.at(name).device;
      file_.weights[name] = std::move(data);
    } catch (const Error& e) {
      throw e.at(given_.weights + ": '" + name + "'");
    }
  }
  /// Tied names are one tensor again.
  void shareTied(const NameBinding& binding) {
    for (const auto& [key, names] : ties_) {
      const TensorData* first = nullptr;
      for (const auto& name : names) {
        if (!binding.bound.contains(name)) continue;
        auto& own = file_.weights.at(name);
        if (!first) first = &own;
        else if (own.bytes != first->bytes ||
                 (own.data != first->data && std::memcmp(own.data, first->data, own.bytes) != 0))
          badUse("'" + name + "' and '" + names.front() + "' are one parameter in the model and differ here",
                 given_.weights);
      }
      if (!first) continue;
      const auto shared = *first;
      for (const auto& name : names) {
        const auto& meta = wanted_.at(name);
        if (meta.sizes == shared.meta.sizes && meta.strides == shared.meta.strides) file_.weights[name] = shared;
      }
    }
  }

  ModelFile& file_;
  const GivenData& given_;
  std::map<std::string, TensorMeta> wanted_;
  std::set<std::string> mayLack_;
  Ties ties_;  // by storage key
};

}  // namespace

void bindWeights(ModelFile& file, const GivenData& given, const Progress& progress) {
  if (!given.weights.empty()) WeightBinder(file, given).run(progress);
}

TensorMap readWeights(const GivenData& given, const Progress& progress) {
  const auto checkpoint = readCheckpoint(given.weights, progress);
  auto prefix = given.under.empty() || given.under.ends_with('.') ? given.under : given.under + ".";
  for (const std::string_view usual : {"model.", "state_dict.", "module."}) {
    const auto isBorder = [&](const CheckpointTensor& tensor) {
      return tensor.name.starts_with(usual) &&
             std::find(tensor.borders.begin(), tensor.borders.end(), usual.size()) != tensor.borders.end();
    };
    if (prefix.empty() && std::any_of(checkpoint.tensors.begin(), checkpoint.tensors.end(), isBorder)) prefix = usual;
  }
  TensorMap weights;
  for (const auto& tensor : checkpoint.tensors) {
    if (tensor.name.starts_with(prefix)) weights.emplace(tensor.name.substr(prefix.size()), tensor.load());
  }
  if (weights.empty()) badUse("no tensors" + (prefix.empty() ? std::string() : " under " + prefix), checkpoint.path);
  return weights;
}

}  // namespace retrograd
