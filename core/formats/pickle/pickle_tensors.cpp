#include "core/formats/pickle/pickle_tensors.h"

#include <algorithm>
#include <array>
#include <optional>

#include "core/base/error.h"

namespace retrograd {
namespace {

using Kind = PickleValue::Kind;

[[noreturn]] void fail(std::string message) { badInput("pickle: " + std::move(message)); }

constexpr std::string_view rebuildV2 = "torch._utils _rebuild_tensor_v2", rebuildV3 = "torch._utils _rebuild_tensor_v3";
constexpr std::string_view rebuildParameter = "torch._utils _rebuild_parameter",
                           parameterWithState = "torch._utils _rebuild_parameter_with_state";
constexpr std::string_view orderedDict = "collections OrderedDict";
/// A tensor that had attributes when it was saved, as torch.export's marks of dynamic dimensions: the tensor alone
/// matters.
constexpr std::string_view rebuildFromType = "torch._tensor _rebuild_from_type_v2", tensorType = "torch Tensor";
constexpr std::string_view set = "builtins set", set2 = "__builtin__ set";
constexpr std::string_view typeTag = "torch.jit._pickle restore_type_tag", device = "torch device",
                           ownModules = "__torch__";
constexpr std::string_view size = "torch Size", complexNumber = "__builtin__ complex",
                           complexNumber3 = "builtins complex";

/// "torch FloatStorage" and the like; the dtype is part of the name.
std::optional<DType> storageType(std::string_view global) {
  struct Entry {
    std::string_view name;
    DType dtype;
  };
  static constexpr std::array<Entry, 14> table{{{"torch DoubleStorage", DType::f64},
                                                {"torch FloatStorage", DType::f32},
                                                {"torch HalfStorage", DType::f16},
                                                {"torch BFloat16Storage", DType::bf16},
                                                {"torch LongStorage", DType::i64},
                                                {"torch IntStorage", DType::i32},
                                                {"torch ShortStorage", DType::i16},
                                                {"torch CharStorage", DType::i8},
                                                {"torch ByteStorage", DType::u8},
                                                {"torch BoolStorage", DType::b8},
                                                {"torch ComplexDoubleStorage", DType::c128},
                                                {"torch ComplexFloatStorage", DType::c64},
                                                {"torch UntypedStorage", DType::u8},
                                                {"torch.storage UntypedStorage", DType::u8}}};
  for (const auto& entry : table)
    if (entry.name == global) return entry.dtype;
  return std::nullopt;
}

/// "torch float8_e4m3fn"
std::optional<DType> dtypeGlobal(std::string_view global) {
  return global.starts_with("torch ") ? dtypeFromTorchName(global.substr(6)) : std::nullopt;
}

/// Lists of one type, as TorchScript writes them: "torch.jit._pickle build_intlist".
std::optional<std::string> typedList(std::string_view global) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 4> table{
      {{"torch.jit._pickle build_intlist", "List[int]"},
       {"torch.jit._pickle build_doublelist", "List[float]"},
       {"torch.jit._pickle build_boollist", "List[bool]"},
       {"torch.jit._pickle build_tensorlist", "List[Tensor]"}}};
  for (const auto& [name, type] : table)
    if (name == global) return std::string(type);
  return std::nullopt;
}

const PickleValue& argument(const Pickle& pickle, const PickleValue& tuple, std::size_t i, Kind kind) {
  if (i >= tuple.items.size()) fail("a constructor lacks arguments");
  const auto& value = pickle.at(tuple.items[i]);
  if (value.kind != kind) fail("an argument of another kind than expected");
  return value;
}

std::vector<std::int64_t> integers(const Pickle& pickle, const PickleValue& tuple) {
  if (tuple.items.size() > 64) fail("a tensor of " + std::to_string(tuple.items.size()) + " dimensions");
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < tuple.items.size(); ++i) {
    values.push_back(argument(pickle, tuple, i, Kind::integer).integer);
    if (values.back() < 0) fail("a negative size or stride");
  }
  return values;
}

PickleValue complexOf(const Pickle& pickle, const PickleValue& arguments) {
  PickleValue value;
  value.kind = Kind::complex;
  value.real = argument(pickle, arguments, 0, Kind::real).real;
  value.imaginary = argument(pickle, arguments, 1, Kind::real).real;
  return value;
}

