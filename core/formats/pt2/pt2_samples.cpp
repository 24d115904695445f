#include "core/formats/pt2/pt2_samples.h"

#include "core/base/error.h"
#include "core/formats/pickle/pickle.h"

namespace retrograd::pt2 {
namespace {

Argument numberOf(const PickleValue& value) {
  switch (value.kind) {
    case PickleValue::Kind::none: return Argument::ofNone();
    case PickleValue::Kind::boolean: return Argument::ofBool(value.integer != 0);
    case PickleValue::Kind::integer: return Argument::ofInt(value.integer);
    case PickleValue::Kind::real: return Argument::ofReal(value.real);
    case PickleValue::Kind::complex: return Argument::ofComplex(value.real, value.imaginary);
    case PickleValue::Kind::string: return Argument::ofString(value.text);
    default: badInput("a value that is neither tensor nor number");
  }
}

void checkFits(const TensorMeta& sample, const TensorMeta& input, const std::string& name) {
  bool fits = sample.dtype == input.dtype && sample.sizes.size() == input.sizes.size();
  for (std::size_t i = 0; fits && i < input.sizes.size(); ++i) {
    const bool symbolic = i < input.symbols.size() && !input.symbols[i].empty();
    fits = symbolic || sample.sizes[i] == input.sizes[i];
  }
  if (!fits)
    badInput("the sample for '" + name + "' is " + typeComment(sample) + ", the input is " + typeComment(input));
}

void match(const Pickle& pickle, ModelFile& file, TensorMap& tensors, std::map<std::string, Argument>& numbers) {
  const auto leaves = leavesOf(pickle, pickle.root);
  std::size_t next = 0;
  for (const auto& spec : file.computation.inputs) {
    if (spec.kind != InputKind::user) continue;
    if (next >= leaves.size()) badInput("fewer sample values than inputs");
    const auto& leaf = pickle.at(leaves[next++]);
    if (spec.value && file.document->isTensor(spec.value)) {
      if (leaf.kind != PickleValue::Kind::tensor) badInput("the sample for '" + spec.name + "' is not a tensor");
      checkFits(leaf.tensor.meta, file.document->meta(spec.value), spec.name);
      tensors[spec.name] = leaf.tensor;
    } else {
      numbers[spec.name] = numberOf(leaf);
    }
  }
  if (next != leaves.size()) badInput("more sample values than inputs");
}

}  // namespace

void readSamples(const std::shared_ptr<const Archive>& archive, const std::string& model, ModelFile& file) {
  const std::string record = "data/sample_inputs/" + model + ".pt";
  if (!archive->has(record)) return;
  try {
    const Pickle pickle = readPickle(Archive::open(archive->read(record), record));
    TensorMap tensors;
    std::map<std::string, Argument> numbers;
    match(pickle, file, tensors, numbers);
    file.sampleInputs = std::move(tensors);
    for (auto& [name, number] : numbers) file.sampleNumbers[name] = std::move(number);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::cancelled) throw;
    file.problems.push_back({Problem::Severity::note, "sample inputs were not read: " + e.message(), record, -1});
  }
}

}  // namespace retrograd::pt2
