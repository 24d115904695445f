#include "tests/fuzz/programs/interpreter.h"

#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "tests/fuzz/programs/schema.h"

namespace retrograd::fuzz {

at::ScalarType scalarType(DType dtype) {
  switch (dtype) {
    case DType::u8: return at::kByte;
    case DType::i8: return at::kChar;
    case DType::i16: return at::kShort;
    case DType::i32: return at::kInt;
    case DType::i64: return at::kLong;
    case DType::f16: return at::kHalf;
    case DType::f32: return at::kFloat;
    case DType::f64: return at::kDouble;
    case DType::c64: return at::kComplexFloat;
    case DType::c128: return at::kComplexDouble;
    case DType::b8: return at::kBool;
    case DType::bf16: return at::kBFloat16;
    default: TORCH_CHECK(false, "the fuzzer has no use for ", torchName(dtype));
  }
}

namespace {

at::Tensor wrapped(const c10::Scalar& number) {
  auto tensor = at::scalar_tensor(number, number.isFloatingPoint() ? at::kDouble
                                          : number.isComplex()     ? at::kComplexDouble
                                          : number.isBoolean()     ? at::kBool
                                                                   : at::kLong);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

void append(std::vector<c10::IValue>& flat, const c10::IValue& value, std::vector<std::int32_t>& returns) {
  if (value.isTensorList()) {
    const auto list = value.toTensorVector();
    returns.push_back(static_cast<std::int32_t>(list.size()));
    for (const auto& tensor : list) flat.emplace_back(tensor);
    return;
  }
  returns.push_back(-1);
  flat.push_back(value);
}

}  // namespace

void Interpreter::bind(int value, c10::IValue content) {
  if (value < 0) return;
  if (values_.size() <= static_cast<std::size_t>(value)) values_.resize(static_cast<std::size_t>(value) + 16);
  values_[static_cast<std::size_t>(value)] = std::move(content);
}

c10::IValue Interpreter::argument(const Arg& arg, const c10::TypePtr& type) const {
  using K = c10::TypeKind;
  const auto kind = type->kind();
  if (kind == K::OptionalType) {
    if (arg.kind == Arg::Kind::none) return {};
    return argument(arg, type->castRaw<c10::OptionalType>()->getElementType());
  }
  switch (arg.kind) {
    case Arg::Kind::none:
    case Arg::Kind::missing: return kind == K::TensorType ? c10::IValue(at::Tensor()) : c10::IValue();
    case Arg::Kind::value: return value(static_cast<int>(arg.integer));
    case Arg::Kind::boolean:
      if (kind == K::TensorType) return wrapped(arg.integer != 0);
      return arg.integer != 0;
    case Arg::Kind::integer: {
      const auto number = arg.perSize * size_ + arg.integer;
      if (kind == K::TensorType) return wrapped(number);
      if (kind == K::FloatType) return static_cast<double>(number);
      return number;
    }
    case Arg::Kind::real:
      if (kind == K::TensorType) return wrapped(arg.real);
      return arg.real;
    case Arg::Kind::complex:
      if (kind == K::TensorType) return wrapped(c10::complex<double>(arg.real, arg.imaginary));
      return c10::complex<double>(arg.real, arg.imaginary);
    case Arg::Kind::string: return arg.text;
    case Arg::Kind::dtype: {
      auto dtype = static_cast<DType>(arg.integer);
      if (inDouble_ && isFloating(dtype)) dtype = DType::f64;
      if (inDouble_ && isComplex(dtype)) dtype = DType::c128;
      return static_cast<std::int64_t>(scalarType(dtype));
    }
    case Arg::Kind::layout:
    case Arg::Kind::memoryFormat: return arg.integer;
    case Arg::Kind::device: return c10::Device(arg.text);
    case Arg::Kind::body: TORCH_CHECK(false, "a body is no argument of an op");
    case Arg::Kind::list: break;
  }
  const auto element =
      kind == K::ListType ? type->castRaw<c10::ListType>()->getElementType() : c10::TypePtr(c10::AnyType::get());
  const auto inner = element->kind();
  if (inner == K::TensorType) {
    std::vector<at::Tensor> tensors;
    for (const auto& item : arg.items) tensors.push_back(argument(item, element).toTensor());
    return tensors;
  }
  if (inner == K::OptionalType) {
    c10::List<std::optional<at::Tensor>> tensors;
    for (const auto& item : arg.items)
      tensors.push_back(item.kind == Arg::Kind::none ? std::nullopt
                                                     : std::optional(argument(item, element).toTensor()));
    return tensors;
  }
  if (inner == K::FloatType) {
    std::vector<double> numbers;
    for (const auto& item : arg.items) numbers.push_back(argument(item, element).toDouble());
    return numbers;
  }
  if (inner == K::BoolType) {
    c10::List<bool> truths;
    for (const auto& item : arg.items) truths.push_back(item.integer != 0);
    return truths;
  }
  if (inner == K::NumberType) {
    c10::List<c10::Scalar> numbers;
    for (const auto& item : arg.items) numbers.push_back(argument(item, element).toScalar());
    return c10::IValue(numbers);
  }
  std::vector<std::int64_t> numbers;
  for (const auto& item : arg.items) numbers.push_back(argument(item, element).toInt());
  return numbers;
}

std::vector<c10::IValue> Interpreter::results(const Call& call, std::vector<std::int32_t>& returns) {
  if (call.isHigherOrder()) {
    auto flat = runHigherOrder(call);
    returns.assign(flat.size(), -1);
    return flat;
  }
  underWay_ = &call;
  const auto& op = schemaOf(call.op);
  const auto& arguments = op.schema().arguments();
  TORCH_CHECK(call.args.size() <= arguments.size(), "too many arguments for ", call.op);
  torch::jit::Stack stack;
  stack.reserve(arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (i < call.args.size() && call.args[i].kind != Arg::Kind::missing) {
      stack.push_back(argument(call.args[i], arguments[i].real_type()));
      continue;
    }
    TORCH_CHECK(arguments[i].default_value(), "argument ", arguments[i].name(), " of ", call.op, " has no default");
    stack.push_back(*arguments[i].default_value());
  }
  op.handle().callBoxed(stack);
  underWay_ = nullptr;
  std::vector<c10::IValue> flat;
  for (const auto& value : stack) append(flat, value, returns);
  if (onTensor_)
    for (const auto& value : flat)
      if (value.isTensor() && value.toTensor().defined()) onTensor_(value.toTensor());
  return flat;
}

void Interpreter::run(const Call& call) {
  std::vector<std::int32_t> returns;
  const auto found = results(call, returns);
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    TORCH_CHECK(i < found.size(), call.op, " made ", found.size(), " values, not ", call.outputs.size());
    bind(call.outputs[i], found[i]);
  }
}

void Interpreter::run(const std::vector<Call>& calls) {
  for (const auto& call : calls) run(call);
}

}  // namespace retrograd::fuzz
