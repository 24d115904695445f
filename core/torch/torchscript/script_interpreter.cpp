#include "core/torch/torchscript/script_interpreter.h"

#include <fmt/format.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <filesystem>

#include "core/torch/tracing/convert.h"
#include "core/trace/source.h"

namespace retrograd {
namespace {

namespace jit = torch::jit;
namespace prim = c10::prim;

constexpr std::size_t maxCalls = 500;

/// "x0" of "%x0.5"; empty for what the compiler named.
std::string_view nameOf(const jit::Value& value, std::string& memory) {
  if (!value.hasDebugName()) return {};
  memory = value.debugNameBase();
  const bool isTemporary = memory.starts_with('_') && std::all_of(memory.begin() + 1, memory.end(),
                                                                  [](unsigned char c) { return std::isdigit(c); });
  return isTemporary ? std::string_view() : std::string_view(memory);
}

/// Ops that make a tensor of numbers: they fill its memory with no op that could be seen.
bool makesLiteral(const jit::Node& node) {
  const std::string_view kind = node.kind().toQualString();
  if (kind == "prim::NumToTensor" || kind == "aten::tensor" || kind == "aten::_list_to_tensor") return true;
  return kind == "aten::as_tensor" && node.input(0)->type()->kind() != c10::TypeKind::TensorType;
}

template <class Visit>
void forEachTensor(const c10::IValue& value, Visit&& visit) {
  if (value.isTensor() && value.toTensor().defined()) visit(value.toTensor());
  if (value.isList())
    for (const c10::IValue& item : value.toListRef()) forEachTensor(item, visit);
}

}  // namespace

c10::IValue& ScriptInterpreter::value(const jit::Value* v) {
  const auto it = frames_.back().values.find(v);
  if (it == frames_.back().values.end())
    throw Error(ErrorCode::internal, "a value is used before it is there", v->debugName());
  return it->second;
}

jit::Stack ScriptInterpreter::inputs(const jit::Node& node) {
  jit::Stack stack;
  for (const auto* v : node.inputs()) stack.push_back(value(v));
  return stack;
}

void ScriptInterpreter::set(const jit::Value* v, c10::IValue value) {
  std::string memory;
  if (value.isTensor() && value.toTensor().defined())
    if (const auto name = nameOf(*v, memory); !name.empty()) recorder_.name(value.toTensor(), name);
  frames_.back().values[v] = std::move(value);
}

c10::IValue ScriptInterpreter::call(jit::Function& function, jit::Stack arguments) {
  if (frames_.size() >= maxCalls)
    throw Error(ErrorCode::execution, fmt::format("calls nest deeper than {}", maxCalls), function.name());
  module_.check(function);  // what is called through an interface may not have been seen yet
  const auto graph = graphOf(function);
  if (graph->inputs().size() != arguments.size())
    throw Error(ErrorCode::badInput, "is called with another number of arguments than it has", function.name());
  Frame frame{&function, {}, nullptr, frames_.empty() ? StringId() : frames_.back().module};
  if (!arguments.empty() && arguments[0].isObject())
    if (const auto* path = module_.pathOf(&arguments[0].toObjectRef()); path && !path->empty())
      frame.module = document_.intern(*path);
  for (std::size_t i = 0; i < arguments.size(); ++i) frame.values[graph->inputs()[i]] = std::move(arguments[i]);
  frames_.push_back(std::move(frame));
  struct Leave {
    std::vector<Frame>& frames;
    ~Leave() { frames.pop_back(); }
  } leave{frames_};
  runBlock(*graph->block());
  return graph->outputs().empty() ? c10::IValue() : value(graph->outputs()[0]);
}

void ScriptInterpreter::runBlock(const jit::Block& block) {
  for (const auto* node : block.nodes()) run(*node);
}

void ScriptInterpreter::run(const jit::Node& node) {
  progress_.check();
  if (++steps_ > maxSteps)
    throw Error(ErrorCode::execution, fmt::format("more than {} steps were run; does this loop end?", maxSteps),
                placeText());
  const auto depth = frames_.size();
  frames_.back().at = &node;
  try {
    execute(node);
  } catch (const Error& e) {
    // The innermost node names the place.
    if (e.code() == ErrorCode::cancelled || frames_.size() != depth || e.place().find(" at ") != std::string::npos)
      throw;
    throw Error(e.code(), e.message(),
                fmt::format("{} at {}", e.place().empty() ? node.kind().toQualString() : e.place(), placeText()));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    throw Error(ErrorCode::execution, messageOf(e), fmt::format("{} at {}", node.kind().toQualString(), placeText()));
  }
}

void ScriptInterpreter::execute(const jit::Node& node) {
  const std::string_view kind = node.kind().toQualString();
  if (kind == "aten::warn" || kind == "prim::Print")
    return;  // nothing is printed; their texts do not belong to the computation
  if (kind == "aten::wait") return set(node.output(), input(node, 0));  // prim::fork has run to its end
  switch (node.kind()) {
    case prim::Constant: {
      auto constant = jit::toIValue(node.output());
      if (!constant) {
        if (node.output()->type()->kind() == c10::TypeKind::FunctionType) return;  // prim::CallFunction asks its type
        throw Error(ErrorCode::badInput, "a constant without a value");
      }
      if (constant->isTensor()) addNumber(constant->toTensor());
      // Where the file was written does not matter: everything runs on the CPU.
      return set(node.output(), constant->isDevice() ? c10::IValue(c10::Device(c10::kCPU)) : *std::move(constant));
    }
    case prim::If: return runIf(node);
    case prim::Loop: return runLoop(node);
    case prim::GetAttr: return set(node.output(), input(node, 0).toObjectRef().getAttr(node.s(c10::attr::name)));
    case prim::SetAttr: return input(node, 0).toObject()->setAttr(node.s(c10::attr::name), input(node, 1));
    case prim::CallMethod: {
      auto arguments = inputs(node);
      const auto self = arguments[0];
      return set(node.output(), callMethod(self, node.s(c10::attr::name), std::move(arguments)));
    }
    case prim::CallFunction: {
      jit::Stack arguments;
      for (std::size_t i = 1; i < node.inputs().size(); ++i) arguments.push_back(input(node, i));
      return set(node.output(), call(calledFunction(node), std::move(arguments)));
    }
    case prim::Enter: return set(node.output(), callMethod(input(node, 0), "__enter__", {input(node, 0)}));
    case prim::Exit: {
      callMethod(input(node, 0), "__exit__", {input(node, 0), c10::IValue(), c10::IValue(), c10::IValue()});
      return;
    }
    case prim::fork: {
      const auto& graph = *node.g(c10::attr::Subgraph);
      for (std::size_t i = 0; i < graph.inputs().size(); ++i) frames_.back().values[graph.inputs()[i]] = input(node, i);
      runBlock(*graph.block());
      return set(node.output(), value(graph.outputs()[0]));
    }
    case prim::TupleConstruct:
    case prim::TupleSlice:
    case prim::ListConstruct:
    case prim::DictConstruct:
    case prim::CreateObject:
    case prim::isinstance: return set(node.output(), construct(node));
    case prim::TupleUnpack:
    case prim::ListUnpack: return unpack(node);
    case prim::RaiseException: throw Error(ErrorCode::execution, "the model raises: " + input(node, 0).toStringRef());
    default: return runOp(node);
  }
}

c10::IValue ScriptInterpreter::callMethod(const c10::IValue& self, const std::string& name, jit::Stack arguments) {
  if (!self.isObject()) throw Error(ErrorCode::badInput, "a method is called on something other than an object", name);
  auto* method = self.toObjectRef().type()->findMethod(name);
  if (!method) throw Error(ErrorCode::badInput, "the class has no such method", name);
  return call(*method, std::move(arguments));
}

void ScriptInterpreter::runIf(const jit::Node& node) {
  const auto& block = *node.blocks()[input(node, 0).toBool() ? 0 : 1];
  runBlock(block);
  for (std::size_t i = 0; i < node.outputs().size(); ++i) set(node.outputs()[i], value(block.outputs()[i]));
}

void ScriptInterpreter::runLoop(const jit::Node& node) {
  const auto& body = *node.blocks()[0];
  const auto trips = input(node, 0).toInt();
  bool goesOn = input(node, 1).toBool();
  std::vector<c10::IValue> carried;
  for (std::size_t i = 2; i < node.inputs().size(); ++i) carried.push_back(input(node, i));
  for (std::int64_t trip = 0; trip < trips && goesOn; ++trip) {
    set(body.inputs()[0], trip);
    for (std::size_t i = 0; i < carried.size(); ++i) set(body.inputs()[i + 1], carried[i]);
    runBlock(body);
    frames_.back().at = &node;
    goesOn = value(body.outputs()[0]).toBool();
    for (std::size_t i = 0; i < carried.size(); ++i) carried[i] = value(body.outputs()[i + 1]);
    if (++steps_ > maxSteps)
      throw Error(ErrorCode::execution, fmt::format("more than {} steps were run; does this loop end?", maxSteps));
    progress_.check();
  }
  for (std::size_t i = 0; i < carried.size(); ++i) set(node.outputs()[i], carried[i]);
}

c10::IValue ScriptInterpreter::construct(const jit::Node& node) {
  const auto type = node.output()->type();
  auto values = inputs(node);
  switch (node.kind()) {
    case prim::TupleConstruct: {
      const auto tuple = type->expect<c10::TupleType>();
      if (tuple->name()) return c10::ivalue::Tuple::createNamed(std::move(values), tuple);
      return c10::ivalue::Tuple::create(std::move(values));
    }
    case prim::TupleSlice: {
      const auto& items = values[0].toTupleRef().elements();
      std::vector<c10::IValue> part;
      for (auto i = node.i(c10::attr::beg); i < node.i(c10::attr::end); ++i) part.push_back(items.at(i));
      return c10::ivalue::Tuple::create(std::move(part));
    }
    case prim::ListConstruct: {
      c10::impl::GenericList list(type->expectRef<c10::ListType>().getElementType());
      for (auto& value : values) list.push_back(std::move(value));
      return list;
    }
    case prim::DictConstruct: {
      const auto& dictType = type->expectRef<c10::DictType>();
      c10::impl::GenericDict dict(dictType.getKeyType(), dictType.getValueType());
      for (std::size_t i = 0; i + 1 < values.size(); i += 2) dict.insert_or_assign(values[i], values[i + 1]);
      return dict;
    }
    case prim::CreateObject: {
      const auto owner = type->expect<c10::ClassType>();
      return c10::ivalue::Object::create(c10::StrongTypePtr(module_.unit(), owner), owner->numAttributes());
    }
    default: {  // prim::isinstance
      const auto actual = values[0].type();
      const auto& candidates = node.tys(c10::attr::types);
      return std::ranges::any_of(candidates,
                                 [&](const c10::TypePtr& candidate) { return actual->isSubtypeOf(*candidate); });
    }
  }
}

void ScriptInterpreter::unpack(const jit::Node& node) {
  const auto packed = input(node, 0);
  std::vector<c10::IValue> items;
  if (packed.isTuple()) items = packed.toTupleRef().elements().vec();
  else
    for (const c10::IValue& item : packed.toListRef()) items.push_back(item);
  if (items.size() != node.outputs().size())
    throw Error(ErrorCode::execution,
                fmt::format("{} values are unpacked into {}", items.size(), node.outputs().size()));
  for (std::size_t i = 0; i < items.size(); ++i) set(node.outputs()[i], items[i]);
}

void ScriptInterpreter::addNumber(const at::Tensor& tensor) {
  if (tensor.defined() && tensor.dim() == 0) numbers_.emplace(tensor.unsafeGetTensorImpl(), tensor);
}

/// Tracing in Python turns sizes into 0-dim tensors, computes with them and turns them back: that is arithmetic on
/// numbers and depends on no data.
bool ScriptInterpreter::isAboutNumbers(const jit::Node& node, const jit::Stack& stack) const {
  bool any = false, all = true;
  for (const auto& argument : stack)
    forEachTensor(argument, [&](const at::Tensor& tensor) {
      any = true;
      all &= numbers_.contains(tensor.unsafeGetTensorImpl()) && !recorder_.computed(tensor);
    });
  return any && all && !node.schema().is_mutable() && !node.isNondeterministic();
}

void ScriptInterpreter::runOp(const jit::Node& node) {
  auto stack = inputs(node);
  tellPlace();
  const std::string_view kind = node.kind().toQualString();
  if (kind == "prim::data")
    return set(node.output(),
               stack.at(0).toTensor().detach());  // x.data: what eager calls detach, but for in-place writes
  if (kind == "prim::tolist" && recorder_.knows(stack.at(0).toTensor())) recorder_.noteDependence("prim.tolist");
  auto operation = operations_.find(&node);
  if (operation == operations_.end()) operation = operations_.emplace(&node, node.getOperation()).first;
  if (node.getOperator().schema().is_vararg()) stack.emplace_back(std::ssize(node.inputs()));
  const bool aboutNumbers = isAboutNumbers(node, stack), literal = makesLiteral(node);
  if (aboutNumbers || literal) {
    const Unobserved alone;
    operation->second(stack);
  } else {
    operation->second(stack);
  }
  if (stack.size() != node.outputs().size())
    throw Error(ErrorCode::internal, "an op leaves another number of values than it should");
  for (std::size_t i = 0; i < stack.size(); ++i) {
    if (stack[i].isTensor() && (aboutNumbers || kind == "prim::NumToTensor")) addNumber(stack[i].toTensor());
    set(node.outputs()[i], std::move(stack[i]));
  }
}

void ScriptInterpreter::tellPlace() { recorder_.place(document_.internSource(sourceStack()), frames_.back().module); }

const SourceStack& ScriptInterpreter::originOf(const jit::Node& node) {
  auto [it, isNew] = origins_.try_emplace(&node);
  if (isNew) it->second = module_.code().origin(node.sourceRange());
  return it->second;
}

/// The lines that led here, outermost first. A traced op knows all of them itself, a scripted one only its own.
SourceStack ScriptInterpreter::sourceStack() {
  const auto& own = originOf(*frames_.back().at);
  if (own.size() > 1) return own;
  SourceStack stack;
  for (const auto& frame : frames_) {
    const auto& lines = originOf(*frame.at);
    if (lines.size() > 1) stack.clear();
    for (auto line : lines) {
      if (line.function.empty()) line.function = frame.function->name();
      stack.push_back(std::move(line));
    }
  }
  return stack;
}

std::string ScriptInterpreter::placeText() {
  const auto stack = sourceStack();
  const auto* frame = shownFrame(stack);
  return frame ? fmt::format("{}:{}", std::filesystem::path(frame->file).filename().string(), frame->line)
               : std::string("an unknown line");
}

}  // namespace retrograd
