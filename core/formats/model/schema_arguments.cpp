#include "core/formats/model/schema_arguments.h"

#include <array>
#include <limits>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"

namespace retrograd {
namespace {

/// What a schema's element type takes.
enum class Wants { tensor, integer, real, scalar, boolean, string, dtype, layout, memoryFormat, device, anything };

Wants wantsOf(std::string_view element) {
  static const std::unordered_map<std::string_view, Wants> table{
      {"Tensor", Wants::tensor},  {"int", Wants::integer},
      {"SymInt", Wants::integer}, {"float", Wants::real},
      {"SymFloat", Wants::real},  {"Scalar", Wants::scalar},
      {"number", Wants::scalar},  {"complex", Wants::scalar},
      {"bool", Wants::boolean},   {"SymBool", Wants::boolean},
      {"str", Wants::string},     {"ScalarType", Wants::dtype},
      {"Layout", Wants::layout},  {"MemoryFormat", Wants::memoryFormat},
      {"Device", Wants::device}};
  const auto it = table.find(element);
  return it == table.end() ? Wants::anything : it->second;
}

bool takesNumber(Wants wants, Argument::Kind kind) {
  switch (wants) {
    case Wants::tensor:
    case Wants::scalar: return true;
    case Wants::integer: return kind == Argument::Kind::integer || kind == Argument::Kind::boolean;
    case Wants::real: return kind != Argument::Kind::complex;
    case Wants::boolean: return kind == Argument::Kind::boolean || kind == Argument::Kind::integer;
    // Older schemas carry these as plain integers.
    case Wants::dtype:
    case Wants::layout:
    case Wants::memoryFormat: return kind == Argument::Kind::integer;
    default: return false;
  }
}

/// Whether a single argument may stand for an element type. Values of the graph are checked where they are read.
bool fits(Wants wants, const Argument& a) {
  using K = Argument::Kind;
  if (wants == Wants::anything || a.kind == K::operand) return true;
  if (a.isNumber()) return takesNumber(wants, a.kind);
  switch (a.kind) {
    case K::string: return wants == Wants::string || wants == Wants::device;
    case K::dtype: return wants == Wants::dtype || wants == Wants::integer;
    case K::layout: return wants == Wants::layout || wants == Wants::integer;
    case K::memoryFormat: return wants == Wants::memoryFormat || wants == Wants::integer;
    case K::device: return wants == Wants::device;
    default: return false;
  }
}

/// An integer given for a float is that real number: execution then needs no schema to see it.
void adapt(Argument& a, Wants wants) {
  if (wants == Wants::real && (a.kind == Argument::Kind::integer || a.kind == Argument::Kind::boolean)) {
    auto real = Argument::ofReal(static_cast<double>(a.integer));
    real.text = std::move(a.text);
    a = std::move(real);
  }
  if (wants == Wants::boolean && a.kind == Argument::Kind::integer) a = Argument::ofBool(a.integer != 0);
  if (wants == Wants::device && a.kind == Argument::Kind::string) a = Argument::ofDevice(a.text);
}

/// One number for a list of fixed length represents all of them, as in Python.
void broadcast(Argument& a, const SchemaType& type) {
  if (!type.list || a.kind == Argument::Kind::list || a.kind == Argument::Kind::none) return;
  const std::size_t copies = type.length > 0 && type.length < 16 && a.kind != Argument::Kind::operand ? type.length : 1;
  a = Argument::ofList(std::vector<Argument>(copies, a));
}

}  // namespace

std::optional<Argument> namedConstant(std::string_view path) {
  static constexpr std::array<std::string_view, 7> layouts{"strided",    "sparse_coo", "sparse_csr", "sparse_csc",
                                                           "sparse_bsr", "sparse_bsc", "_mkldnn"};
  static constexpr std::array<std::string_view, 4> formats{"contiguous_format", "preserve_format", "channels_last",
                                                           "channels_last_3d"};
  constexpr std::string_view ops = "torch.ops.", torch = "torch.", math = "math.";
  if (path.starts_with(ops)) return Argument::ofOp(std::string(path.substr(ops.size())));
  const bool isMath = path.starts_with(math);
  if (!isMath && !path.starts_with(torch)) return std::nullopt;
  const auto name = path.substr(isMath ? math.size() : torch.size());
  if (name == "inf") return Argument::ofReal(std::numeric_limits<double>::infinity());
  if (name == "nan") return Argument::ofReal(std::numeric_limits<double>::quiet_NaN());
  if (isMath) return std::nullopt;
  if (const auto dtype = dtypeFromTorchName(name)) return Argument::ofDType(*dtype);
  for (std::size_t i = 0; i < layouts.size(); ++i)
    if (layouts[i] == name) return Argument::ofLayout(static_cast<Layout>(i));
  for (std::size_t i = 0; i < formats.size(); ++i)
    if (formats[i] == name) return Argument::ofMemoryFormat(static_cast<std::int64_t>(i));
  return std::nullopt;
}

std::string typeText(const SchemaType& type) {
  std::string text = type.element + (type.optionalElement ? "?" : "");
  if (type.list) text += "[]";
  return text + (type.optional ? "?" : "");
}

void conform(Argument& a, const SchemaType& type, bool isNumber, std::string_view what) {
  const Wants wants = wantsOf(type.element);
  if (isNumber && wants != Wants::tensor) broadcast(a, type);
  bool good = true;
  if (a.kind == Argument::Kind::none) {
    good = type.optional || wants == Wants::tensor || wants == Wants::anything;
  } else if (type.list) {
    good = a.kind == Argument::Kind::list || wants == Wants::anything;
    a.optionalList = type.optionalElement;
    for (auto& item : a.items) {
      if (item.kind == Argument::Kind::none) {
        good &= type.optionalElement;
        continue;
      }
      if (wants == Wants::tensor) good &= item.kind == Argument::Kind::operand;
      else good &= fits(wants, item);
      adapt(item, wants);
    }
  } else {
    good = fits(wants, a);
    adapt(a, wants);
  }
  if (!good) badInput(std::string(what) + " where the schema wants " + typeText(type));
}

bool takesTensor(const SchemaType& type) {
  const auto wants = wantsOf(type.element);
  return wants == Wants::tensor || wants == Wants::anything;
}

}  // namespace retrograd
