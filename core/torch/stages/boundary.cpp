#include "core/torch/stages/boundary.h"

#include <ATen/core/grad_mode.h>

#include "core/torch/analysis/eager.h"
#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/generator.h"
#include "core/torch/tracing/lay_out.h"

namespace retrograd {
namespace {

at::Tensor ownCopy(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided ? laidOut(tensor, tensor.strides()) : tensor.clone();
}

/// As it arrives elsewhere (sentMeta).
at::Tensor sent(const at::Tensor& tensor) {
  const auto plain = tensor.detach().resolve_conj().resolve_neg();
  return plain.layout() == at::kStrided ? laidOut(plain, tensor.strides()) : plain.contiguous();
}

class BorderRun {
 public:
  BorderRun(const Analysis& whole, const PipelineSplit& split, const std::vector<StageModel>& stages,
            const std::vector<char>& differentiated)
      : whole_(whole), split_(split), stages_(stages), differentiated_(differentiated) {}

  BorderValues run() {
    const KeepGenerator keep(whole_.request.seed);
    for (std::size_t s = 0; s < stages_.size(); ++s) runStage(s);
    return std::move(values_);
  }

 private:
  void runStage(std::size_t s) {
    Analysis stage;
    stage.file = stages_[s].file;
    stage.document = stage.file.document;
    EagerInterpreter interpreter(stage);
    bindInputs(s, stage.computation(), interpreter);
    at::AutoGradMode gradMode(true);
    try {
      interpreter.run(stage.computation().trace.ops);
    } catch (const c10::Error& e) {
      throw Error(ErrorCode::execution, std::string("LibTorch's own run fails: ") + e.what_without_backtrace(),
                  "stage " + std::to_string(s));
    }
    for (std::size_t k = 0; k < split_.stages[s].outputs.size(); ++k) {
      if (split_.stages[s].outputs[k].destinations.empty()) continue;
      keepSent({static_cast<int>(s), k}, interpreter.value(stage.computation().outputs[k].value));
    }
  }

  void bindInputs(std::size_t s, const Computation& computation, EagerInterpreter& interpreter) {
    const auto& split = split_.stages[s];
    for (std::size_t i = 0; i < computation.inputs.size(); ++i) {
      const auto& input = computation.inputs[i];
      if (!input.value) continue;
      if (i >= split.held.size()) {
        interpreter.bind(input.value, received(split.inputs[i - split.held.size()], input, *stages_[s].file.document));
        continue;
      }
      const auto owner = split_.mutationOwner.find(split.held[i]);
      interpreter.bind(
          input.value,
          heldTensor(s, input, owner != split_.mutationOwner.end() && owner->second == static_cast<int>(s)));
    }
  }

  c10::IValue heldTensor(std::size_t s, const InputSpec& input, bool isWritten) {
    const auto& file = stages_[s].file;
    if (input.kind == InputKind::token || input.kind == InputKind::object) return {};
    const auto& all = input.kind == InputKind::constant ? file.constants : file.weights;
    const auto data = all.find(input.target);
    if (data == all.end())
      throw Error(ErrorCode::badInput, "the file holds no data for '" + input.target + "'", file.path);
    auto& tensor = tied_[{s, input.storageKey.empty() ? input.target : input.storageKey}];
    if (!tensor.defined() || tensor.sizes() != at::IntArrayRef(data->second.meta.sizes)) {
      tensor = borrowTensor(data->second);
      if (isWritten) tensor = ownCopy(tensor);
      if (input.kind == InputKind::parameter && input.requiresGrad) tensor.requires_grad_(true);
    }
    return tensor;
  }

  /// In the strides that the stage has it in: others than its source's only where it is written (stageModel).
  static at::Tensor arrived(const at::Tensor& tensor, const Document& document, ValueId value) {
    if (tensor.layout() != at::kStrided || !document.isTensor(value)) return tensor;
    const auto& meta = document.meta(value);
    return tensor.sizes() == at::IntArrayRef(meta.sizes) && tensor.strides() != at::IntArrayRef(meta.strides)
               ? laidOut(tensor, meta.strides)
               : tensor;
  }

