#include "core/torch/judging/reference.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include "core/base/number_text.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/torch/tracing/recorded_generator.h"

namespace retrograd {
namespace {

bool takePrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// True where the key is something expected; the tensor then lies in its map.
bool file(Expected& expected, std::string_view key, const TensorData& tensor) {
  const std::pair<std::string_view, TensorMap*> places[] = {{"out.", &expected.outputs},
                                                            {"grad.in.", &expected.inputGradients},
                                                            {"grad.p.", &expected.prefixed},
                                                            {"mut.b.", &expected.bufferMutations},
                                                            {"mut.in.", &expected.inputMutations}};
  for (const auto& [prefix, map] : places)
    if (takePrefix(key, prefix)) {
      map->emplace(key, tensor);
      return true;
    }
  if (!takePrefix(key, "grad.")) return false;
  expected.named.emplace(key, tensor);
  return true;
}

/// "cpu", "cuda.0".
void fileGenerator(GeneratorStates& states, std::string_view key, const TensorData& tensor) {
  if (key == "cpu") states.cpu = tensor;
  else if (takePrefix(key, "cuda."))
    if (const auto index = numberIn<std::int32_t>(key)) states.gpus.emplace(*index, tensor);
}

void mergeGradients(Expected& expected) {
  expected.parameterGradients = expected.prefixed;
  expected.parameterGradients.insert(expected.named.begin(), expected.named.end());
}

/// Outputs and their cotangents go by their position.
void requirePosition(std::string_view name, const std::string& path) {
  std::string_view key = name;
  takePrefix(key, "f64/");
  if (!takePrefix(key, "out.") && !takePrefix(key, "cot.")) return;
  if (!positionIn(key))
    throw Error(ErrorCode::badInput, "its name does not end in the number of an output (out.0 is the first)",
                path + ": tensor '" + std::string(name) + "'");
}

std::vector<std::string> splitAtCommas(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto comma = text.find(',');
    if (comma != 0) parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return parts;
}

std::optional<Argument> asNumber(const TensorData& tensor) {
  if (tensor.meta.elements() != 1 || !tensor.data) return std::nullopt;
  if (tensor.meta.dtype == DType::i64) {
    std::int64_t i = 0;
    std::memcpy(&i, tensor.data, sizeof i);
    return Argument::ofInt(i);
  }
  if (tensor.meta.dtype == DType::f64) {
    double d = 0;
    std::memcpy(&d, tensor.data, sizeof d);
    return Argument::ofReal(d);
  }
  return std::nullopt;
}

std::size_t countKnown(const TensorMap& tensors, const std::string& prefix, const std::set<std::string>& known) {
  return static_cast<std::size_t>(
      std::ranges::count_if(tensors, [&](const auto& entry) { return known.contains(prefix + entry.first); }));
}

/// Moves what is a parameter's whole name into `to`: what is not known behind the prefix alone, or all of them.
void moveWhole(TensorMap& from, const std::string& prefix, const std::set<std::string>& known,
               const std::set<std::string>& parameters, bool all, TensorMap& to) {
  for (auto entry = from.begin(); entry != from.end();) {
    const bool isWhole = parameters.contains(prefix + entry->first) && (all || !known.contains(entry->first));
    if (isWhole) to.insert_or_assign(prefix + entry->first, entry->second);
    entry = isWhole ? from.erase(entry) : std::next(entry);
  }
}

void settle(Expected& expected, const std::set<std::string>& parameters, const std::set<std::string>& users) {
  const auto asPrefix = countKnown(expected.prefixed, "", parameters) + countKnown(expected.inputGradients, "", users);
  const auto asNames = countKnown(expected.prefixed, "p.", parameters) +
                       countKnown(expected.inputGradients, "in.", parameters) +
                       countKnown(expected.named, "", parameters);
  auto gradients = expected.named;
  auto prefixed = expected.prefixed;
  moveWhole(prefixed, "p.", parameters, parameters, asNames > asPrefix, gradients);
  moveWhole(expected.inputGradients, "in.", users, parameters, asNames > asPrefix, gradients);
  gradients.merge(prefixed);
  expected.parameterGradients = std::move(gradients);
}

std::string positionOfLoss(const Reference& reference, const ModelFile& file) {
  const auto& document = *file.document;
  const auto outputs = userOutputs(file.computation);
  std::vector<std::string> scalars;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& output = file.computation.outputs[outputs[i]];
    if (outputs.size() == 1 || output.kind == OutputKind::loss || output.target == "loss") return std::to_string(i);
    if (!output.value || !document.isTensor(output.value)) continue;
    const auto& meta = document.meta(output.value);
    if (isFloating(meta.dtype) && meta.elements() == 1) scalars.push_back(std::to_string(i));
  }
  if (scalars.size() == 1) return scalars.front();
  throw Error(ErrorCode::badUse,
              "holds a 'loss', and it is not known which of the model's " + std::to_string(outputs.size()) +
                  " outputs that is; name it out.N",
              reference.path);
}

/// A one of that dtype and shape.
TensorData oneLike(const TensorData& loss) {
  auto bytes = std::make_shared<std::vector<std::byte>>(8);
  const auto put = [&](auto one) { std::memcpy(bytes->data(), &one, sizeof one); };
  if (loss.meta.dtype == DType::f64) put(1.0);
  else if (loss.meta.dtype == DType::f16) put(std::uint16_t{0x3c00});
  else if (loss.meta.dtype == DType::bf16) put(std::uint16_t{0x3f80});
  else put(1.0F);
  TensorData one{loss.meta, bytes->data(), bytes->size(), bytes};
  one.meta.offset = 0;
  return one;
}

}  // namespace

