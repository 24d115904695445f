#include "core/trace/diff/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/trace/print/printer.h"
#include "core/trace/python_text.h"
#include "core/trace/source.h"
#include "core/trace/symbol.h"

namespace retrograd {
namespace {

std::string lineOf(const Document& document, BoundSymbolId op) {
  const auto comment = printComment(document, op);
  return printCall(document, op) + (comment.empty() ? "" : "  # " + comment);
}

std::string outputsOf(const Document& document, const Trace& trace) {
  std::string text;
  for (auto output : trace.outputs) text += (text.empty() ? "return " : ", ") + document.displayName(output);
  return text;
}

/// Groups of returns; single values alone are the same as no groups.
std::vector<std::int32_t> groups(const CallPattern& pattern) {
  const bool flat = std::all_of(pattern.returns.begin(), pattern.returns.end(), [](std::int32_t n) { return n < 0; });
  return flat ? std::vector<std::int32_t>() : pattern.returns;
}

bool sameFrame(const SourceFrame* a, const SourceFrame* b) {
  if (!a || !b) return a == b;
  const auto file = [](const SourceFrame& frame) {
    return oneLine(std::filesystem::path(frame.file).filename().string());
  };
  return file(*a) == file(*b) && a->line == b->line && oneLine(a->code) == oneLine(b->code);
}

/// Expressions behind strides and offsets are not printed, so a trace that was read has none.
bool sameType(const TensorMeta& a, const TensorMeta& b) {
  const auto printed = [](TensorMeta meta) {
    meta.strideSymbols.clear();
    meta.offsetSymbol.clear();
    return meta;
  };
  return a == b || ((a.isSymbolic() || b.isSymbolic()) && printed(a) == printed(b));
}

}  // namespace

bool TraceComparison::Pairs::pair(std::int32_t a, std::int32_t b, bool& isNew) {
  isNew = false;
  if (a < 0 || b < 0) return a < 0 && b < 0;
  const std::size_t i = a, k = b;
  if (i >= there.size()) there.resize(i + i / 2 + 64, -1);
  if (k >= back.size()) back.resize(k + k / 2 + 64, -1);
  if (there[i] < 0 && back[k] < 0) {
    isNew = true;
    there[i] = b;
    back[k] = a;
  }
  return there[i] == b && back[k] == a;
}

TraceComparison::TraceComparison(const Document& first, const Document& second) : first_(first), second_(second) {}

std::optional<Difference> TraceComparison::compare(const Trace& a, const Trace& b) {
  what_.clear();
  if (a.kind != b.kind) return Difference{"kind of trace", std::string(name(a.kind)), std::string(name(b.kind))};
  if (!sameValues(a.inputs, b.inputs) || !sameGrad(a.inputs, b.inputs) || a.savedCount != b.savedCount)
    return Difference{"inputs" + (what_.empty() ? "" : ", " + what_), {}, {}};
  for (std::size_t i = 0; i < a.ops.size() || i < b.ops.size(); ++i) {
    const bool both = i < a.ops.size() && i < b.ops.size();
    if (both && sameOp(a.ops[i], b.ops[i])) continue;
    Difference difference;
    difference.what = fmt::format("op {}{}{}", i, what_.empty() ? "" : ", ", what_);
    if (i < a.ops.size()) difference.first = lineOf(first_, a.ops[i]);
    if (i < b.ops.size()) difference.second = lineOf(second_, b.ops[i]);
    return difference;
  }
  const bool sameCounts = a.resultCount == b.resultCount && a.forwardCount == b.forwardCount;
  if (!sameValues(a.outputs, b.outputs) || !sameCounts)
    return Difference{"results" + (what_.empty() ? "" : ", " + what_), outputsOf(first_, a), outputsOf(second_, b)};
  return std::nullopt;
}

bool TraceComparison::sameValues(std::span<const ValueId> a, std::span<const ValueId> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](ValueId x, ValueId y) { return sameValue(x, y); });
}

/// A value that is only named (whose gradient something is) need not be in a trace.
bool TraceComparison::sameName(ValueId a, ValueId b) {
  bool isNew = false;
  return values_.pair(a.index, b.index, isNew);
}

bool TraceComparison::sameValue(ValueId a, ValueId b) {
  if (!sameName(a, b)) return false;
  if (!a) return true;
  if (!compared_.contains(a)) compared_.resize(first_.valueCount());
  if (compared_[a]) return true;
  compared_[a] = true;
  return sameDescription(first_.value(a), second_.value(b));
}

bool TraceComparison::sameGrad(std::span<const ValueId> a, std::span<const ValueId> b) {
  const bool same = std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](ValueId x, ValueId y) {
    return !x || !y || first_.value(x).requiresGrad == second_.value(y).requiresGrad;
  });
  return same || differs("whether its value requires grad");
}

bool TraceComparison::sameDescription(const Value& a, const Value& b) {
  const auto* metaA = a.meta ? &first_.meta(a.meta) : nullptr;
  const auto* metaB = b.meta ? &second_.meta(b.meta) : nullptr;
  if (metaA && metaB ? !sameType(*metaA, *metaB) : metaA != metaB) return differs("its type");
  if (a.kind != b.kind) return differs("what kind of value it makes");
  if (a.version != b.version) return differs("the version of what it makes");
  bool isNew = false;
  if (!storages_.pair(a.storage.index, b.storage.index, isNew)) return differs("the storage its value lies in");
  if (!isNew) return true;
  const auto &storageA = first_.storage(a.storage), &storageB = second_.storage(b.storage);
  if (storageA.bytes != storageB.bytes || storageA.external != storageB.external)
    return differs("the storage its value lies in");
  return true;
}

