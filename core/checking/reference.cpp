#include "core/checking/reference.h"

#include <charconv>
#include <cstring>
#include <filesystem>

#include "core/formats/safetensors.h"

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
                                                            {"grad.p.", &expected.parameterGradients},
                                                            {"mut.b.", &expected.bufferMutations},
                                                            {"mut.in.", &expected.inputMutations}};
  for (const auto& [prefix, map] : places)
    if (takePrefix(key, prefix)) {
      map->emplace(key, tensor);
      return true;
    }
  return false;
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

/// A `view_as_real` tensor as the complex one it stands for, on the same bytes.
TensorData asComplex(TensorData tensor) {
  auto& meta = tensor.meta;
  const auto to = meta.dtype == DType::f64 ? DType::c128 : meta.dtype == DType::f16 ? DType::c32 : DType::c64;
  if (!isFloating(meta.dtype) || meta.sizes.empty() || meta.sizes.back() != 2) return tensor;
  meta.dtype = to;
  meta.sizes.pop_back();
  meta.strides = contiguousStrides(meta.sizes);
  return tensor;
}

/// No two elements share memory: only then can a tensor be laid out with these strides.
bool isDense(const TensorMeta& meta) {
  for (std::size_t i = 0; i < meta.sizes.size(); ++i)
    if (meta.sizes[i] == 0 || (meta.sizes[i] > 1 && meta.strides[i] == 0)) return false;
  return true;
}

/// Copies a contiguous tensor into memory laid out as `wanted`; rules depend on strides, so a run has to start from the same.
TensorData withLayout(const TensorData& tensor, const TensorMeta& wanted) {
  const bool applies = wanted.symbols.empty() && wanted.sizes == tensor.meta.sizes && wanted.dtype == tensor.meta.dtype &&
                       wanted.strides != tensor.meta.strides && isDense(wanted) && wanted.storageBytes() > 0;
  if (!applies) return tensor;
  const auto bytes = static_cast<std::size_t>(wanted.storageBytes());
  const auto item = static_cast<std::size_t>(itemSize(wanted.dtype));
  std::shared_ptr<std::byte[]> memory(new std::byte[bytes]());
  std::vector<std::int64_t> index(wanted.sizes.size());
  for (std::int64_t n = 0, count = wanted.elements(); n < count; ++n) {
    std::int64_t at = wanted.offset;
    for (std::size_t d = 0; d < index.size(); ++d) at += index[d] * wanted.strides[d];
    std::memcpy(memory.get() + static_cast<std::size_t>(at) * item, tensor.data + static_cast<std::size_t>(n) * item, item);
    for (std::size_t d = index.size(); d-- > 0 && ++index[d] == wanted.sizes[d];) index[d] = 0;
  }
  TensorData result{tensor.meta, memory.get(), bytes, memory};
  result.meta.strides = wanted.strides;
  result.meta.offset = wanted.offset;
  return result;
}

/// The reference's tensor as the graph's value wants it.
TensorData fitted(const TensorData& tensor, const ModelFile& file, ValueId value) {
  const auto meta = value ? file.document->value(value).meta : MetaId();
  if (!meta) return tensor;
  const auto& wanted = file.document->meta(meta);
  return withLayout(isComplex(wanted.dtype) && !isComplex(tensor.meta.dtype) ? asComplex(tensor) : tensor, wanted);
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

}  // namespace

Reference readReference(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) throw Error(ErrorCode::badUse, "no such file", path);
  const auto content = readSafetensors(path);
  Reference reference;
  reference.path = path;
  for (const auto& [name, tensor] : content.tensors) {
    std::string_view key = name;
    if (takePrefix(key, "f64/")) {
      if (!reference.inDouble) reference.inDouble.emplace();
      retrograd::file(*reference.inDouble, key, tensor);
    } else if (takePrefix(key, "cot.")) {
      reference.cotangents.emplace(key, tensor);
    } else if (!retrograd::file(reference.expected, key, tensor)) {
      takePrefix(key, "in.");
      reference.inputs.emplace(key, tensor);
    }
  }
  const auto& metadata = content.metadata;
  if (const auto it = metadata.find("seed"); it != metadata.end()) {
    std::uint64_t seed = 0;
    const auto [end, error] = std::from_chars(it->second.data(), it->second.data() + it->second.size(), seed);
    if (error != std::errc() || *end != '\0') throw Error(ErrorCode::badInput, "the metadata's seed is no number: " + it->second, path);
    reference.seed = seed;
  }
  if (const auto it = metadata.find("requires_grad"); it != metadata.end()) reference.requiresGrad = splitAtCommas(it->second);
  return reference;
}

AnalysisOptions optionsFor(const Reference& reference, const ModelFile& file) {
  AnalysisOptions options;
  for (const auto& input : file.computation.inputs) {
    if (input.kind != InputKind::user) continue;
    const auto it = reference.inputs.find(input.name);
    if (it == reference.inputs.end()) continue;
    const bool isTensor = input.value && file.document->isTensor(input.value);
    const auto number = isTensor ? std::nullopt : asNumber(it->second);
    if (number)
      options.numbers.emplace(input.name, *number);
    else
      options.inputs.emplace(input.name, fitted(it->second, file, input.value));
  }
  const auto outputs = userOutputs(file.computation);
  for (const auto& [position, tensor] : reference.cotangents) {
    std::size_t i = 0;
    const auto [end, error] = std::from_chars(position.data(), position.data() + position.size(), i);
    if (error != std::errc() || *end != '\0' || i >= outputs.size())
      throw Error(ErrorCode::badInput, "cot." + position + " belongs to no output of the model", reference.path);
    // A cotangent is contiguous whatever the output's strides are: the reference was made so.
    const auto value = file.computation.outputs[outputs[i]].value;
    const bool complex = value && file.document->isTensor(value) && isComplex(file.document->meta(file.document->value(value).meta).dtype);
    options.cotangents.emplace(position, complex && !isComplex(tensor.meta.dtype) ? asComplex(tensor) : tensor);
  }
  options.exactCotangents = true;
  options.seed = reference.seed.value_or(0);
  options.gradInputs = reference.requiresGrad;
  return options;
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
