#include "core/torch/torchscript/script_module.h"

#include <ATen/core/grad_mode.h>
#include <caffe2/serialize/versions.h>
#include <fmt/format.h>
#include <torch/csrc/jit/frontend/error_report.h>
#include <torch/csrc/jit/operator_upgraders/upgraders_entry.h>
#include <torch/csrc/jit/serialization/import_source.h>

#include "core/torch/torchscript/script_values.h"
#include "core/torch/tracing/convert.h"

namespace retrograd {
namespace {

namespace jit = torch::jit;

void checkVersion(std::uint64_t version) {
  using namespace caffe2::serialize;
  if (version < kMinSupportedFileFormatVersion || version > kMaxSupportedFileFormatVersion)
    badInput(fmt::format("file format {} of TorchScript; this LibTorch reads {} to {}", version,
                         kMinSupportedFileFormatVersion, kMaxSupportedFileFormatVersion));
}

/// The classes of an object and of all that it holds.
void collectClasses(const c10::IValue& value, std::vector<c10::ClassTypePtr>& classes,
                    std::unordered_map<const c10::ivalue::Object*, bool>& seen) {
  if (!value.isObject()) return;
  const auto object = value.toObject();
  if (!seen.emplace(object.get(), true).second) return;
  classes.push_back(object->type());
  for (const auto& slot : object->slots()) collectClasses(slot, classes, seen);
}

}  // namespace

ScriptModule::ScriptModule(const std::shared_ptr<const Archive>& archive)
    : parts_(readTorchScript(archive)), code_(parts_), unit_(std::make_shared<jit::CompilationUnit>()) {
  checkVersion(parts_.version);
  at::AutoGradMode keepsMode(at::GradMode::is_enabled());  // whatever compiling does, this thread stays as it was
  try {
    jit::populate_upgraders_graph_map();
    const jit::SourceImporter importer(
        unit_, &constants_, [this](const std::string& module) { return code_.source(module); }, parts_.version);
    ScriptValues values(unit_, [&](const std::string& name) { return importer.loadType(c10::QualifiedName(name)); });
    for (const auto index : parts_.constants.at(parts_.constants.root).items)
      constants_.push_back(values.make(parts_.constants, index, c10::AnyType::get()));
    const auto root = values.make(parts_.module, parts_.module.root, c10::AnyType::get());
    if (!root.isObject() || !root.toObject()->type()->is_module()) badInput("the archive does not hold a module");
    root_ = root.toObject();
    data_ = values.tensors();
    forward_ = root_->type()->findMethod("forward");
    if (!forward_) badInput("the module has no method 'forward'");
    std::vector<c10::ClassTypePtr> classes;
    std::unordered_map<const c10::ivalue::Object*, bool> seen;
    collectClasses(root, classes, seen);
    policy_ = std::make_unique<ScriptPolicy>(code_, std::move(classes));
    policy_->check(*forward_);
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    badInput("LibTorch cannot compile its code: " + messageOf(e));
  }
  collect(root_, "");
}

void ScriptModule::collect(const c10::intrusive_ptr<c10::ivalue::Object>& object, const std::string& path) {
  if (!paths_.emplace(object.get(), path).second) return;
  const auto& type = *object->type();
  const std::string prefix = path.empty() ? "" : path + ".";
  std::vector<std::size_t> modules;
  for (std::size_t i = 0; i < type.numAttributes(); ++i) {
    const auto& value = object->getSlot(i);
    if (value.isObject() && value.toObjectRef().type()->is_module()) {
      modules.push_back(i);
      continue;
    }
    const auto kind = type.is_parameter(i) ? ScriptTensor::Kind::parameter
                      : type.is_buffer(i)  ? ScriptTensor::Kind::buffer
                                           : ScriptTensor::Kind::attribute;
    collectTensors(value, prefix + type.getAttributeName(i), kind, 0);
  }
  for (const auto i : modules) collect(object->getSlot(i).toObject(), prefix + type.getAttributeName(i));
}

void ScriptModule::collectTensors(const c10::IValue& value, const std::string& name, ScriptTensor::Kind kind,
                                  int depth) {
  constexpr int maxDepth = 200;
  if (depth > maxDepth) return;
  if (value.isTensor()) {
    if (const auto it = data_.find(value.toTensor().unsafeGetTensorImpl()); it != data_.end())
      tensors_.push_back({kind, name, value.toTensor(), it->second});
    return;
  }
  const auto part = [&](const c10::IValue& item, const std::string& key) {
    collectTensors(item, name + "." + key, kind, depth + 1);
  };
  if (value.isList()) {
    const auto list = value.toListRef();
    for (std::size_t i = 0; i < list.size(); ++i) part(list[i], std::to_string(i));
  } else if (value.isTuple()) {
    const auto& items = value.toTupleRef().elements();
    for (std::size_t i = 0; i < items.size(); ++i) part(items[i], std::to_string(i));
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict())
      part(entry.value(), entry.key().isString() ? entry.key().toStringRef()
                          : entry.key().isInt()  ? std::to_string(entry.key().toInt())
                                                 : "?");
  } else if (value.isObject() && !value.toObjectRef().type()->is_module()) {
    const auto object = value.toObject();
    if (!paths_.emplace(object.get(), name).second) return;
    for (std::size_t i = 0; i < object->type()->numAttributes(); ++i)
      part(object->getSlot(i), object->type()->getAttributeName(i));
  }
}

const std::string* ScriptModule::pathOf(const c10::ivalue::Object* module) const {
  const auto it = paths_.find(module);
  return it == paths_.end() ? nullptr : &it->second;
}

at::Tensor ScriptModule::current(const ScriptTensor& tensor) const {
  auto object = root_;
  std::string_view rest = tensor.name;
  for (;;) {
    const auto dot = rest.find('.');
    const auto value = object->getAttr(std::string(rest.substr(0, dot)));
    if (dot == std::string_view::npos) return value.isTensor() ? value.toTensor() : at::Tensor();
    if (!value.isObject()) return {};
    object = value.toObject();
    rest.remove_prefix(dot + 1);
  }
}

}  // namespace retrograd
