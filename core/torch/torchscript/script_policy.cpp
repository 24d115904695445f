#include "core/torch/torchscript/script_policy.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/torch/torchscript/script_code.h"
#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/op_table.h"

namespace retrograd {
namespace {

namespace jit = torch::jit;

/// TorchScript's own ops that compute from their arguments and reach nothing else. What is left out on purpose: save,
/// backward, grad, manual_seed, seed, Generator, cuda, rpc and its values, Python, profiling.
constexpr std::string_view pureOps[] = {
    // numbers
    "aten::Bool", "aten::Complex", "aten::ComplexImplicit", "aten::Float", "aten::FloatImplicit", "aten::Int",
    "aten::IntImplicit", "aten::ScalarImplicit", "aten::__and__", "aten::__lshift__", "aten::__not__", "aten::__or__",
    "aten::__round_to_zero_floordiv", "aten::__rshift__", "aten::__xor__", "aten::acos", "aten::acosh", "aten::add",
    "aten::angle", "aten::asin", "aten::asinh", "aten::atan", "aten::atan2", "aten::atanh", "aten::ceil",
    "aten::copysign", "aten::cos", "aten::cosh", "aten::degrees", "aten::div", "aten::divmod", "aten::eq", "aten::erf",
    "aten::erfc", "aten::exp", "aten::expm1", "aten::fabs", "aten::factorial", "aten::floor", "aten::floordiv",
    "aten::fmod", "aten::frexp", "aten::gamma", "aten::gcd", "aten::ge", "aten::gt", "aten::isfinite", "aten::isinf",
    "aten::isnan", "aten::ldexp", "aten::le", "aten::lgamma", "aten::log", "aten::log10", "aten::log1p", "aten::lt",
    "aten::mathremainder", "aten::modf", "aten::mul", "aten::ne", "aten::neg", "aten::polar", "aten::pow",
    "aten::radians", "aten::remainder", "aten::round", "aten::sin", "aten::sinh", "aten::sqrt", "aten::sub",
    "aten::tan", "aten::tanh", "prim::abs", "prim::max", "prim::min", "prim::EnumName", "prim::EnumValue",
    // lists, tuples, dicts
    "aten::Delete", "aten::Size", "aten::__contains__", "aten::__derive_index", "aten::__getitem__",
    "aten::__range_length", "aten::_infer_size", "aten::_set_item", "aten::_size_if_not_equal", "aten::add_",
    "aten::all", "aten::any", "aten::append", "aten::broadcast_shapes", "aten::clear", "aten::copy", "aten::count",
    "aten::dict", "aten::extend", "aten::get", "aten::index", "aten::insert", "aten::items", "aten::keys", "aten::len",
    "aten::list", "aten::mul_", "aten::pop", "aten::popitem", "aten::remove", "aten::reverse", "aten::select",
    "aten::setdefault", "aten::slice", "aten::sort", "aten::sorted", "aten::sum", "aten::update", "aten::values",
    "prim::ModuleContainerIndex", "prim::TupleIndex", "prim::TupleUnpack", "prim::rangelist",
    // texts
    "aten::bin", "aten::capitalize", "aten::center", "aten::chr", "aten::endswith", "aten::expandtabs", "aten::find",
    "aten::format", "aten::hash", "aten::hex", "aten::isalnum", "aten::isalpha", "aten::isdecimal", "aten::isdigit",
    "aten::isidentifier", "aten::islower", "aten::isnumeric", "aten::isprintable", "aten::isspace", "aten::istitle",
    "aten::isupper", "aten::join", "aten::ljust", "aten::lower", "aten::lstrip", "aten::oct", "aten::ord",
    "aten::partition", "aten::percentFormat", "aten::replace", "aten::rfind", "aten::rindex", "aten::rjust",
    "aten::rpartition", "aten::rsplit", "aten::rstrip", "aten::split", "aten::splitlines", "aten::startswith",
    "aten::str", "aten::strip", "aten::swapcase", "aten::title", "aten::upper", "aten::zfill", "prim::StringIndex",
    // types, devices, the state of the run
    "aten::__is__", "aten::__isnot__", "aten::_get_cpu_capability", "aten::_get_tracing_state", "aten::_is_tracing",
    "aten::_unwrap_optional", "aten::device", "aten::has_torch_function", "aten::is_autocast_cpu_enabled",
    "aten::is_autocast_enabled", "aten::is_grad_enabled", "aten::is_scripting", "aten::set_grad_enabled", "aten::wait",
    "aten::warn", "prim::IfThenElse", "prim::Print", "prim::RaiseException", "prim::Uninitialized", "prim::id",
    "prim::index", "prim::type", "prim::unchecked_cast", "prim::unchecked_unwrap_optional",
    // tensors: what they call of the dispatcher is recorded
    "aten::__interpolate", "aten::__upsample", "aten::__upsample_bilinear", "aten::__upsample_nearest",
    "aten::_grad_sum_to_size", "aten::_index_put_impl_", "aten::_list_to_tensor", "aten::_ncf_unsqueeze",
    "aten::_ncf_view", "aten::_no_grad_embedding_renorm_", "aten::_no_grad_fill_", "aten::_no_grad_normal_",
    "aten::_no_grad_uniform_", "aten::_no_grad_zero_", "aten::_pack_sequence", "aten::_tensor_to_list",
    "aten::_unsafe_index", "aten::_unsafe_index_put", "aten::as_tensor", "aten::copy_", "aten::cpu", "aten::einsum",
    "aten::element_size", "aten::index_put", "aten::index_put_", "aten::is_non_overlapping_and_dense",
    "aten::is_strides_like_format", "aten::mH", "aten::mT", "aten::matrix_H", "aten::numpy_T", "aten::size",
    "aten::stride", "aten::sym_size", "aten::sym_stride", "aten::tensor", "aten::to", "prim::NumToTensor", "prim::data",
    "prim::device", "prim::dtype", "prim::is_cpu", "prim::is_cuda", "prim::is_ipu", "prim::is_maia", "prim::is_meta",
    "prim::is_mkldnn", "prim::is_mps", "prim::is_mtia", "prim::is_nested", "prim::is_quantized", "prim::is_sparse",
    "prim::is_sparse_csr", "prim::is_vulkan", "prim::is_xla", "prim::is_xpu", "prim::itemsize", "prim::layout",
    "prim::name", "prim::nbytes", "prim::requires_grad", "prim::tolist"};

/// Control flow and construction: no ops to LibTorch either, the interpreter does them.
constexpr std::string_view controlFlow[] = {
    "prim::Constant",      "prim::If",           "prim::Loop",          "prim::GetAttr",        "prim::SetAttr",
    "prim::CallMethod",    "prim::CallFunction", "prim::CreateObject",  "prim::TupleConstruct", "prim::TupleSlice",
    "prim::ListConstruct", "prim::ListUnpack",   "prim::DictConstruct", "prim::isinstance",     "prim::Enter",
    "prim::Exit",          "prim::fork",         "prim::TupleUnpack"};

bool among(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

constexpr std::string_view advice = "export the Python module with torch.export instead";

std::string describe(const jit::Node& node) {
  if (const auto* schema = node.maybeSchema()) return toString(schema->operator_name());
  return node.kind().toQualString();
}

}  // namespace

bool isAllowedScriptOp(std::string_view name) {
  static const std::unordered_set<std::string_view> pure(std::begin(pureOps), std::end(pureOps));
  return pure.contains(name);
}

std::shared_ptr<jit::Graph> graphOf(jit::Function& function) {
  auto* graph = jit::tryToGraphFunction(function);
  if (!graph)
    throw Error(ErrorCode::badInput, fmt::format("this function is a program of C++; {}", advice), function.name());
  graph->ensure_defined();
  return graph->graph();
}

jit::Function& calledFunction(const jit::Node& call) {
  return *call.input(0)->type()->expectRef<c10::FunctionType>().function();
}

void ScriptPolicy::check(jit::Function& function) {
  pending_.push_back(&function);
  while (!pending_.empty()) {
    auto* next = pending_.back();
    pending_.pop_back();
    if (!seen_.insert(next).second) continue;
    checkBlock(*graphOf(*next)->block());
  }
}

void ScriptPolicy::refuse(const jit::Node& node, const std::string& what) const {
  throw Error(ErrorCode::badInput, fmt::format("{}; {}", what, advice), code_.place(node.sourceRange()));
}

void ScriptPolicy::checkBlock(const jit::Block& block) {
  for (const auto* input : block.inputs()) checkType(input->type(), *input->node());
  for (const auto* node : block.nodes()) checkNode(*node);
}

void ScriptPolicy::checkNode(const jit::Node& node) {
  checkOp(node);
  for (const auto* output : node.outputs()) checkType(output->type(), node);
  follow(node);
  for (const auto* block : node.blocks()) checkBlock(*block);
  for (const auto name : node.attributeNames()) {
    if (node.kindOf(name) == jit::AttributeKind::g) checkBlock(*node.g(name)->block());
    if (node.kindOf(name) == jit::AttributeKind::gs)
      for (const auto& graph : node.gs(name)) checkBlock(*graph->block());
  }
}

void ScriptPolicy::checkOp(const jit::Node& node) const {
  const std::string_view kind = node.kind().toQualString();
  if (among(controlFlow, kind)) return;
  const auto* op = node.maybeOperator();
  const bool allowed = op && op->isC10Op()
                           ? lookupSymbol(symbolName(c10::Dispatcher::singleton().findSchemaOrThrow(
                                              op->schema().name().c_str(), op->schema().overload_name().c_str())))
                                 .has_value()
                           : isAllowedScriptOp(kind);
  if (!allowed) refuse(node, fmt::format("the op {} may not run from a file", describe(node)));
}

void ScriptPolicy::checkType(const c10::TypePtr& type, const jit::Node& node) const {
  if (const auto named = type->cast<c10::ClassType>();
      named && named->name() && named->name()->qualifiedName().starts_with("__torch__.torch.classes"))
    refuse(node, fmt::format("the class {} is a program of C++", named->name()->qualifiedName()));
  switch (type->kind()) {
    case c10::TypeKind::RRefType:
    case c10::TypeKind::AwaitType:
    case c10::TypeKind::CapsuleType:
    case c10::TypeKind::GeneratorType:
    case c10::TypeKind::PyObjectType:
    case c10::TypeKind::StorageType:
    case c10::TypeKind::StreamObjType:
    case c10::TypeKind::QuantizerType:
      refuse(node, fmt::format("a value of type {} may not come from a file", type->str()));
    default: break;
  }
  if (type->kind() == c10::TypeKind::ClassType) return;  // attributes are checked where they are read
  for (const auto& part : type->containedTypes()) checkType(part, node);
}

/// Queues what the node calls.
void ScriptPolicy::follow(const jit::Node& node) {
  switch (node.kind()) {
    case c10::prim::CallFunction: pending_.push_back(&calledFunction(node)); break;
    case c10::prim::CallMethod: followMethod(node.input(0)->type(), node.s(c10::attr::name), node); break;
    case c10::prim::Enter: followMethod(node.input(0)->type(), "__enter__", node); break;
    case c10::prim::Exit: followMethod(node.input(0)->type(), "__exit__", node); break;
    default: break;
  }
}

void ScriptPolicy::followMethod(const c10::TypePtr& type, const std::string& name, const jit::Node& node) {
  if (const auto owner = type->cast<c10::ClassType>()) {
    auto* method = owner->findMethod(name);
    if (!method) refuse(node, fmt::format("the class {} has no method {}", type->str(), name));
    pending_.push_back(method);
    return;
  }
  if (type->kind() != c10::TypeKind::InterfaceType) refuse(node, fmt::format("a method of {} is called", type->str()));
  for (const auto& candidate : classes_)
    if (auto* method = candidate->findMethod(name)) pending_.push_back(method);
}

}  // namespace retrograd
