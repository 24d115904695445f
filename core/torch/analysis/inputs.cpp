#include "core/torch/analysis/inputs.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/view_as_complex.h>
#include <fmt/ranges.h>

#include <cmath>
#include <string_view>
#include <unordered_map>

#include "core/derivation/sizes.h"
#include "core/formats/checkpoint/given_weights.h"
#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/generator.h"
#include "core/torch/tracing/lay_out.h"

namespace retrograd {
namespace {

std::string shapeText(const std::vector<std::int64_t>& sizes) { return fmt::format("[{}]", fmt::join(sizes, ", ")); }

/// Its elements are equal where they are to share a place in memory, so that a copy can be laid out like that.
bool fits(const at::Tensor& tensor, const TensorMeta& meta) {
  auto first = tensor;
  for (std::size_t i = 0; i < meta.sizes.size(); ++i)
    if (meta.sizes[i] > 1 && meta.strides[i] == 0) first = first.narrow(static_cast<std::int64_t>(i), 0, 1);
  return first.sizes() == tensor.sizes() || first.expand_as(tensor).equal(tensor);
}

/// Exported graphs hold on to their sample's strides (a view may only be valid under them).
at::Tensor laidOutAs(const at::Tensor& tensor, const TensorMeta& meta) {
  if (tensor.sizes() != at::IntArrayRef(meta.sizes) || tensor.strides() == at::IntArrayRef(meta.strides)) return tensor;
  return meta.elements() == 0 || !fits(tensor, meta) ? tensor : laidOut(tensor, meta.strides, meta.offset);
}

/// "x f32[4, 8], ids i64[2]": what can be given.
std::string userInputsOf(const ModelFile& file) {
  std::string names;
  for (const auto& input : file.computation.inputs) {
    if (input.kind != InputKind::user || !input.value) continue;
    const auto& value = file.document->value(input.value);
    names += (names.empty() ? "" : ", ") + input.name;
    if (value.meta)
      names += fmt::format(" {} {}", torchName(file.document->meta(value.meta).dtype),
                           shapeText(file.document->meta(value.meta).sizes));
  }
  return names.empty() ? "no input" : names;
}

/// safetensors has no complex numbers: they come as pairs of reals. `cast`: to a model that was moved to another
/// precision.
at::Tensor fitDType(at::Tensor tensor, const TensorMeta& meta, bool cast, const std::string& what) {
  const auto wanted = toScalarType(meta.dtype);
  if (isComplex(meta.dtype) && !tensor.is_complex() && tensor.dim() > 0 && tensor.size(-1) == 2)
    tensor = at::view_as_complex(tensor.contiguous());
  if (tensor.scalar_type() == wanted) return tensor;
  const bool sameKind =
      tensor.is_complex() ? isComplex(meta.dtype) : tensor.is_floating_point() && isFloating(meta.dtype);
  if (!cast || !sameKind)
    throw Error(ErrorCode::badUse,
                fmt::format("it has dtype {}, the model wants {}: convert it before it is saved",
                            torchName(toDType(tensor.scalar_type())), torchName(meta.dtype)),
                what);
  return tensor.to(wanted);
}

/// A size whose expression over `symbols` is beyond us may be anything.
void checkShape(const at::Tensor& tensor, const TensorMeta& meta, const SizeBindings& symbols,
                const std::string& what) {
  const auto sizes = tensor.sizes().vec();
  bool fits = sizes.size() == meta.sizes.size();
  for (std::size_t i = 0; fits && i < sizes.size(); ++i) {
    const bool unknown = i < meta.symbols.size() && !meta.symbols[i].empty() && !evaluateSize(meta.symbols[i], symbols);
    fits = unknown || sizes[i] == meta.sizes[i];
  }
  if (fits) return;
  auto wanted = symbolicShape(meta);
  if (const auto now = shapeText(meta.sizes); now != wanted) wanted += ", which is " + now + " with the other inputs";
  throw Error(ErrorCode::badUse, fmt::format("it has shape {}, the file was exported for {}", shapeText(sizes), wanted),
              what);
}

/// Equal once dimensions of size 1 are left out: PyTorch 2.9's decomposed LSTM returns its states with one more than
/// eager does.
bool sameButForUnits(std::vector<std::int64_t> a, std::vector<std::int64_t> b) {
  std::erase(a, 1);
  std::erase(b, 1);
  return a == b;
}

/// Sets the symbolic sizes to what the given inputs have; a sample of other sizes does not contradict them.
void fitSizes(Analysis& analysis, const DerivationRequest& request, const std::map<std::string, at::Tensor>& tensors) {
  const auto& file = analysis.file;
  auto& document = *file.document;
  GivenSizes given;
  for (const auto& [name, shape] : request.shapes) given.shapes[name] = shape.sizes;
  for (const auto& [name, tensor] : tensors) given.shapes[name] = tensor.sizes().vec();
  for (const auto& [name, number] : request.numbers)
    if (number.kind == Argument::Kind::integer) given.numbers[name] = number.integer;
  const auto sizes = bindSizes(file, given);
  if (sizes != document.sizeHints()) setSizes(document, sizes);
}

/// A number that is not given: what the sizes say it is, else the file's sample.
std::optional<Argument> numberFor(const ModelFile& file, const InputSpec& input, ValueId value) {
  const auto& document = *file.document;
  if (const auto size = evaluateSize(document.sizeExpression(value), document.sizeHints()))
    return Argument::ofInt(*size);
  const auto sample = file.sampleNumbers.find(input.name);
  return sample == file.sampleNumbers.end() ? std::nullopt : std::optional(sample->second);
}

/// Each name that the request gives is a user input, and numbers are given for inputs that are numbers. A file that was
/// traced took its numbers then.
void requireInputs(const ModelFile& file, const DerivationRequest& request) {
  const auto& inputs = file.computation.inputs;
  const auto requireInput = [&](const std::string& name) -> const InputSpec& {
    const auto found = std::ranges::find_if(
        inputs, [&](const InputSpec& input) { return input.kind == InputKind::user && input.name == name; });
    if (found == inputs.end())
      throw Error(ErrorCode::badUse, "the file has no such input; it has " + userInputsOf(file), "input " + name);
    return *found;
  };
  for (const auto& [name, data] : request.inputs) requireInput(name);
  for (const auto& [name, shape] : request.shapes) requireInput(name);
  if (file.traced) return;
  for (const auto& [name, number] : request.numbers)
    if (const auto value = requireInput(name).value; value && file.document->isTensor(value))
      throw Error(ErrorCode::badUse, "is a tensor, not a number: give it in a file of inputs", "input " + name);
}

/// Bytes of a storage and where it lies in the block of all that are drawn.
struct DrawnStorage {
  std::int64_t bytes = 0, offset = -1;
};

/// `count` numbers for a storage whose first tensor is described by `meta`, in double precision where they are not
/// integers. `scratch` is used again.
at::Tensor drawElements(const TensorMeta& meta, InputKind kind, std::int64_t count, at::Generator& generator,
                        at::Tensor& scratch) {
  if (!isDifferentiable(meta.dtype)) return at::randint(0, 2, {count}, generator, at::TensorOptions().dtype(at::kLong));
  const auto wide = isComplex(meta.dtype) ? at::kComplexDouble : at::kDouble;
  if (!scratch.defined() || scratch.scalar_type() != wide || scratch.numel() < count)
    scratch = at::empty({count}, at::TensorOptions().dtype(wide));
  auto numbers = scratch.narrow(0, 0, count);
  if (kind != InputKind::parameter) return numbers.uniform_(0, 1, generator).add_(0.5);
  const auto fanIn = meta.sizes.size() < 2 ? 1 : meta.elements() / std::max<std::int64_t>(meta.sizes[0], 1);
  numbers.normal_(0, 1, generator);
  return fanIn > 1 ? numbers.div_(std::sqrt(static_cast<double>(fanIn))) : numbers;
}

constexpr std::int64_t mostDrawn = std::int64_t{8} << 30;

/// Parameters and buffers without data, and the storages that they lie in.
struct Undrawn {
  std::vector<const InputSpec*> inputs;
  std::unordered_map<std::string_view, DrawnStorage> storages;  // by key: tied ones come once
  std::int64_t bytes = 0;                                       // no longer counted above mostDrawn
};

Undrawn undrawnOf(const ModelFile& file) {
  const auto& document = *file.document;
  const auto isGiven = [&](const InputSpec& spec) {
    const auto it = file.weights.find(spec.target);
    return it != file.weights.end() && it->second.data;
  };
  Undrawn found;
  for (const auto& spec : file.computation.inputs) {
    if (spec.storageKey.empty() || !spec.value || !document.isTensor(spec.value) || isGiven(spec)) continue;
    found.inputs.push_back(&spec);
    auto& bytes = found.storages[spec.storageKey].bytes;
    const auto& value = document.value(spec.value);
    const auto needed = std::max(document.storage(value.storage).bytes, document.meta(value.meta).storageBytes());
    if (__builtin_add_overflow(found.bytes, std::max<std::int64_t>(needed - bytes, 0), &found.bytes))
      found.bytes = mostDrawn + 1;
    bytes = std::max(bytes, needed);
    if (found.bytes > mostDrawn) break;
  }
  return found;
}

}  // namespace

TensorData fittedInput(const TensorData& data, const TensorMeta& wanted, const std::string& what) {
  auto tensor = fitDType(borrowTensor(data), wanted, false, what);
  if (sameButForUnits(tensor.sizes().vec(), wanted.sizes)) tensor = tensor.reshape(wanted.sizes);
  checkShape(tensor, wanted, {}, what);
  return keepTensor(laidOutAs(tensor, wanted));
}

DerivationRequest withBatch(Analysis& analysis, const DerivationRequest& request, const Progress& progress) {
  auto result = request;
  auto data = request.data;
  data.ofWhole |= analysis.file.isPart;
  auto batch = readBatch(analysis.file, data, progress);
  result.inputs.insert(batch.tensors.begin(), batch.tensors.end());
  result.numbers.insert(batch.numbers.begin(), batch.numbers.end());
  if (!batch.note.empty())
    analysis.problems.push_back({Problem::Severity::note, std::move(batch.note), request.data.batch, -1});
  return result;
}

void chooseInputs(Analysis& analysis, const DerivationRequest& request) {
  const auto& file = analysis.file;
  const auto& document = *file.document;
  auto generator = at::detail::createCPUGenerator(request.seed);
  std::map<std::string, at::Tensor> given;
  requireInputs(file, request);
  for (std::size_t i = 0; i < file.computation.inputs.size(); ++i) {
    const auto& input = file.computation.inputs[i];
    const auto value = file.computation.trace.inputs[i];
    const auto it = request.inputs.find(input.name);
    if (input.kind != InputKind::user || !value || !document.isTensor(value) || it == request.inputs.end()) continue;
    const auto& meta = document.meta(value);
    auto tensor = fitDType(borrowTensor(it->second), meta, request.precision.has_value(), "input " + input.name);
    if (tensor.dim() != std::ssize(meta.sizes)) checkShape(tensor, meta, document.sizeHints(), "input " + input.name);
    given.emplace(input.name, std::move(tensor));
  }
  if (!document.sizeSymbols().empty()) fitSizes(analysis, request, given);
  for (std::size_t i = 0; i < file.computation.inputs.size(); ++i) {
    const auto& input = file.computation.inputs[i];
    const auto value = file.computation.trace.inputs[i];
    if (input.kind != InputKind::user || !value) continue;
    const auto what = "input " + input.name;
    if (!document.isTensor(value)) {
      if (auto it = request.numbers.find(input.name); it != request.numbers.end())
        analysis.request.numbers[input.name] = it->second;
      else if (auto number = numberFor(file, input, value)) analysis.request.numbers[input.name] = *number;
      continue;
    }
    const auto& meta = document.meta(value);
    at::Tensor tensor;
    std::string source;
    if (file.traced) {
      tensor = fitDType(borrowTensor(file.sampleInputs.at(input.name)), meta, request.precision.has_value(), what);
      source = file.inputSource.at(input.name);
    } else if (auto it = given.find(input.name); it != given.end()) {
      tensor = it->second;
      source = "given";
    } else if (file.sampleInputs.contains(input.name) && !request.shapes.contains(input.name)) {
      tensor = fitDType(borrowTensor(file.sampleInputs.at(input.name)), meta, request.precision.has_value(), what);
      source = "sample input of the file";
    } else {
      auto asked = meta;
      if (const auto shape = request.shapes.find(input.name); shape != request.shapes.end()) {
        asked.sizes = shape->second.sizes;
        asked.dtype = shape->second.dtype.value_or(meta.dtype);
      }
      tensor = fitDType(drawTensor(asked, generator), meta, request.precision.has_value(), what);
      source = fmt::format("drawn from seed {}", request.seed);
    }
    const bool isSample =
        !given.contains(input.name) && !request.shapes.contains(input.name) && file.sampleInputs.contains(input.name);
    checkShape(tensor, meta, document.sizeHints(),
               isSample ? what + " (the file's sample: give this input too)" : what);
    analysis.request.inputs[input.name] = keepTensor(laidOutAs(tensor, meta));
    analysis.inputSource.push_back(input.name + ": " + source);
  }
}

void drawWeights(Analysis& analysis, std::uint64_t seed) {
  auto& file = analysis.file;
  auto undrawn = undrawnOf(file);
  auto& storages = undrawn.storages;
  const auto count = undrawn.inputs.size();
  if (count == 0) return;
  if (undrawn.bytes > mostDrawn) {
    analysis.inputSource.push_back(
        "parameters and buffers: not drawn, as the text describes more than 8 GiB of them; the traces cannot be run");
    return;
  }
  // One block: a large trace describes a hundred thousand small parameters, and a tensor takes more memory than such a
  // one.
  constexpr std::int64_t alignment = 64;
  const auto roomOf = [](std::int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; };
  std::int64_t room = 0;
  for (const auto& [key, storage] : storages) room += roomOf(storage.bytes + 15);  // up to a whole element
  const auto block = std::make_shared<at::Tensor>(at::empty({room}, at::TensorOptions().dtype(at::kByte)));
  auto* const memory = static_cast<std::byte*>(block->mutable_data_ptr());
  auto generator = at::detail::createCPUGenerator(seed + 2);
  at::Tensor scratch;
  std::int64_t used = 0;
  for (const auto* spec : undrawn.inputs) {
    const auto& meta = file.document->meta(spec->value);
    auto& storage = storages[spec->storageKey];
    if (storage.offset < 0) {
      const auto count = (storage.bytes + itemSize(meta.dtype) - 1) / itemSize(meta.dtype);
      storage = {count * itemSize(meta.dtype), used};
      used += roomOf(storage.bytes);
      at::from_blob(memory + storage.offset, {count}, at::TensorOptions().dtype(toScalarType(meta.dtype)))
          .copy_(drawElements(meta, spec->kind, count, generator, scratch));
    }
    (spec->kind == InputKind::constant ? file.constants : file.weights)[spec->target] = {
        meta, storage.bytes > 0 ? memory + storage.offset : nullptr, static_cast<std::size_t>(storage.bytes),
        std::shared_ptr<const void>(block, memory)};
  }
  analysis.inputSource.push_back(
      fmt::format("{}: drawn from seed {}, as the text only describes {}",
                  count == 1 ? "1 parameter or buffer" : fmt::format("{} parameters and buffers", count), seed,
                  count == 1 ? "it" : "them"));
}

void chooseCotangents(Analysis& analysis, const DerivationRequest& request,
                      const std::map<std::string, TensorMeta>& metas) {
  auto generator = at::detail::createCPUGenerator(request.seed + 1);
  for (const auto& [position, symbolic] : metas) {
    auto meta = symbolic;
    meta.symbols.clear();  // a cotangent is as large as its output, no more and no less
    const auto what = "cotangent of output " + position;
    at::Tensor tensor;
    if (auto it = request.cotangents.find(position); it != request.cotangents.end()) {
      tensor = fitDType(borrowTensor(it->second), meta, request.precision.has_value(), what);
      if (sameButForUnits(tensor.sizes().vec(), meta.sizes)) tensor = tensor.reshape(meta.sizes);
      checkShape(tensor, meta, {}, what);
    } else if (metas.size() == 1 && meta.elements() == 1) {
      tensor = at::ones(meta.sizes, at::TensorOptions().dtype(toScalarType(meta.dtype)));
    } else {
      tensor = drawTensor(meta, generator);
    }
    analysis.request.cotangents[position] = keepTensor(tensor.contiguous());
  }
}

}  // namespace retrograd
