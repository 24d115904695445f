#include "core/torch/torchscript/trace_torchscript.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <set>

#include "core/base/user_choice.h"
#include "core/torch/torchscript/script_interpreter.h"
#include "core/torch/torchscript/script_module.h"
#include "core/torch/tracing/computation_recorder.h"
#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/generator.h"

namespace retrograd {
namespace {

using Kind = PickleValue::Kind;

std::string joined(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

/// Shapes of the inputs a traced module was traced with, by flat name.
class TracedShapes {
 public:
  TracedShapes(const std::optional<Pickle>& pickle, const std::vector<c10::Argument>& arguments) {
    if (!pickle) return;
    const auto& methods = pickle->at(pickle->root);
    if (methods.kind != Kind::dict) return;
    for (std::size_t i = 0; i + 1 < methods.items.size(); i += 2) {
      if (pickle->at(methods.items[i]).text != "forward") continue;
      const auto& list = pickle->at(methods.items[i + 1]).items;
      for (std::size_t k = 0; k < list.size() && k + 1 < arguments.size(); ++k)
        add(*pickle, list[k], arguments[k + 1].name(), 0);
    }
  }
  const std::map<std::string, TensorMeta>& all() const { return shapes_; }
  const TensorMeta* find(const std::string& name) const {
    const auto it = shapes_.find(name);
    return it == shapes_.end() ? nullptr : &it->second;
  }

 private:
  void add(const Pickle& pickle, std::uint32_t index, const std::string& name, int depth) {
    constexpr int maxDepth = 20;
    constexpr std::size_t maxShapes = 10'000;
    if (depth > maxDepth || shapes_.size() > maxShapes) return;
    const auto& value = pickle.at(index);
    if (value.kind == Kind::tensor) shapes_[name] = value.tensor.meta;
    if (value.kind == Kind::list || value.kind == Kind::tuple)
      for (std::size_t i = 0; i < value.items.size(); ++i)
        add(pickle, value.items[i], joined(name, std::to_string(i)), depth + 1);
    if (value.kind == Kind::dict)
      for (std::size_t i = 0; i + 1 < value.items.size(); i += 2)
        add(pickle, value.items[i + 1], joined(name, pickle.at(value.items[i]).text), depth + 1);
  }
  std::map<std::string, TensorMeta> shapes_;
};

/// Makes the arguments one by one; what is missing is listed rather than thrown at once.
class Assembly {
 public:
  Assembly(const ScriptModule& module, const TraceInputs& inputs, ComputationRecorder& recorder, ModelFile& file)
      : inputs_(inputs),
        recorder_(recorder),
        file_(file),
        arguments_(module.forward().getSchema().arguments()),
        traced_(module.parts().tracedInputs, arguments_),
        generator_(at::detail::createCPUGenerator(inputs.seed)) {}

  torch::jit::Stack make(const c10::IValue& self) {
    torch::jit::Stack stack{self};
    for (std::size_t i = 1; i < arguments_.size(); ++i) {
      const auto& argument = arguments_[i];
      std::optional<c10::IValue> usual = argument.default_value();
      stack.push_back(value(argument.type(), argument.name(), usual));
    }
    if (!missing_.empty()) complain();
    for (const auto& [name, shape] : inputs_.shapes) requireInput(name);
    for (const auto& [name, number] : inputs_.numbers) requireInput(name);
    return stack;
  }

 private:
  c10::IValue value(const c10::TypePtr& type, const std::string& name, const std::optional<c10::IValue>& usual) {
    switch (type->kind()) {
      case c10::TypeKind::TensorType:
      case c10::TypeKind::AnyType: return tensor(name, usual);
      case c10::TypeKind::OptionalType:
        return value(type->expectRef<c10::OptionalType>().getElementType(), name,
                     usual ? usual : std::optional<c10::IValue>(c10::IValue()));
      case c10::TypeKind::IntType:
      case c10::TypeKind::FloatType:
      case c10::TypeKind::BoolType:
      case c10::TypeKind::ComplexType:
      case c10::TypeKind::NumberType:
      case c10::TypeKind::StringType: return number(type, name, usual);
      case c10::TypeKind::TupleType: return tuple(type, name, usual);
      case c10::TypeKind::ListType: return list(type, name, usual);
      case c10::TypeKind::DictType: return dict(type, name, usual);
      case c10::TypeKind::NoneType: return {};
      default:
        if (usual) return *usual;
        throw Error(ErrorCode::unsupportedOp, fmt::format("an input of type {} cannot be given", type->str()),
                    "input " + name);
    }
  }

  /// True where something is said of an input of this name or of one inside it.
  bool isGiven(const std::string& name) const {
    const auto within = [&](const auto& map) {
      const auto inside = map.lower_bound(name + ".");
      return map.contains(name) || (inside != map.end() && inside->first.starts_with(name + "."));
    };
    return within(inputs_.tensors) || within(inputs_.numbers) || within(inputs_.shapes) || within(traced_.all());
  }

  c10::IValue tensor(const std::string& name, const std::optional<c10::IValue>& usual) {
    known_.insert(name);
    if (const auto it = inputs_.tensors.find(name); it != inputs_.tensors.end())
      return declare(name, borrowTensor(it->second), it->second, inputs_.source);
    std::optional<TensorMeta> meta;
    if (const auto* traced = traced_.find(name)) meta = *traced;
    const auto shape = inputs_.shapes.find(name);
    if (shape != inputs_.shapes.end()) {
      TensorMeta asked{.dtype = shape->second.dtype ? *shape->second.dtype : meta ? meta->dtype : DType::f32};
      asked.sizes = shape->second.sizes;
      meta = asked;
    }
    if (!meta) {
      if (!usual) missing_.push_back({name, "Tensor"});
      return usual ? *usual : c10::IValue();
    }
    const auto tensor = drawTensor(*meta, generator_);
    return declare(name, tensor, keepTensor(tensor),
                   fmt::format("drawn from seed {}{}", inputs_.seed,
                               shape == inputs_.shapes.end() ? " in the shape it was traced with" : ""));
  }

  c10::IValue declare(const std::string& name, const at::Tensor& tensor, const TensorData& data, std::string source) {
    InputSpec spec{.name = name, .requiresGrad = tensor.is_floating_point() || tensor.is_complex()};
    recorder_.addInput(spec, tensor, data, true);
    file_.inputSource[name] = std::move(source);
    return tensor;
  }

  c10::IValue number(const c10::TypePtr& type, const std::string& name, const std::optional<c10::IValue>& usual) {
    known_.insert(name);
    std::optional<Argument> given;
    if (const auto it = inputs_.numbers.find(name); it != inputs_.numbers.end()) given = it->second;
    else if (const auto one = inputs_.tensors.find(name); one != inputs_.tensors.end())
      given = element(name, one->second);
    if (given) {
      const auto value = fit(*given, type, name);
      recorder_.addNumber(name, *given);
      file_.inputSource[name] = inputs_.source;
      return value;
    }
    if (usual) return *usual;
    missing_.push_back({name, type->str()});
    return {};
  }

  static Argument element(const std::string& name, const TensorData& data) {
    if (data.meta.elements() != 1)
      throw Error(ErrorCode::badUse, "it is a number; give a tensor of one element", "input " + name);
    return *numberArgument(borrowTensor(data).item());
  }

  static c10::IValue fit(const Argument& given, const c10::TypePtr& type, const std::string& name) {
    const auto kind = type->kind();
    const bool isText = given.kind == Argument::Kind::string;
    const bool fits = kind == c10::TypeKind::StringType ? isText
                      : kind == c10::TypeKind::IntType  ? given.kind == Argument::Kind::integer
                      : kind == c10::TypeKind::BoolType
                          ? given.kind == Argument::Kind::boolean || given.kind == Argument::Kind::integer
                      : kind == c10::TypeKind::FloatType
                          ? given.kind == Argument::Kind::integer || given.kind == Argument::Kind::real
                          : given.isNumber();
    if (!fits)
      throw Error(ErrorCode::badUse, fmt::format("the model wants a value of type {}", type->str()), "input " + name);
    if (kind == c10::TypeKind::BoolType) return given.integer != 0;
    if (kind == c10::TypeKind::ComplexType) return c10::complex<double>(given.asDouble(), given.imaginary);
    return toIValue(given, type, {});
  }

  c10::IValue tuple(const c10::TypePtr& type, const std::string& name, const std::optional<c10::IValue>& usual) {
    if (usual && !isGiven(name)) return *usual;
    const auto tuple = type->expect<c10::TupleType>();
    std::vector<c10::IValue> items;
    for (std::size_t i = 0; i < tuple->elements().size(); ++i) {
      const bool named = tuple->schema() && i < tuple->schema()->arguments().size();
      items.push_back(value(tuple->elements()[i],
                            joined(name, named ? tuple->schema()->arguments()[i].name() : std::to_string(i)),
                            std::nullopt));
    }
    if (tuple->name()) return c10::ivalue::Tuple::createNamed(std::move(items), tuple);
    return c10::ivalue::Tuple::create(std::move(items));
  }

  c10::IValue list(const c10::TypePtr& type, const std::string& name, const std::optional<c10::IValue>& usual) {
    const auto element = type->expectRef<c10::ListType>().getElementType();
    if (!isGiven(joined(name, "0"))) {
      if (!usual)
        missing_.push_back({joined(name, "0") + ", " + joined(name, "1") + ", ...", element->str() + " each"});
      return usual ? *usual : c10::IValue();
    }
    c10::impl::GenericList items(element);
    for (std::size_t i = 0; isGiven(joined(name, std::to_string(i))); ++i)
      items.push_back(value(element, joined(name, std::to_string(i)), std::nullopt));
    return items;
  }

  c10::IValue dict(const c10::TypePtr& type, const std::string& name, const std::optional<c10::IValue>& usual) {
    const auto& dictType = type->expectRef<c10::DictType>();
    const auto keys = keysUnder(name + ".");
    if (keys.empty() || dictType.getKeyType()->kind() != c10::TypeKind::StringType) {
      if (!usual) missing_.push_back({name + ".KEY", dictType.getValueType()->str() + " for each key"});
      return usual ? *usual : c10::IValue();
    }
    c10::impl::GenericDict items(dictType.getKeyType(), dictType.getValueType());
    for (const auto& key : keys) items.insert(key, value(dictType.getValueType(), joined(name, key), std::nullopt));
    return items;
  }

  std::set<std::string> keysUnder(const std::string& prefix) const {
    std::set<std::string> keys;
    const auto collect = [&](const auto& map) {
      for (auto it = map.lower_bound(prefix); it != map.end() && it->first.starts_with(prefix); ++it)
        keys.insert(it->first.substr(prefix.size()));
    };
    collect(inputs_.tensors);
    collect(inputs_.numbers);
    collect(inputs_.shapes);
    collect(traced_.all());
    return keys;
  }

  void requireInput(const std::string& name) const {
    if (!known_.contains(name))
      throw Error(ErrorCode::badUse,
                  known_.empty() ? std::string("the module takes no inputs")
                                 : fmt::format("the module has no such input; it has {}", fmt::join(known_, ", ")),
                  "input " + name);
  }

  [[noreturn]] void complain() const {
    std::string list, example;
    for (const auto& [name, type] : missing_) {
      list += fmt::format("\n    {}: {}", name, type);
      const auto first = name.substr(0, name.find(','));
      example +=
          type.starts_with("Tensor") ? fmt::format(" --shape {}=2x3", first) : fmt::format(" --value {}=1", first);
    }
    throw Error(
        ErrorCode::badUse,
        fmt::format(
            "A TorchScript file is run to be traced, and this one holds neither inputs nor their shapes. It takes{}\n"
            "Put them into a safetensors file, one tensor each under these names: {} next to the model, or any other "
            "file, named "
            "with {}. Or say shapes (2x3:int64 where it is not float32) and values:{}",
            list,
            file_.path.empty() ? "model.inputs.safetensors"
                               : std::filesystem::path(file_.path).stem().string() + ".inputs.safetensors",
            nameOf(UserChoice::inputs), example));
  }

  const TraceInputs& inputs_;
  ComputationRecorder& recorder_;
  ModelFile& file_;
  const std::vector<c10::Argument>& arguments_;
  TracedShapes traced_;
  at::Generator generator_;
  std::set<std::string> known_;
  std::vector<std::pair<std::string, std::string>> missing_;  // name, type
};

/// The arguments of the module's forward, the module itself first: given, drawn in a given shape or in the one the file
/// was traced with, or the argument's default. Tensors among them are declared to the recorder as user inputs. Throws
/// Error(badUse) that lists each input that nothing was said of, with its type and how to give it.
torch::jit::Stack forwardArguments(const ScriptModule& module, const TraceInputs& inputs, ComputationRecorder& recorder,
                                   ModelFile& file) {
  return Assembly(module, inputs, recorder, file).make(module.root());
}
/// Visits the tensors, numbers and texts in `value` with their flat names below `path` ("" for the value itself).
/// Throws Error(unsupportedOp) where values nest without end.

void forEachLeaf(const c10::IValue& value, const std::string& path,
                 const std::function<void(const c10::IValue&, const std::string&)>& visit, int depth = 0) {
  constexpr int maxDepth = 100;
  if (depth > maxDepth) throw Error(ErrorCode::unsupportedOp, "values nested deeper than 100 levels", path);
  const auto part = [&](const c10::IValue& item, const std::string& key) {
    forEachLeaf(item, joined(path, key), visit, depth + 1);
  };
  if (value.isTuple()) {
    const auto& tuple = value.toTupleRef();
    const auto type = tuple.type();
    for (std::size_t i = 0; i < tuple.elements().size(); ++i)
      part(tuple.elements()[i], type->schema() ? type->schema()->arguments()[i].name() : std::to_string(i));
  } else if (value.isList()) {
    const auto list = value.toList();
    for (std::size_t i = 0; i < list.size(); ++i) part(list.get(i), std::to_string(i));
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) {
      const auto& key = entry.key();
      part(entry.value(), key.isString() ? key.toStringRef() : key.isInt() ? std::to_string(key.toInt()) : "?");
    }
  } else if (value.isObject()) {
    const auto object = value.toObject();
    for (std::size_t i = 0; i < object->type()->numAttributes(); ++i)
      part(object->getSlot(i), object->type()->getAttributeName(i));
  } else {
    visit(value, path);
  }
}

/// A tensor of the module as an input of the computation; a tied one is the input it was met as first.
class ModuleInputs {
 public:
  ModuleInputs(ComputationRecorder& recorder, ModelFile& file) : recorder_(recorder), file_(file) {}