Reference readReference(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) throw Error(ErrorCode::badUse, "no such file", path);
  const auto content = readSafetensors(path);
  GeneratorStates recorded;
  Reference reference;
  reference.path = path;
  for (const auto& [name, tensor] : content.tensors) {
    std::string_view key = name;
    requirePosition(key, path);
    if (takePrefix(key, "f64/")) {
      if (!reference.inDouble) reference.inDouble.emplace();
      retrograd::file(*reference.inDouble, key, tensor);
    } else if (takePrefix(key, "cot.")) {
      reference.cotangents.emplace(key, tensor);
    } else if (key == "loss" && tensor.meta.elements() == 1) {
      reference.loss = tensor;
    } else if (takePrefix(key, "generator.")) {
      fileGenerator(recorded, key, tensor);
    } else if (!retrograd::file(reference.expected, key, tensor)) {
      takePrefix(key, "in.");
      reference.inputs.emplace(key, tensor);
    }
  }
  mergeGradients(reference.expected);
  if (reference.inDouble) mergeGradients(*reference.inDouble);
  const auto& metadata = content.metadata;
  if (const auto it = metadata.find("seed"); it != metadata.end()) {
    reference.seed = numberIn<std::uint64_t>(it->second);
    if (!reference.seed)
      throw Error(ErrorCode::badInput, "the metadata's seed is not a number from 0 to 2^64 - 1: " + it->second, path);
  }
  reference.drawnOnGpu = !recorded.gpus.empty();
  if (recorded.cpu) try {
      reference.seed = seedOfStates(recorded);
    } catch (const Error& e) {
      throw e.at(path);
    }
  if (const auto it = metadata.find("requires_grad"); it != metadata.end())
    reference.requiresGrad = splitAtCommas(it->second);
  if (const auto it = metadata.find("gradients"); it != metadata.end()) reference.hasNoGradients = it->second == "none";
  return reference;
}

void settleNames(Reference& reference, const ModelFile& file) {
  std::set<std::string> parameters, users;
  for (const auto& input : file.computation.inputs) {
    if (input.kind == InputKind::user) users.insert(input.name);
    if (input.kind != InputKind::parameter) continue;
    parameters.insert(input.target);
    parameters.insert(input.aliases.begin(), input.aliases.end());
  }
  settle(reference.expected, parameters, users);
  if (reference.inDouble) settle(*reference.inDouble, parameters, users);
}

void placeLoss(Reference& reference, const ModelFile& file) {
  settleNames(reference, file);
  if (!reference.loss) return;
  const auto position = positionOfLoss(reference, file);
  if (reference.cotangents.empty()) reference.cotangents.emplace(position, oneLike(*reference.loss));
  reference.expected.outputs.emplace(position, *reference.loss);
  reference.loss.reset();
}

bool isOfHigherOrder(const Reference& reference, const ModelFile& file) {
  return std::ranges::any_of(reference.inputs, [&](const auto& given) {
    return given.first.starts_with("cotangent_") &&
           std::ranges::find(file.computation.inputs, given.first, &InputSpec::name) == file.computation.inputs.end();
  });
}

DerivationRequest requestFor(const Reference& reference, const ModelFile& file) {
  DerivationRequest request;
  if (isOfHigherOrder(reference, file)) request.higherInputs = reference.inputs;
  for (const auto& input : file.computation.inputs) {
    const auto it = reference.inputs.find(input.name);
    if (input.kind != InputKind::user || it == reference.inputs.end()) continue;
    const bool isTensor = input.value && file.document->isTensor(input.value);
    const auto number = isTensor ? std::nullopt : asNumber(it->second);
    if (number) request.numbers.emplace(input.name, *number);
    else request.inputs.emplace(input.name, it->second);
  }
  const auto outputs = userOutputs(file.computation).size();
  for (const auto& [position, tensor] : reference.cotangents) {
    const auto i = positionIn(position);
    if (!i || (*i >= outputs && request.higherInputs.empty()))
      throw Error(ErrorCode::badInput, "cot." + position + " belongs to no output of the model", reference.path);
  }
  request.cotangents = reference.cotangents;
  request.exactCotangents = true;
  request.seed = reference.seed.value_or(0);
  request.gradInputs = reference.requiresGrad;
  if (!request.gradInputs &&
      !reference.expected.outputs.empty()) {  // made without it: what has a gradient was differentiated
    request.gradInputs.emplace();
    auto differentiated =
        reference.expected.inputGradients;  // either precision may say: one may lack what it has to have
    if (reference.inDouble)
      differentiated.insert(reference.inDouble->inputGradients.begin(), reference.inDouble->inputGradients.end());
    for (const auto& [name, tensor] : differentiated) request.gradInputs->push_back(name);
  }
  if (request.gradInputs && !request.higherInputs.empty())
    std::erase_if(*request.gradInputs, [&](const std::string& name) {
      return std::ranges::find(file.computation.inputs, name, &InputSpec::name) == file.computation.inputs.end();
    });
  return request;
}

std::vector<std::size_t> userOutputs(const Computation& computation) {
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < computation.outputs.size(); ++i) {
    const auto kind = computation.outputs[i].kind;
    if (kind == OutputKind::user || kind == OutputKind::loss) positions.push_back(i);
  }
  return positions;
}

}  // namespace retrograd
