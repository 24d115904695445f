#include "core/formats/checkpoint/given_weights.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/user_choice.h"
#include "core/formats/checkpoint/name_binding.h"
#include "core/formats/checkpoint/saved_object.h"
#include "core/formats/checkpoint/strided_copy.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/formats/zip/zip_directory.h"

namespace retrograd {
namespace {

/// Another size may be that of a dynamic dimension; complex tensors of a safetensors file are pairs of reals.
bool sameRankAndDType(const TensorMeta& wanted, const TensorMeta& found) {
  if (isComplex(wanted.dtype) && !isComplex(found.dtype)) return found.sizes.size() == wanted.sizes.size() + 1;
  return wanted.dtype == found.dtype && wanted.sizes.size() == found.sizes.size();
}

std::string plainName(const std::string& name) { return name.starts_with("in.") ? name.substr(3) : name; }

/// True of "0", "1", ...: the places of a list.
bool isPosition(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// The names of the user inputs in order, tensors with what they are.
struct UserInputs {
  std::vector<std::string> names;
  std::map<std::string, TensorMeta> tensors;

  explicit UserInputs(const ModelFile& file) {
    const auto& document = *file.document;
    for (const auto& input : file.computation.inputs) {
      if (input.kind != InputKind::user) continue;
      names.push_back(input.name);
      if (input.value && document.isTensor(input.value)) tensors.emplace(input.name, document.meta(input.value));
    }
  }
};

/// Those of a list, under the names of the inputs at these places.
Batch named(Batch batch, const UserInputs& inputs) {
  const auto all = [&](const auto& map) {
    return std::all_of(map.begin(), map.end(), [](const auto& entry) { return isPosition(entry.first); });
  };
  const auto known = [&](const auto& map) {
    return std::any_of(map.begin(), map.end(), [&](const auto& entry) {
      return std::find(inputs.names.begin(), inputs.names.end(), entry.first) != inputs.names.end();
    });
  };
  if (!all(batch.tensors) || !all(batch.numbers) || known(batch.tensors) || known(batch.numbers)) return batch;
  Batch result;
  const auto nameAt = [&](const std::string& position) {
    std::size_t i = 0;
    std::from_chars(position.data(), position.data() + position.size(), i);
    return i < inputs.names.size() ? inputs.names[i] : position;
  };
  for (auto& [position, tensor] : batch.tensors) result.tensors.emplace(nameAt(position), std::move(tensor));
  for (auto& [position, number] : batch.numbers) result.numbers.emplace(nameAt(position), std::move(number));
  return result;
}

}  // namespace

Batch readBatchFile(const std::string& path, const Progress& progress) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) badUse("no such file", path);
  Batch batch;
  if (!looksLikeZip(mapFile(path).span())) {
    for (auto& [name, tensor] : readSafetensors(path).tensors) batch.tensors.emplace(plainName(name), tensor);
    return batch;
  }
  for (auto& leaf : readSavedObject(path, progress).leaves) {
    const auto name = leaf.keys.empty() ? "0" : namedTensor(leaf.keys).name;
    if (leaf.tensor) batch.tensors.emplace(name, aligned(*leaf.tensor));
    else if (leaf.number) batch.numbers.emplace(name, *leaf.number);
  }
  return batch;
}

Batch readBatch(const ModelFile& file, const GivenData& given, const Progress& progress) {
  const UserInputs inputs(file);
  auto batch = named(readBatchFile(given.batch, progress), inputs);
  Checkpoint tensors{given.batch, "batch", {}, {}};
  for (const auto& [name, data] : batch.tensors)
    tensors.tensors.push_back({name, {0}, data.meta, [data] { return data; }});
  // Names of inputs are not dotted paths below a dictionary to be found: the whole file is the batch.
  NameBinding binding;
  for (const auto& tensor : tensors.tensors) {
    const auto wanted = inputs.tensors.find(tensor.name);
    if (wanted == inputs.tensors.end()) binding.superfluous.push_back({tensor.name, std::nullopt, tensor.meta});
    else if (!sameRankAndDType(wanted->second, tensor.meta))
      binding.different.push_back({tensor.name, wanted->second, tensor.meta});
    else binding.bound.emplace(tensor.name, &tensor);
  }
  for (const auto& [name, meta] : inputs.tensors)
    if (!batch.tensors.contains(name)) binding.missing.push_back({name, meta, std::nullopt});
  const auto trouble = describeMismatches(binding, !given.ofWhole);
  if (!trouble.empty() && !given.partial)
    badUse("does not fit the model's inputs (" + nameOf(UserChoice::partialWeights) + " takes what fits):" + trouble,
           given.batch);
  Batch result;
  for (const auto& [name, tensor] : binding.bound) result.tensors.emplace(name, tensor->load());
  for (const auto& [name, number] : batch.numbers)
    if (!inputs.tensors.contains(name) &&
        std::find(inputs.names.begin(), inputs.names.end(), name) != inputs.names.end())
      result.numbers.emplace(name, number);
  if (!trouble.empty()) result.note = "taken as the batch, though it does not fit:" + trouble;
  return result;
}

}  // namespace retrograd
