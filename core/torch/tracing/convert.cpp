#include "core/torch/tracing/convert.h"

#include <ATen/ScalarOps.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>

#include <array>
#include <cstring>

#include "core/base/enum_array.h"
#include "core/formats/files/deferred_check.h"

namespace retrograd {
namespace {

constexpr EnumArray<DType, at::ScalarType, dtypeCount> scalarTypes{
    at::kByte,          at::kChar,         at::kShort,           at::kInt,
    at::kLong,          at::kHalf,         at::kFloat,           at::kDouble,
    at::kComplexHalf,   at::kComplexFloat, at::kComplexDouble,   at::kBool,
    at::kBFloat16,      at::kUInt16,       at::kUInt32,          at::kUInt64,
    at::kFloat8_e4m3fn, at::kFloat8_e5m2,  at::kFloat8_e4m3fnuz, at::kFloat8_e5m2fnuz,
    at::kFloat8_e8m0fnu};

constexpr std::array<at::Layout, 7> layouts{at::kStrided,   at::kSparse,    at::kSparseCsr, at::kSparseCsc,
                                            at::kSparseBsr, at::kSparseBsc, at::kMkldnn};

Layout toLayout(at::Layout layout) {
  for (std::size_t i = 0; i < layouts.size(); ++i)
    if (layouts[i] == layout) return static_cast<Layout>(i);
  return Layout::strided;
}

c10::Scalar toScalar(const Argument& a) {
  switch (a.kind) {
    case Argument::Kind::boolean: return c10::Scalar(a.integer != 0);
    case Argument::Kind::integer: return c10::Scalar(a.integer);
    case Argument::Kind::real: return c10::Scalar(a.real);
    case Argument::Kind::complex: return c10::Scalar(c10::complex<double>(a.real, a.imaginary));
    default: throw Error(ErrorCode::badInput, "a number is expected");
  }
}

c10::TypePtr withoutOptional(const c10::TypePtr& type) {
  return type && type->kind() == c10::TypeKind::OptionalType ? type->expectRef<c10::OptionalType>().getElementType()
                                                             : type;
}

bool isTensorType(const c10::TypePtr& type) { return type && type->kind() == c10::TypeKind::TensorType; }

/// A number that arrives in a hole, as the schema wants it: a wrapped tensor, a float, or itself.
c10::IValue fitNumber(const c10::IValue& value, const c10::TypePtr& type) {
  if (!value.isScalar()) return value;
  const auto wanted = withoutOptional(type);
  if (isTensorType(wanted)) return wrappedNumber(*numberArgument(value));
  if (wanted && wanted->kind() == c10::TypeKind::FloatType && value.isInt()) return static_cast<double>(value.toInt());
  if (wanted && wanted->kind() == c10::TypeKind::IntType && value.isBool())
    return static_cast<std::int64_t>(value.toBool());
  return value;
}

c10::IValue tensorList(const Argument& list, bool optional, const PreparedCall::Lookup& operand) {
  if (optional) {
    c10::List<std::optional<at::Tensor>> tensors;
    for (const auto& item : list.items) {
      if (item.kind == Argument::Kind::none) tensors.push_back(std::nullopt);
      else tensors.push_back(toIValue(item, c10::TensorType::get(), operand).toTensor());
    }
    return tensors;
  }
  std::vector<at::Tensor> tensors;
  for (const auto& item : list.items) tensors.push_back(toIValue(item, c10::TensorType::get(), operand).toTensor());
  return tensors;
}

template <class T, class Get>
c10::IValue listOf(const Argument& list, const c10::TypePtr& element, const PreparedCall::Lookup& operand, Get get) {
  c10::List<T> values;
  for (const auto& item : list.items) values.push_back(get(toIValue(item, element, operand)));
  return values;
}

c10::IValue toList(const Argument& list, const c10::TypePtr& type, const PreparedCall::Lookup& operand) {
  const auto element = type && type->kind() == c10::TypeKind::ListType
                           ? type->expectRef<c10::ListType>().getElementType()
                           : c10::TypePtr();
  const auto kind = element ? element->kind() : c10::TypeKind::AnyType;
  switch (kind) {
    case c10::TypeKind::TensorType: return tensorList(list, false, operand);
    case c10::TypeKind::OptionalType: return tensorList(list, true, operand);
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return listOf<std::int64_t>(list, element, operand, [](const c10::IValue& v) { return v.toInt(); });
    case c10::TypeKind::FloatType:
      return listOf<double>(list, element, operand,
                            [](const c10::IValue& v) { return v.isInt() ? double(v.toInt()) : v.toDouble(); });
    case c10::TypeKind::BoolType:
      return listOf<bool>(list, element, operand,
                          [](const c10::IValue& v) { return v.isInt() ? v.toInt() != 0 : v.toBool(); });
    case c10::TypeKind::StringType:
      return listOf<std::string>(list, element, operand, [](const c10::IValue& v) { return v.toStringRef(); });
    default: {
      c10::impl::GenericList values(kind == c10::TypeKind::AnyType ? c10::AnyType::get() : element);
      for (const auto& item : list.items) values.push_back(toIValue(item, element, operand));
      return values;
    }
  }
}

bool hasOperand(const Argument& argument) {
  bool found = false;
  forEachOperand(argument, [&](std::size_t) { found = true; });
  return found;
}

}  // namespace

at::ScalarType toScalarType(DType d) { return scalarTypes[d]; }

std::optional<DType> findDType(at::ScalarType type) {
  for (int i = 0; i < dtypeCount; ++i)
    if (const auto d = static_cast<DType>(i); scalarTypes[d] == type) return d;
  return std::nullopt;
}

DType toDType(at::ScalarType type) {
  if (const auto dtype = findDType(type)) return *dtype;
  throw Error(ErrorCode::unsupportedOp, std::string("dtype ") + c10::toString(type) + " is not supported");
}

c10::Device toTorchDevice(const std::string& text) {
  try {
    return c10::Device(text);
  } catch (const c10::Error&) {
    throw Error(ErrorCode::badInput, "unknown device '" + text + "'");
  }
}

c10::Device toTorchDevice(Device device) { return toTorchDevice(toString(device)); }

Device toDevice(c10::Device device) {
  Device ours;
  ours.type = device.is_cpu()    ? Device::Type::cpu
              : device.is_cuda() ? Device::Type::cuda
              : device.is_meta() ? Device::Type::meta
                                 : Device::Type::other;
  ours.index = device.is_cpu() ? std::int8_t{-1} : static_cast<std::int8_t>(device.index());
  return ours;
}

TensorMeta metaOf(const at::Tensor& tensor) {
  TensorMeta meta{
      .dtype = toDType(tensor.scalar_type()), .device = toDevice(tensor.device()), .layout = toLayout(tensor.layout())};
  meta.sizes = tensor.sizes().vec();
  if (tensor.layout() != at::kStrided) return meta;
  meta.strides = tensor.strides().vec();
  meta.offset = tensor.storage_offset();
  meta.conjugate = tensor.is_conj();
  meta.negative = tensor.is_neg();
  meta.wrappedNumber = tensor.unsafeGetTensorImpl()->is_wrapped_number();
  return meta;
}

at::Tensor borrowTensor(const TensorData& data) {
  const auto& meta = data.meta;
  const bool isOnHost = data.memory.type == Device::Type::cpu;
  const auto options = at::TensorOptions()
                           .dtype(toScalarType(meta.dtype))
                           .device(isOnHost ? c10::Device(c10::kCPU) : toTorchDevice(data.memory));
  if (meta.elements() == 0) return at::empty_strided(meta.sizes, meta.strides, options);
  requireVerifiedUnlessLater(data.data);
  auto* begin = const_cast<std::byte*>(data.data);  // at::from_blob takes no const; the session copies before it writes
  auto owner = data.owner;
  // Kernels rely on complex numbers lying at multiples of 16 bytes; a record of a file may lie anywhere.
  constexpr std::uintptr_t alignment = 16;
  if (isOnHost && reinterpret_cast<std::uintptr_t>(begin) % alignment != 0) {
    requireVerified(begin);
    auto aligned = at::empty({static_cast<std::int64_t>(data.bytes) / itemSize(meta.dtype)}, options);
    std::memcpy(aligned.data_ptr(), begin, aligned.nbytes());
    return aligned.as_strided(meta.sizes, meta.strides, meta.offset);
  }
  // The storage starts at the blob's first byte, so that tied and overlapping tensors keep their offsets.
  auto flat = at::from_blob(
      begin, {static_cast<std::int64_t>(data.bytes) / itemSize(meta.dtype)}, [owner](void*) {}, options,
      options.device());
  return flat.as_strided(meta.sizes, meta.strides, meta.offset);
}

TensorData keepTensor(const at::Tensor& tensor) {
  auto keep = std::make_shared<at::Tensor>(tensor);
  return {.meta = metaOf(tensor),
          .data = tensor.numel() ? static_cast<const std::byte*>(tensor.storage().data()) : nullptr,
          .bytes = tensor.numel() ? tensor.storage().nbytes() : 0,
          .owner = keep,
          .memory = toDevice(tensor.device())};
}

TensorData copyOut(const at::Tensor& tensor) {
  auto plain = tensor.detach();
  const bool strided = plain.layout() == at::kStrided;
  if (!strided) plain = plain.to_dense();
  plain = plain.resolve_conj().resolve_neg().to(at::kCPU).contiguous();
  auto keep = std::make_shared<at::Tensor>(strided && plain.is_alias_of(tensor) ? plain.clone() : plain);
  auto meta = metaOf(*keep);
  meta.offset = 0;
  meta.wrappedNumber = false;
  return {meta, static_cast<const std::byte*>(keep->const_data_ptr()), static_cast<std::size_t>(meta.bytes()), keep};
}

std::optional<c10::OperatorHandle> findOperator(std::string_view name) {
  const auto first = name.find('.');
  const auto last = name.rfind('.');
  if (first == std::string_view::npos || first == last) return std::nullopt;
  const std::string base =
      std::string(name.substr(0, first)) + "::" + std::string(name.substr(first + 1, last - first - 1));
  const std::string overload = name.substr(last + 1) == "default" ? "" : std::string(name.substr(last + 1));
  return c10::Dispatcher::singleton().findSchema({base, overload});
}

c10::OperatorHandle requireOperator(std::string_view name) {
  auto op = findOperator(name);
  if (!op) throw Error(ErrorCode::unknownOp, "LibTorch has no such op", std::string(name));
  return *op;
}

std::string symbolName(const c10::OperatorHandle& op) {
  const auto& name = op.operator_name();
  std::string text = name.name;
  if (auto colon = text.find("::"); colon != std::string::npos) text.replace(colon, 2, ".");
  return text + "." + (name.overload_name.empty() ? "default" : name.overload_name);
}

at::Tensor wrappedNumber(const Argument& number) {
  auto tensor = at::scalar_to_tensor(toScalar(number));
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

std::optional<Argument> numberArgument(const c10::IValue& value) {
  if (value.isBool()) return Argument::ofBool(value.toBool());
  if (value.isInt()) return Argument::ofInt(value.toInt());
  if (value.isDouble()) return Argument::ofReal(value.toDouble());
  if (value.isComplexDouble())
    return Argument::ofComplex(value.toComplexDouble().real(), value.toComplexDouble().imag());
  return std::nullopt;
}

std::optional<Argument> literalOf(const at::Tensor& tensor) {
  if (!tensor.unsafeGetTensorImpl()->is_wrapped_number() || !tensor.is_cpu()) return std::nullopt;
  switch (tensor.scalar_type()) {
    case at::kDouble: return Argument::ofReal(*static_cast<const double*>(tensor.const_data_ptr()));
    case at::kLong: return Argument::ofInt(*static_cast<const std::int64_t*>(tensor.const_data_ptr()));
    case at::kBool: return Argument::ofBool(*static_cast<const bool*>(tensor.const_data_ptr()));
    default: return std::nullopt;
  }
}

Argument encodeArgument(const c10::IValue& value, const c10::TypePtr& declared,
                        const std::function<Argument(const at::Tensor&)>& tensor) {
  const auto type = withoutOptional(declared);
  const auto kind = type ? type->kind() : c10::TypeKind::AnyType;
  const auto tensorArgument = [&](const at::Tensor& t) { return t.defined() ? tensor(t) : Argument::ofNone(); };
  if (value.isNone() || value.isGenerator()) return Argument::ofNone();
  if (value.isTensor()) return tensorArgument(value.toTensor());
  Argument list = Argument::ofList({});
  if (value.isOptionalTensorList()) {
    list.optionalList = true;
    for (const auto& item : value.toOptionalTensorVector())
      list.items.push_back(item ? tensorArgument(*item) : Argument::ofNone());
    return list;
  }
  if (value.isTensorList()) {
    for (const at::Tensor& item : value.toTensorVector()) list.items.push_back(tensorArgument(item));
    return list;
  }
  if (value.isDevice()) return Argument::ofDevice(toString(toDevice(value.toDevice())));
  if (value.isString()) return Argument::ofString(value.toStringRef());
  if (value.isInt()) {
    if (kind == c10::TypeKind::ScalarTypeType)
      return Argument::ofDType(toDType(static_cast<at::ScalarType>(value.toInt())));
    if (kind == c10::TypeKind::LayoutType && value.toInt() == static_cast<std::int64_t>(at::kStrided))
      return Argument::ofLayout(Layout::strided);
    if (kind == c10::TypeKind::MemoryFormatType) return Argument::ofMemoryFormat(value.toInt());
    return Argument::ofInt(value.toInt());
  }
  if (auto number = numberArgument(value)) return *number;
  if (value.isList()) {
    for (const c10::IValue& item : value.toListRef())
      list.items.push_back(encodeArgument(item, c10::TypePtr(), tensor));
    return list;
  }
  if (value.isSymInt()) return Argument::ofInt(value.toSymInt().guard_int(__FILE__, __LINE__));
  throw Error(ErrorCode::unsupportedOp, "an argument of kind " + value.tagKind() + " cannot be traced");
}

c10::IValue toIValue(const Argument& argument, const c10::TypePtr& type, const PreparedCall::Lookup& operand) {
  const auto wanted = withoutOptional(type);
  switch (argument.kind) {
    case Argument::Kind::none:
    case Argument::Kind::missing: return isTensorType(type) ? c10::IValue(at::Tensor()) : c10::IValue();
    case Argument::Kind::operand: return fitNumber(operand(argument.integer), wanted);
    case Argument::Kind::boolean:
    case Argument::Kind::integer:
    case Argument::Kind::real:
    case Argument::Kind::complex: return fitNumber(c10::IValue(toScalar(argument)), wanted);
    case Argument::Kind::string:
    case Argument::Kind::op: return argument.text;
    case Argument::Kind::dtype: return static_cast<std::int64_t>(toScalarType(static_cast<DType>(argument.integer)));
    case Argument::Kind::layout: return static_cast<std::int64_t>(layouts.at(argument.integer));
    case Argument::Kind::memoryFormat: return argument.integer;
    case Argument::Kind::device: return toTorchDevice(argument.text);
    case Argument::Kind::list: return toList(argument, wanted, operand);
    case Argument::Kind::subgraph: break;
  }
  throw Error(ErrorCode::internal, "a subgraph is not an argument of a dispatched op");
}

PreparedCall::PreparedCall(const c10::OperatorHandle& op, const CallPattern& pattern) : op_(op), pattern_(pattern) {
  const auto& arguments = op_.schema().arguments();
  prototype_.resize(arguments.size());
  const Lookup noOperand = [](std::size_t) { return c10::IValue(); };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto& schema = arguments[i];
    const bool given = i < pattern_.arguments.size() && pattern_.arguments[i].kind != Argument::Kind::missing;
    if (!given) {
      if (schema.default_value()) prototype_[i] = *schema.default_value();
      else if (isTensorType(schema.type())) prototype_[i] = at::Tensor();
      continue;
    }
    const auto& argument = pattern_.arguments[i];
    if (hasOperand(argument)) {
      slots_.push_back({i, schema.type(), &argument});
      continue;
    }
    try {
      prototype_[i] = toIValue(argument, schema.type(), noOperand);
    } catch (const c10::Error& e) {
      throw Error(ErrorCode::badInput,
                  "argument '" + schema.name() + "' does not fit the schema: " + e.what_without_backtrace(),
                  symbolName(op_));
    }
    if (argument.kind == Argument::Kind::device) devices_.push_back(i);
  }
}

torch::jit::Stack PreparedCall::arguments(const Lookup& operand, std::optional<c10::Device> device) const {
  torch::jit::Stack stack = prototype_;
  for (const auto& slot : slots_) stack[slot.position] = toIValue(*slot.argument, slot.type, operand);
  if (device)
    for (auto position : devices_) stack[position] = *device;
  return stack;
}

std::vector<c10::IValue> flatten(const torch::jit::Stack& results) {
  std::vector<c10::IValue> flat;
  for (const auto& value : results) {
    if (value.isTensorList())
      for (const at::Tensor& tensor : value.toTensorVector()) flat.emplace_back(tensor);
    else flat.push_back(value);
  }
  return flat;
}

std::vector<std::int32_t> grouping(const torch::jit::Stack& results) {
  std::vector<std::int32_t> groups;
  for (const auto& value : results)
    groups.push_back(value.isTensorList() ? static_cast<std::int32_t>(value.toTensorList().size()) : -1);
  return groups;
}

}  // namespace retrograd
