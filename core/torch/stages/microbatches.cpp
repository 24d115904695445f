#include "core/torch/stages/microbatches.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/cut/stage_facts.h"
#include "core/torch/analysis/inputs.h"
#include "core/torch/stages/stage_run.h"

namespace retrograd {
namespace {

TensorData rotated(const TensorData& tensor, std::int32_t by) {
  auto dense = sentTensor(tensor);
  const auto count = dense.meta.elements();
  if (count < 2 || by % count == 0) return dense;
  const std::size_t item = itemSize(dense.meta.dtype), bytes = count * item;
  const std::size_t shift = by % count * item;
  auto memory = std::make_shared<std::vector<std::byte>>(bytes);
  std::memcpy(memory->data() + shift, dense.data, bytes - shift);
  std::memcpy(memory->data(), dense.data + (bytes - shift), shift);
  return {dense.meta, memory->data(), bytes, memory};
}

bool haveOneShape(const TensorMap& a, const TensorMap& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.meta.sizes == y.second.meta.sizes;
  });
}

std::shared_ptr<const Pipeline> derivedFor(const CutModel& cut, std::shared_ptr<const Analysis> whole,
                                           const Progress& progress) {
  return std::make_shared<const Pipeline>(derivePipeline(cut.model, std::move(whole), cut.split, progress));
}

std::string namesOf(const Analysis& whole) {
  std::string names;
  for (const auto& input : whole.computation().inputs)
    if (input.kind == InputKind::user) names += (names.empty() ? "" : ", ") + input.name;
  return names;
}

/// All inputs of the model: those given, as it takes them, and those that are the same for all.
TensorMap inputsFor(const Analysis& whole, const TensorMap& given) {
  auto inputs = whole.request.inputs;
  for (const auto& [name, tensor] : given) {
    const auto it = inputs.find(name);
    if (it != inputs.end()) it->second = fittedInput(tensor, it->second.meta, "input " + name);
    else if (!whole.request.numbers.contains(name))
      throw Error(ErrorCode::badUse, fmt::format("the model has no such input; it has {}", namesOf(whole)), name);
  }
  return inputs;
}

/// As a derivation takes them: of the outputs that have one, those given, else those chosen.
TensorMap cotangentsFor(const Analysis& whole, const TensorMap& given) {
  auto cotangents = whole.request.cotangents;
  for (auto& [output, tensor] : cotangents)
    if (const auto it = given.find(output); it != given.end())
      tensor = fittedInput(it->second, tensor.meta, "cotangent of output " + output);
  return cotangents;
}

}  // namespace

std::vector<Microbatch> rotatedMicrobatches(const std::shared_ptr<const Pipeline>& pipeline, std::int32_t count) {
  std::vector<Microbatch> microbatches;
  for (std::int32_t m = 0; m < count; ++m) {
    microbatches.push_back({pipeline, {}, pipeline->whole->request.cotangents});
    for (const auto& [name, tensor] : pipeline->whole->request.inputs)
      microbatches.back().inputs.emplace(name, rotated(tensor, m));
  }
  return microbatches;
}

std::vector<Microbatch> deriveMicrobatches(const CutModel& cut, const std::string& loss,
                                           const std::vector<TensorMap>& inputs,
                                           const std::vector<TensorMap>& cotangents, const RequestForInputs& requestFor,
                                           const Progress& progress) {
  std::vector<Microbatch> microbatches;
  for (std::size_t m = 0; m < inputs.size(); ++m) {
    progress.check();
    const auto alike = std::find_if(inputs.begin(), inputs.begin() + m,
                                    [&](const TensorMap& earlier) { return haveOneShape(earlier, inputs[m]); });
    const std::size_t first = alike - inputs.begin();
    try {
      std::shared_ptr<const Pipeline> pipeline;
      if (first < m) pipeline = microbatches[first].pipeline;
      else
        pipeline =
            derivedFor(cut,
                       m == 0 ? cut.whole
                              : deriveWhole(cut.model, loss, requestFor(cut.model, inputs[m], cotangents[m]), progress),
                       progress);
      const auto& whole = *pipeline->whole;
      microbatches.push_back({pipeline, inputsFor(whole, inputs[m]), cotangentsFor(whole, cotangents[m])});
    } catch (const Error& error) {
      throw error.at(fmt::format("microbatch {} of {}", m, inputs.size()));
    }
  }
  return microbatches;
}

TensorMap batchCotangents(const std::vector<Microbatch>& microbatches, const std::map<std::string, Merge>& merges,
                          double scale) {
  TensorMap cotangents;
  for (const auto& [output, one] : microbatches.front().cotangents) {
    const auto merge = mergeOf(merges, output);
    std::vector<TensorData> parts;
    for (const auto& microbatch : microbatches) parts.push_back(microbatch.cotangents.at(output));
    if (isListed(one.meta, merge)) {
      cotangents[output] = mergeOutputs(output, parts, {Merge::Kind::same, 0});
    } else if (merge.kind == Merge::Kind::concatenate) {
      cotangents[output] = scaledTensor(mergeOutputs(output, parts, merge), scale);
    } else if (merge.kind == Merge::Kind::same) {
      cotangents[output] = scaledTensor(mergeOutputs(output, parts, {Merge::Kind::sum, 0}), scale);
    } else {
      const auto count = merge.kind == Merge::Kind::mean ? static_cast<double>(microbatches.size()) : 1.0;
      cotangents[output] = scaledTensor(mergeOutputs(output, parts, {Merge::Kind::same, 0}), scale * count);
    }
  }
  return cotangents;
}

WholeBatch deriveBatch(const CutModel& cut, const std::vector<Microbatch>& microbatches, const TensorMap& inputs,
                       const std::map<std::string, Merge>& merges, double scale, const RequestForInputs& requestFor,
                       const Progress& progress) {
  if (drawsAnything(*microbatches.front().pipeline->whole))
    return {nullptr, "it draws random numbers, others for a batch than for its microbatches"};
  if (cut.model.traced) return {nullptr, "it was traced on one microbatch, and its sizes hold for that"};
  try {
    auto request = requestFor(cut.model, inputs, batchCotangents(microbatches, merges, scale));
    request.exactCotangents = true;
    return {deriveWhole(cut.model, {}, request, progress), {}};
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) throw;
    return {nullptr, error.what()};
  }
}

}  // namespace retrograd