  void add(const ScriptTensor& tensor) {
    if (tensor.kind == ScriptTensor::Kind::attribute)
      return recorder_.offerConstant(tensor.name, tensor.tensor, tensor.data);
    const bool isParameter = tensor.kind == ScriptTensor::Kind::parameter;
    const auto key = std::make_pair(tensor.data.data, isParameter);
    for (auto [it, end] = first_.equal_range(key); it != end && tensor.data.data; ++it) {
      auto& input = file_.computation.inputs[it->second];
      if (!(meta(input) == tensor.data.meta)) continue;
      input.aliases.push_back(tensor.name);
      return recorder_.addAlias(input.value, tensor.tensor);
    }
    first_.emplace(key, file_.computation.inputs.size());
    InputSpec spec{.kind = isParameter ? InputKind::parameter : InputKind::buffer, .target = tensor.name};
    spec.requiresGrad = isParameter && tensor.tensor.requires_grad();
    recorder_.addInput(spec, tensor.tensor, tensor.data, true);
  }

 private:
  const TensorMeta& meta(const InputSpec& input) const { return file_.weights.at(input.target).meta; }

  ComputationRecorder& recorder_;
  ModelFile& file_;
  std::multimap<std::pair<const std::byte*, bool>, std::size_t> first_;
};

/// Buffers and parameters that forward has given another tensor.
void addMutations(const ScriptModule& module, ComputationRecorder& recorder) {
  for (const auto& tensor : module.tensors()) {
    if (tensor.kind == ScriptTensor::Kind::attribute) continue;
    const auto now = module.current(tensor);
    if (!now.defined() || now.is_same(tensor.tensor)) continue;
    recorder.addMutation(
        tensor.kind == ScriptTensor::Kind::buffer ? OutputKind::bufferMutation : OutputKind::parameterMutation,
        tensor.name, now);
  }
}

}  // namespace

void checkTorchScript(const std::shared_ptr<const Archive>& archive) { ScriptModule module(archive); }

ModelFile traceTorchScript(const std::shared_ptr<const Archive>& archive, const TraceInputs& inputs,
                           const Progress& progress) {
  progress.at("compiling", 0.1);
  ScriptModule module(archive);
  progress.at("tracing", 0.2);
  const auto start = std::chrono::steady_clock::now();
  ModelFile file{.path = archive->place(), .document = std::make_shared<Document>()};
  ComputationRecorder recorder(file, {}, progress);
  ModuleInputs moduleInputs(recorder, file);
  for (const auto& tensor : module.tensors()) moduleInputs.add(tensor);
  auto arguments = forwardArguments(module, inputs, recorder, file);
  const KeepGenerator keep(inputs.seed);
  at::AutoGradMode gradMode(true);  // what the file asks of it (is_grad_enabled, requires_grad) is as in training
  c10::IValue result;
  {
    AboveAutograd observed(recorder);
    result = ScriptInterpreter(module, recorder, *file.document, progress).call(module.forward(), std::move(arguments));
  }
  forEachLeaf(result, "", [&](const c10::IValue& leaf, const std::string& path) { recorder.addOutput(leaf, path); });
  addMutations(module, recorder);
  recorder.finish("torchscript", "file format " + std::to_string(module.parts().version),
                  std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return file;
}

}  // namespace retrograd
