#include "core/derivation/precision.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

namespace retrograd {
namespace {

constexpr std::array known{DType::f64, DType::f32, DType::bf16, DType::f16};

bool isKnown(DType dtype) { return std::find(known.begin(), known.end(), dtype) != known.end(); }

DType complexOf(DType precision) {
  return precision == DType::f64 ? DType::c128 : precision == DType::f16 ? DType::c32 : DType::c64;
}
DType partOf(DType dtype) {
  return dtype == DType::c128  ? DType::f64
         : dtype == DType::c64 ? DType::f32
         : dtype == DType::c32 ? DType::f16
                               : dtype;
}

double largestOf(DType precision) {
  switch (precision) {
    case DType::f16: return 65504;
    case DType::bf16: return 0x1.fep127;
    case DType::f32: return double(std::numeric_limits<float>::max());
    default: return std::numeric_limits<double>::max();
  }
}

class CallCast {
 public:
  CallCast(const Document& document, DType from, DType to) : document_(document), from_(from), to_(to) {}

  /// Whether the op's call changed.
  bool apply(BoundSymbolId op, CallPattern& pattern) const {
    bool changed = false;
    for (auto& argument : pattern.arguments) changed |= literals(argument);
    return nameWhatItMakes(op, pattern) || changed;
  }

 private:
  bool literals(Argument& argument) const {
    bool changed = false;
    if (argument.kind == Argument::Kind::dtype) {
      const auto dtype = castDType(static_cast<DType>(argument.integer), from_, to_);
      changed = static_cast<std::int64_t>(dtype) != argument.integer;
      if (changed) argument = Argument::ofDType(dtype);
    } else if (argument.kind == Argument::Kind::real && std::abs(argument.real) == largestOf(from_) &&
               largestOf(to_) < largestOf(from_)) {
      argument = Argument::ofReal(std::copysign(largestOf(to_), argument.real));
      changed = true;
    }
    for (auto& item : argument.items) changed |= literals(item);
    return changed;
  }

  /// An op that reads no tensor and names no dtype makes LibTorch's default.
  bool nameWhatItMakes(BoundSymbolId op, CallPattern& pattern) const {
    const auto outputs = document_.outputs(op);
    if (outputs.empty() || !outputs[0] || !document_.isTensor(outputs[0])) return false;
    const auto made = document_.meta(outputs[0]).dtype;
    const auto wanted = castDType(made, from_, to_);
    const auto& entries = document_.symbol(op).arguments;
    const auto readsTensor = [](const SchemaEntry& entry) { return entry.type.starts_with("Tensor"); };
    if (wanted == made || std::any_of(entries.begin(), entries.end(), readsTensor)) return false;
    const auto dtype = std::find_if(entries.begin(), entries.end(),
                                    [](const SchemaEntry& entry) { return entry.type == "ScalarType?"; });
    if (dtype == entries.end()) return false;
    const std::size_t at = dtype - entries.begin();
    while (pattern.arguments.size() <= at) pattern.arguments.push_back(Argument::ofMissing());
    auto& argument = pattern.arguments[at];
    if (argument.kind != Argument::Kind::none && argument.kind != Argument::Kind::missing) return false;
    argument = Argument::ofDType(wanted);
    return true;
  }

  const Document& document_;
  const DType from_, to_;
};

/// The precision of most elements of the inputs that count.
template <class Counts>
std::optional<DType> mostOf(const ModelFile& file, Counts&& counts) {
  const auto& document = *file.document;
  std::map<DType, std::int64_t> elements;
  for (const auto& input : file.computation.inputs) {
    if (!input.value || !document.isTensor(input.value) || !counts(input.kind)) continue;
    const auto& meta = document.meta(input.value);
    if (const auto part = partOf(meta.dtype); isKnown(part))
      elements[part] += std::max<std::int64_t>(meta.elements(), 1);
  }
  const auto most = std::max_element(elements.begin(), elements.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == elements.end() ? std::nullopt : std::optional(most->first);
}

}  // namespace

std::span<const DType> precisions() { return known; }

DType ownPrecision(const ModelFile& file) {
  if (const auto own =
          mostOf(file, [](InputKind kind) { return kind == InputKind::parameter || kind == InputKind::buffer; }))
    return *own;
  return mostOf(file, [](InputKind kind) { return kind == InputKind::user; }).value_or(DType::f32);
}

DType castDType(DType dtype, DType from, DType to) {
  return dtype == from ? to : dtype == complexOf(from) && isComplex(dtype) ? complexOf(to) : dtype;
}

void castDocument(Document& document, DType from, DType to) {
  if (from == to) return;
  const CallCast cast(document, from, to);
  for (const auto op : document.boundSymbolIds()) {  // calls first: they ask what the ops make
    CallPattern pattern = document.pattern(document.boundSymbol(op).pattern);
    if (cast.apply(op, pattern)) document.boundSymbol(op).pattern = document.internPattern(pattern);
  }
  for (const auto id : document.valueIds()) {
    auto& value = document.value(id);
    if (!value.meta) continue;
    auto meta = document.meta(value.meta);
    const auto dtype = castDType(meta.dtype, from, to);
    if (dtype == meta.dtype) continue;
    if (const auto storage = value.storage; storage && document.storage(storage).first == id)
      document.storage(storage).bytes = document.storage(storage).bytes / itemSize(meta.dtype) * itemSize(dtype);
    meta.dtype = dtype;
    value.meta = document.internMeta(meta);
  }
}

double usualTolerance(std::optional<DType> precision) {
  return precision == DType::bf16 ? 5e-2 : precision == DType::f16 ? 1e-2 : 1e-4;
}

}  // namespace retrograd