bool TraceComparison::sameOp(BoundSymbolId a, BoundSymbolId b) {
  bool isNew = false;
  if (!ops_.pair(a.index, b.index, isNew)) return differs("which op of an earlier trace it is");
  if (!isNew) return true;
  const auto &boundA = first_.boundSymbol(a), &boundB = second_.boundSymbol(b);
  if (first_.opName(a) != second_.opName(b)) return differs("which op it is");
  if (!sameCall(a, b)) return differs("its arguments");
  if (!sameValues(first_.outputs(a), second_.outputs(b))) return differs("its results");
  if (!sameOrigin(boundA.origin, boundB.origin)) return differs("its origin");
  // The derived traces describe what the computation's own ops make.
  if (boundA.origin.role != Role::none && !sameGrad(first_.outputs(a), second_.outputs(b))) return false;
  if (boundA.effects != boundB.effects) return differs("its effects");
  if (boundA.gradMode != boundB.gradMode) return differs("its grad mode");
  if (boundA.recomputed != boundB.recomputed || !sameReference(boundA.replays, boundB.replays))
    return differs("whether it is recomputed");
  if (!samePlace(a, b)) return differs("its place in the model");
  return true;
}

bool TraceComparison::sameCall(BoundSymbolId a, BoundSymbolId b) {
  const auto &boundA = first_.boundSymbol(a), &boundB = second_.boundSymbol(b);
  const auto &patternA = first_.pattern(boundA.pattern), &patternB = second_.pattern(boundB.pattern);
  const auto callA = callArguments(first_.symbol(boundA.symbol), patternA),
             callB = callArguments(second_.symbol(boundB.symbol), patternB);
  const auto operandsA = first_.operands(a), operandsB = second_.operands(b);
  const auto same = [&](const Argument* x, const Argument* y) { return sameArgument(*x, operandsA, *y, operandsB); };
  return groups(patternA) == groups(patternB) &&
         std::equal(callA.positional.begin(), callA.positional.end(), callB.positional.begin(), callB.positional.end(),
                    same) &&
         std::equal(callA.keyword.begin(), callA.keyword.end(), callB.keyword.begin(), callB.keyword.end(),
                    [&](const auto& x, const auto& y) { return x.first == y.first && same(x.second, y.second); });
}

bool TraceComparison::sameArgument(const Argument& a, std::span<const ValueId> operandsA, const Argument& b,
                                   std::span<const ValueId> operandsB) {
  const auto isAbsent = [](const Argument& x) {
    return x.kind == Argument::Kind::none || x.kind == Argument::Kind::missing;
  };
  if (isAbsent(a) || isAbsent(b)) return isAbsent(a) && isAbsent(b);
  if (a.kind != b.kind || a.items.size() != b.items.size()) return false;
  if (a.kind == Argument::Kind::operand) {
    const std::size_t i = a.integer, k = b.integer;
    return i < operandsA.size() && k < operandsB.size() && sameValue(operandsA[i], operandsB[k]);
  }
  if (a.kind == Argument::Kind::subgraph)
    return sameBody(first_.subgraph(SubgraphId(a.integer)), second_.subgraph(SubgraphId(b.integer)));
  const bool sameReal = a.real == b.real || (a.real != a.real && b.real != b.real);
  const bool sameImaginary = a.imaginary == b.imaginary || (a.imaginary != a.imaginary && b.imaginary != b.imaginary);
  if (a.integer != b.integer || !sameReal || !sameImaginary || a.text != b.text) return false;
  return std::equal(a.items.begin(), a.items.end(), b.items.begin(),
                    [&](const Argument& x, const Argument& y) { return sameArgument(x, operandsA, y, operandsB); });
}

bool TraceComparison::sameBody(const Subgraph& a, const Subgraph& b) {
  const auto sameResult = [&](const Argument& x, const Argument& y) {
    return sameArgument(x, a.outputValues, y, b.outputValues);
  };
  return a.name == b.name && sameValues(a.inputs, b.inputs) &&
         std::equal(a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(),
                    [&](BoundSymbolId x, BoundSymbolId y) { return sameOp(x, y); }) &&
         std::equal(a.outputs.begin(), a.outputs.end(), b.outputs.begin(), b.outputs.end(), sameResult);
}

bool TraceComparison::sameOrigin(const Origin& a, const Origin& b) {
  return a.role == b.role && a.operand == b.operand && a.output == b.output && sameReference(a.op, b.op) &&
         sameName(a.value, b.value) && sameTerms(a, b);
}

/// Additions into one gradient share a list, of which each compares what the ones before have not.
bool TraceComparison::sameTerms(const Origin& a, const Origin& b) {
  const auto termsA = first_.terms(a), termsB = second_.terms(b);
  if (termsA.size() != termsB.size()) return false;
  auto& same = sameTerms_[{a.termsBegin, b.termsBegin}];
  while (same < termsA.size() && sameName(termsA[same], termsB[same])) ++same;
  return same >= termsA.size();
}

/// An op that is only referred to: paired, and where it is met first, of the same name.
bool TraceComparison::sameReference(BoundSymbolId a, BoundSymbolId b) {
  bool isNew = false;
  if (!ops_.pair(a.index, b.index, isNew)) return false;
  return !isNew || first_.opName(a) == second_.opName(b);
}

bool TraceComparison::samePlace(BoundSymbolId a, BoundSymbolId b) const {
  const auto &boundA = first_.boundSymbol(a), &boundB = second_.boundSymbol(b);
  return first_.text(boundA.module) == second_.text(boundB.module) &&
         sameFrame(shownFrame(first_.source(boundA.source)), shownFrame(second_.source(boundB.source)));
}

}  // namespace retrograd