/// {'conj': True, 'neg': True}: lazy bits of a view that was saved as it was.
void applyMetadata(const Pickle& pickle, const PickleValue& dict, TensorMeta& meta) {
  for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const auto& key = pickle.at(dict.items[i]);
    const bool set = pickle.at(dict.items[i + 1]).integer != 0;
    if (key.text == "conj") meta.conjugate = set;
    if (key.text == "neg") meta.negative = set;
  }
}

}  // namespace

void checkReach(const TensorMeta& meta, std::size_t bytes) {
  std::int64_t last = meta.offset, total = 0;
  bool overflow = meta.offset < 0, empty = false;
  for (std::size_t i = 0; i < meta.sizes.size(); ++i) {
    std::int64_t step = 0;
    empty |= meta.sizes[i] == 0;
    overflow |= meta.sizes[i] < 0 || meta.strides[i] < 0;
    overflow |= __builtin_mul_overflow(std::max<std::int64_t>(meta.sizes[i] - 1, 0), meta.strides[i], &step);
    overflow |= __builtin_add_overflow(last, step, &last);
  }
  if (empty && !overflow) return;
  overflow |= __builtin_add_overflow(last, 1, &last) || __builtin_mul_overflow(last, itemSize(meta.dtype), &total);
  if (overflow || static_cast<std::uint64_t>(total) > bytes)
    badInput("the storage has " + std::to_string(bytes) + " bytes, the tensor's shape needs " +
             (overflow ? std::string("more than 2^63") : std::to_string(total)));
}

bool PickleTensors::isKnownGlobal(std::string_view text) const {
  if (record_.objects && text.starts_with(ownModules)) {
    if (text.starts_with("__torch__.torch.classes"))
      fail("holds an object of the C++ class " + className(text) + "; creating it would run that class's code");
    return true;
  }
  if (record_.objects && (text == typeTag || text == device || typedList(text))) return true;
  return text == rebuildV2 || text == rebuildV3 || text == rebuildParameter || text == orderedDict || text == size ||
         text == rebuildFromType || text == tensorType || text == set || text == set2 || text == complexNumber ||
         text == complexNumber3 || storageType(text) || dtypeGlobal(text);
}

bool PickleTensors::isClass(const PickleValue& global) const {
  return record_.objects && global.kind == Kind::global && std::string_view(global.text).starts_with(ownModules);
}

std::string PickleTensors::className(std::string_view global) {
  std::string name(global);
  std::replace(name.begin(), name.end(), ' ', '.');
  return name;
}

/// The container itself with the type that TorchScript keeps next to it.
PickleValue PickleTensors::typed(const Pickle& pickle, const PickleValue& arguments, std::string type) const {
  if (arguments.items.empty()) fail("a constructor lacks arguments");
  PickleValue value = pickle.at(arguments.items.front());
  if (value.kind != Kind::list && value.kind != Kind::dict) fail("a type is given to something other than a container");
  value.text = std::move(type);
  return value;
}

PickleValue PickleTensors::call(const Pickle& pickle, std::uint32_t calleeIndex, std::uint32_t argumentsIndex) const {
  const auto& callee = pickle.at(calleeIndex);
  const auto& arguments = pickle.at(argumentsIndex);
  if (callee.kind != Kind::global && record_.opaque) return opaque(pickle, calleeIndex, argumentsIndex);
  if (callee.kind != Kind::global || arguments.kind != Kind::tuple) fail("a call of what cannot be called");
  if (callee.text == rebuildV2) return tensor(pickle, arguments, false);
  if (callee.text == rebuildV3) return tensor(pickle, arguments, true);
  if (callee.text == rebuildFromType) {
    const auto& rebuild = argument(pickle, arguments, 0, Kind::global).text;
    const auto& type = argument(pickle, arguments, 1, Kind::global).text;
    if (type != tensorType && record_.opaque) return opaque(pickle, arguments.items[1], argumentsIndex);
    if (type != tensorType || (rebuild != rebuildV2 && rebuild != rebuildV3)) fail("refuses to create a " + type);
    return tensor(pickle, argument(pickle, arguments, 2, Kind::tuple), rebuild == rebuildV3);
  }
  if (callee.text == set || callee.text == set2) return argument(pickle, arguments, 0, Kind::list);
  if (callee.text == rebuildParameter || (record_.opaque && callee.text == parameterWithState))
    return argument(pickle, arguments, 0, Kind::tensor);
  if (callee.text == size) return argument(pickle, arguments, 0, Kind::tuple);
  if (callee.text == complexNumber || callee.text == complexNumber3) return complexOf(pickle, arguments);
  if (callee.text == typeTag) return typed(pickle, arguments, argument(pickle, arguments, 1, Kind::string).text);
  if (callee.text == device) return argument(pickle, arguments, 0, Kind::string);
  if (const auto list = typedList(callee.text)) return typed(pickle, arguments, *list);
  if (isClass(callee)) {  // an enum's member: its class and its value
    PickleValue member;
    member.kind = Kind::object;
    member.text = className(callee.text);
    member.items = arguments.items;
    return member;
  }
  if (callee.text != orderedDict && record_.opaque) return opaque(pickle, calleeIndex, argumentsIndex);
  if (callee.text != orderedDict)
    fail("a call of " + callee.text +
         "; only tensors and plain containers are read: save a state dict, or safetensors");
  PickleValue dict;
  dict.kind = Kind::dict;
  if (arguments.items.empty()) return dict;
  const auto& pairs = pickle.at(arguments.items.front());
  for (const auto pair : pairs.items) {
    if (pickle.at(pair).items.size() != 2) fail("an OrderedDict whose items are not pairs");
    for (const auto part : pickle.at(pair).items) dict.items.push_back(part);
  }
  return dict;
}

