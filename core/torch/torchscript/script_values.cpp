#include "core/torch/torchscript/script_values.h"

#include <ATen/core/enum_type.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include "core/torch/tracing/convert.h"

namespace retrograd {
namespace {

using Kind = PickleValue::Kind;

bool isWild(const c10::TypePtr& type) {
  return type->kind() == c10::TypeKind::AnyType || type->kind() == c10::TypeKind::UnionType;
}

}  // namespace

c10::IValue ScriptValues::make(const Pickle& pickle, std::uint32_t index, const c10::TypePtr& declared) {
  constexpr int maxDepth = 200;
  constexpr std::size_t maxCount = 2'000'000;
  const auto& value = pickle.at(index);
  auto type = declared;
  while (type->kind() == c10::TypeKind::OptionalType) {
    if (value.kind == Kind::none) return {};
    type = type->expectRef<c10::OptionalType>().getElementType();
  }
  if (isWild(type) && value.kind != Kind::object) type = guess(pickle, value);
  if (depth_ >= maxDepth) badInput("values nested deeper than 200 levels");
  if (++count_ > maxCount)
    badInput("more than 2 million values");  // few bytes can hold lists of lists of the same list
  struct Level {
    int& depth;
    explicit Level(int& d) : depth(++d) {}
    ~Level() { --depth; }
  } level(depth_);
  const auto kind = type->kind();
  const auto mismatch = [&]() { badInput(fmt::format("a value does not fit its type {}", type->str())); };
  const bool isNumber = kind == c10::TypeKind::NumberType;
  switch (value.kind) {
    case Kind::none:
      if (kind == c10::TypeKind::TensorType) return at::Tensor();
      if (kind != c10::TypeKind::NoneType) mismatch();
      return {};
    case Kind::boolean:
      if (kind != c10::TypeKind::BoolType && !isNumber) mismatch();
      return value.integer != 0;
    case Kind::integer:
      if (kind == c10::TypeKind::FloatType) return static_cast<double>(value.integer);
      if (kind != c10::TypeKind::IntType && !isNumber) mismatch();  // dtypes, layouts and memory formats are ints here
      return value.integer;
    case Kind::real:
      if (kind != c10::TypeKind::FloatType && !isNumber) mismatch();
      return value.real;
    case Kind::complex:
      if (kind != c10::TypeKind::ComplexType && !isNumber) mismatch();
      return c10::complex<double>(value.real, value.imaginary);
    case Kind::string:
      if (kind == c10::TypeKind::DeviceObjType)
        return c10::Device(c10::kCPU);  // tensors of the file are read onto the CPU
      if (kind != c10::TypeKind::StringType) mismatch();
      return value.text;
    case Kind::tensor: {
      if (kind != c10::TypeKind::TensorType) mismatch();
      auto& made = made_[{&pickle, index}];
      if (made.isNone()) made = makeTensor(value);
      return made;
    }
    case Kind::tuple:
      if (kind != c10::TypeKind::TupleType) mismatch();
      return makeTuple(pickle, value, type);
    case Kind::list:
      if (kind != c10::TypeKind::ListType) mismatch();
      return makeList(pickle, value, type);
    case Kind::dict:
      if (kind != c10::TypeKind::DictType) mismatch();
      return makeDict(pickle, value, type);
    case Kind::object: return makeObject(pickle, index);
    case Kind::storage:
    case Kind::global: break;
  }
  badInput("a value that is neither tensor, number, text, container nor object");
}

/// The type of a value at a place that takes any type.
c10::TypePtr ScriptValues::guess(const Pickle& pickle, const PickleValue& value) const {
  const auto common = [&](std::size_t first, std::size_t step) -> c10::TypePtr {
    c10::TypePtr type;
    for (std::size_t i = first; i < value.items.size(); i += step) {
      const auto one = guess(pickle, pickle.at(value.items[i]));
      if (type && *type != *one) return c10::AnyType::get();
      type = one;
    }
    return type ? type : c10::AnyType::get();
  };
  switch (value.kind) {
    case Kind::none: return c10::NoneType::get();
    case Kind::boolean: return c10::BoolType::get();
    case Kind::integer: return c10::IntType::get();
    case Kind::real: return c10::FloatType::get();
    case Kind::complex: return c10::ComplexType::get();
    case Kind::string: return c10::StringType::get();
    case Kind::tensor: return c10::TensorType::get();
    case Kind::list: return c10::ListType::create(value.text == "List[Any]" ? c10::AnyType::get() : common(0, 1));
    case Kind::dict:
      return c10::DictType::create(value.items.empty() ? c10::TypePtr(c10::StringType::get()) : common(0, 2),
                                   common(1, 2));
    case Kind::tuple: {
      std::vector<c10::TypePtr> parts;
      for (const auto item : value.items) parts.push_back(guess(pickle, pickle.at(item)));
      return c10::TupleType::create(std::move(parts));
    }
    default: return c10::AnyType::get();
  }
}

c10::IValue ScriptValues::makeList(const Pickle& pickle, const PickleValue& value, const c10::TypePtr& type) {
  const auto element = type->expectRef<c10::ListType>().getElementType();
  c10::impl::GenericList list(element);
  for (const auto item : value.items) list.push_back(make(pickle, item, element));
  return list;
}

c10::IValue ScriptValues::makeDict(const Pickle& pickle, const PickleValue& value, const c10::TypePtr& type) {
  const auto& dictType = type->expectRef<c10::DictType>();
  c10::impl::GenericDict dict(dictType.getKeyType(), dictType.getValueType());
  for (std::size_t i = 0; i + 1 < value.items.size(); i += 2)
    dict.insert_or_assign(make(pickle, value.items[i], dictType.getKeyType()),
                          make(pickle, value.items[i + 1], dictType.getValueType()));
  return dict;
}

c10::IValue ScriptValues::makeTuple(const Pickle& pickle, const PickleValue& value, const c10::TypePtr& type) {
  const auto tuple = type->expect<c10::TupleType>();
  if (tuple->elements().size() != value.items.size())
    badInput(fmt::format("a tuple of {} values where its type is {}", value.items.size(), type->str()));
  std::vector<c10::IValue> items;
  for (std::size_t i = 0; i < value.items.size(); ++i)
    items.push_back(make(pickle, value.items[i], tuple->elements()[i]));
  if (tuple->name()) return c10::ivalue::Tuple::createNamed(std::move(items), tuple);
  return c10::ivalue::Tuple::create(std::move(items));
}

c10::IValue ScriptValues::makeObject(const Pickle& pickle, std::uint32_t index) {
  if (const auto it = made_.find({&pickle, index}); it != made_.end()) return it->second;
  const auto& value = pickle.at(index);
  const auto type = loadType_(value.text);
  if (!type) badInput(fmt::format("the code has no class {}", value.text));
  if (const auto enumType = type->cast<c10::EnumType>()) return makeEnum(pickle, value, enumType);
  if (const auto tuple = type->cast<c10::TupleType>())
    return makeTuple(pickle, value, tuple);  // an instance of a NamedTuple
  const auto owner = type->cast<c10::ClassType>();
  if (!owner) badInput(fmt::format("{} is not a class", value.text));
  if (owner->findMethod("__setstate__"))
    badInput(
        fmt::format("the class {} has a __setstate__, code that would run while the file is read; export the Python "
                    "module with torch.export instead",
                    value.text));
  if (value.items.size() > 1 || (!value.items.empty() && pickle.at(value.items[0]).kind != Kind::dict))
    badInput(fmt::format("an object of {} has a state that is not a dict", value.text));
  std::map<std::string_view, std::uint32_t> state;
  if (!value.items.empty()) {
    const auto& dict = pickle.at(value.items[0]).items;
    for (std::size_t i = 0; i + 1 < dict.size(); i += 2) state[pickle.at(dict[i]).text] = dict[i + 1];
  }
  auto object = c10::ivalue::Object::create(c10::StrongTypePtr(unit_, owner), owner->numAttributes());
  for (std::size_t i = 0; i < owner->numAttributes(); ++i) {
    const auto& name = owner->getAttributeName(i);
    const auto it = state.find(name);
    if (it == state.end()) {
      if (owner->getAttribute(i)->kind() != c10::TypeKind::NoneType)
        badInput(fmt::format("an object of {} lacks its attribute '{}'", value.text, name));
      continue;
    }
    try {
      object->setSlot(i, make(pickle, it->second, owner->getAttribute(i)));
    } catch (const Error& e) {
      throw e.at(name);
    }
  }
  made_.emplace(std::make_pair(&pickle, index), object);
  return object;
}

c10::IValue ScriptValues::makeEnum(const Pickle& pickle, const PickleValue& value,
                                   const std::shared_ptr<c10::EnumType>& type) {
  if (value.items.size() != 1) badInput(fmt::format("a member of {} without a value", value.text));
  const auto number = make(pickle, value.items[0], type->getValueType());
  for (const auto& [name, known] : type->enumNamesValues())
    if (known == number) return c10::IValue(c10::make_intrusive<c10::ivalue::EnumHolder>(type, name, number));
  badInput(fmt::format("{} has no such member", value.text));
}

at::Tensor ScriptValues::makeTensor(const PickleValue& value) {
  const auto& data = value.tensor;
  const auto options = at::TensorOptions().dtype(toScalarType(data.meta.dtype));
  at::Tensor tensor;
  if (data.meta.elements() == 0) {
    tensor = at::empty_strided(data.meta.sizes, data.meta.strides, options);
  } else {
    auto& memory = memory_[data.data];
    if (!memory.defined()) {
      TensorData bytes = data;
      bytes.meta = TensorMeta();
      bytes.meta.dtype = DType::u8;
      bytes.meta.sizes = {static_cast<std::int64_t>(data.bytes)};
      bytes.meta.strides = {1};
      memory = borrowTensor(bytes);
    }
    tensor = at::empty({0}, options).set_(memory.storage(), data.meta.offset, data.meta.sizes, data.meta.strides);
  }
  tensor._set_conj(data.meta.conjugate);
  tensor._set_neg(data.meta.negative);
  if (value.integer != 0 && isDifferentiable(data.meta.dtype)) tensor.set_requires_grad(true);
  tensors_.emplace(tensor.unsafeGetTensorImpl(), data);
  return tensor;
}

}  // namespace retrograd