  c10::IValue received(const StageInput& input, const InputSpec& spec, const Document& document) {
    if (input.source >= 0) {
      const std::pair key(input.source, input.output);
      if (const auto number = values_.numbers.find(key); number != values_.numbers.end())
        return toIValue(number->second, c10::AnyType::get(), {});
      const auto data = values_.tensors.find(key);
      if (data == values_.tensors.end()) return {};  // a token
      auto tensor = arrived(borrowTensor(data->second), document, spec.value);
      if (values_.requiresGrad.contains(key)) tensor.requires_grad_(true);
      return tensor;
    }
    if (const auto number = whole_.request.numbers.find(spec.name); number != whole_.request.numbers.end())
      return toIValue(number->second, c10::AnyType::get(), {});
    const auto data = whole_.request.inputs.find(spec.name);
    if (data == whole_.request.inputs.end()) return {};
    std::size_t index = 0;
    while (index < whole_.computation().inputs.size() && !(whole_.computation().inputs[index].kind == InputKind::user &&
                                                           whole_.computation().inputs[index].name == spec.name))
      ++index;
    auto tensor = borrowTensor(data->second);
    if (split_.mutationOwner.contains(index)) tensor = ownCopy(tensor);
    if (differentiated_.at(index)) tensor.requires_grad_(true);
    return tensor;
  }

  void keepSent(std::pair<int, std::size_t> key, const c10::IValue& value) {
    if (!value.isTensor()) {
      if (const auto number = numberArgument(value)) values_.numbers[key] = *number;
      return;
    }
    if (value.toTensor().requires_grad()) values_.requiresGrad.insert(key);
    values_.tensors[key] = keepTensor(sent(value.toTensor()));
  }

  const Analysis& whole_;
  const PipelineSplit& split_;
  const std::vector<StageModel>& stages_;
  const std::vector<char>& differentiated_;
  BorderValues values_;
  std::map<std::pair<std::size_t, std::string>, at::Tensor> tied_;
};

/// Values by the memory they lie in.
class Memory {
 public:
  explicit Memory(Document& document) : document_(document) {}

  void note(ValueId id, const at::Tensor& tensor) {
    if (id && document_.value(id).storage && isStrided(tensor))
      storages_.try_emplace(tensor.storage().unsafeGetStorageImpl(), document_.value(id).storage);
  }
  void describe(ValueId id, const at::Tensor& tensor) {
    auto& value = document_.value(id);
    value.meta = document_.internMeta(metaOf(tensor));
    StorageId known;
    if (const auto it = isStrided(tensor) ? storages_.find(tensor.storage().unsafeGetStorageImpl()) : storages_.end();
        it != storages_.end())
      known = it->second;
    value.storage = known ? known : document_.addStorage(document_.meta(value.meta).storageBytes(), id);
    note(id, tensor);
  }

 private:
  static bool isStrided(const at::Tensor& tensor) { return tensor.layout() == at::kStrided && tensor.has_storage(); }

  Document& document_;
  std::map<const void*, StorageId> storages_;
};

}  // namespace

void completeTypes(ModelFile& model, const Analysis& whole) {
  auto& document = *model.document;
  const KeepGenerator keep(whole.request.seed);
  Analysis read;
  read.file = model;
  read.document = model.document;
  EagerInterpreter interpreter(read);
  Memory memory(document);
  std::vector<at::Tensor> held;  // no memory is used twice
  for (std::size_t i = 0; i < model.computation.inputs.size(); ++i) {
    const auto& input = model.computation.inputs[i];
    if (!input.value) continue;
    const auto number = whole.request.numbers.find(input.name);
    if (input.kind == InputKind::user && number != whole.request.numbers.end()) {
      interpreter.bind(input.value, toIValue(number->second, c10::AnyType::get(), {}));
      continue;
    }
    const auto& all = input.kind == InputKind::user       ? whole.request.inputs
                      : input.kind == InputKind::constant ? whole.file.constants
                                                          : whole.file.weights;
    const auto data = all.find(input.kind == InputKind::user ? input.name : input.target);
    if (data == all.end()) continue;
    held.push_back(ownCopy(borrowTensor(data->second)));
    memory.note(input.value, held.back());
    interpreter.bind(input.value, held.back());
  }
  at::NoGradGuard noGrad;
  for (auto op : model.computation.trace.ops) {
    try {
      interpreter.run({op});
    } catch (const c10::Error& e) {
      throw Error(ErrorCode::execution, std::string("LibTorch's own run fails: ") + e.what_without_backtrace(),
                  document.opName(op));
    }
    for (auto output : std::as_const(document).outputs(op)) {
      if (!output || !interpreter.value(output).isTensor() || !interpreter.value(output).toTensor().defined()) continue;
      held.push_back(interpreter.value(output).toTensor());
      if (document.isTensor(output)) memory.note(output, held.back());
      else memory.describe(output, held.back());
    }
  }
}

BorderValues borderValues(const Analysis& whole, const PipelineSplit& split, const std::vector<StageModel>& stages,
                          const std::vector<char>& differentiated) {
  return BorderRun(whole, split, stages, differentiated).run();
}

}  // namespace retrograd