PickleValue PickleTensors::opaque(const Pickle& pickle, std::uint32_t callee, std::uint32_t arguments) const {
  PickleValue value;
  value.kind = Kind::object;
  value.text = pickle.at(callee).text;
  if (pickle.at(arguments).kind == Kind::tuple) value.items = pickle.at(arguments).items;
  return value;
}

PickleValue PickleTensors::storage(const Pickle& pickle, std::uint32_t id) const {
  const auto& tuple = pickle.at(id);
  if (tuple.kind != Kind::tuple || argument(pickle, tuple, 0, Kind::string).text != "storage")
    fail("a persistent id that is not a storage");
  const auto dtype = storageType(argument(pickle, tuple, 1, Kind::global).text);
  const auto count = argument(pickle, tuple, 4, Kind::integer).integer;
  if (!dtype || count < 0) fail("a storage of unknown type");
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(count, itemSize(*dtype), &bytes)) fail("a storage of more than 2^63 bytes");
  const auto region = storageBytes(argument(pickle, tuple, 2, Kind::string).text, bytes);
  PickleValue value;
  value.kind = Kind::storage;
  value.tensor.meta.dtype = *dtype;
  value.tensor.data = region.data;
  value.tensor.bytes = region.size;
  value.tensor.owner = region.owner;
  return value;
}

ByteRegion PickleTensors::storageBytes(const std::string& key, std::int64_t bytes) const {
  if (record_.withoutData) return {nullptr, static_cast<std::size_t>(bytes), nullptr};
  if (!archive_) fail("a storage outside of an archive");
  auto region = archive_->read(record_.storages + key);
  if (static_cast<std::uint64_t>(bytes) > region.size) fail("a storage shorter than it says");
  return region;
}

PickleValue PickleTensors::tensor(const Pickle& pickle, const PickleValue& arguments, bool untyped) const {
  PickleValue value;
  value.kind = Kind::tensor;
  value.tensor = argument(pickle, arguments, 0, Kind::storage).tensor;
  auto& meta = value.tensor.meta;
  meta.offset = argument(pickle, arguments, 1, Kind::integer).integer;
  meta.sizes = integers(pickle, argument(pickle, arguments, 2, Kind::tuple));
  meta.strides = integers(pickle, argument(pickle, arguments, 3, Kind::tuple));
  value.integer = argument(pickle, arguments, 4, Kind::boolean).integer;  // requires_grad
  std::size_t metadata = 6;
  if (untyped) {
    const auto dtype = dtypeGlobal(argument(pickle, arguments, 6, Kind::global).text);
    if (!dtype) fail("a tensor of unknown dtype");
    meta.dtype = *dtype;
    metadata = 7;
  }
  if (metadata < arguments.items.size() && pickle.at(arguments.items[metadata]).kind == Kind::dict)
    applyMetadata(pickle, pickle.at(arguments.items[metadata]), meta);
  if (meta.sizes.size() != meta.strides.size()) fail("a tensor with more sizes than strides, or fewer");
  checkReach(meta, value.tensor.bytes);
  return value;
}

}  // namespace retrograd
