#include "core/torch/experiments/compare_pairing.h"

#include <algorithm>
#include <map>

#include "core/derivation/precision.h"
#include "core/formats/recording/recording.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

/// The op's name without overload, the same for a write in place.
std::string_view kindOf(const Document& document, BoundSymbolId op) {
  const std::string_view name = document.symbol(op).name;
  const auto dot = name.rfind('.');
  const auto end = dot == std::string_view::npos ? name.size() : dot;
  return name.substr(0, end > 0 && name[end - 1] == '_' ? end - 1 : end);
}

bool isProduct(std::string_view kind) {
  for (const auto one : {"mm", "linear", "convolution", "attention"})
    if (kind.find(one) != std::string_view::npos) return true;
  return false;
}

/// What a run computes in: the precision of its weights, or that of most of its products where they are coarser, as
/// under autocast.
DType baseOf(const Analysis& analysis) {
  const auto own = ownPrecision(analysis.file);
  std::map<DType, std::size_t> products;
  std::size_t all = 0;
  for (const auto op : analysis.joint.ops) {
    const auto outputs = analysis.document->outputs(op);
    if (outputs.empty() || !outputs[0] || !analysis.document->isTensor(outputs[0])) continue;
    if (!isProduct(kindOf(*analysis.document, op))) continue;
    ++products[analysis.document->meta(outputs[0]).dtype];
    ++all;
  }
  auto base = own;
  for (const auto& [dtype, count] : products)
    if (2 * count > all) base = coarser(base, dtype);
  return base;
}

/// Whether both gave the same bits, as far as that was recorded.
bool gaveTheSame(const StepRecording& recording, BoundSymbolId first, BoundSymbolId again) {
  const auto &x = recording.op(first), &y = recording.op(again);
  for (std::uint32_t k = 0; k < std::min(x.checkCount, y.checkCount); ++k) {
    const auto &one = recording.checks[x.checksBegin + k].hash, &other = recording.checks[y.checksBegin + k].hash;
    if (one && other && *one != *other) return false;
  }
  return true;
}

/// The op that ran first, of what a checkpoint or a partition runs again; else the op itself.
BoundSymbolId firstRun(const Document& document, const IdVector<ValueId, BoundSymbolId>& makers, BoundSymbolId op) {
  const auto& origin = document.boundSymbol(op).origin;
  const auto maker = origin.role == Role::recompute && origin.value ? makers[origin.value] : BoundSymbolId();
  return maker && maker != op ? maker : firstRunOf(document, op);
}

void collect(const Document& document, std::span<const ValueId> values, std::set<std::int64_t>& dims) {
  for (const auto value : values) {
    if (!value || !document.isTensor(value)) continue;
    const auto& meta = document.meta(value);
    const auto all = meta.elements();
    dims.insert(all);
    for (const auto size : meta.sizes) {
      dims.insert(size);
      if (size > 0) dims.insert(all / size);
    }
  }
}

}  // namespace

int digitsOf(DType dtype) {
  if (dtype == DType::bf16) return 8;
  if (dtype == DType::f16 || dtype == DType::c32) return 11;
  return dtype == DType::f64 || dtype == DType::c128 ? 53 : 24;
}

DType coarser(DType a, DType b) { return digitsOf(b) < digitsOf(a) ? b : a; }

std::string shortNameOf(const Document& document, BoundSymbolId op) {
  std::string name = document.symbol(op).name;
  const auto begin = name.find('.'), end = name.rfind('.');
  if (begin == std::string::npos || begin == end) return name;
  return name.starts_with("aten.") ? name.substr(begin + 1, end - begin - 1) : name.substr(0, end);
}

bool isPlain(const Document& document, BoundSymbolId op) {
  static constexpr std::string_view plain[]{
      "detach", "alias",      "view",       "_unsafe_view", "t",      "transpose",  "permute",
      "expand", "squeeze",    "unsqueeze",  "as_strided",   "clone",  "contiguous", "reshape",
      "empty",  "empty_like", "lift_fresh", "split",        "unbind", "chunk",      "detach_"};
  return std::ranges::find(plain, shortNameOf(document, op)) != std::end(plain);
}

bool isCast(const Document& document, BoundSymbolId op) {
  const auto name = shortNameOf(document, op);
  if (name != "_to_copy" && name != "to" && name != "type_as") return false;
  const auto operands = document.operands(op), outputs = document.outputs(op);
  if (operands.empty() || outputs.empty() || !operands[0] || !outputs[0]) return false;
  if (!document.isTensor(operands[0]) || !document.isTensor(outputs[0])) return false;
  return document.meta(operands[0]).dtype != document.meta(outputs[0]).dtype;
}

RunPairing::RunPairing(const Analysis& first, const Analysis& second, OpPairs& opPairs, bool all)
    : a(first),
      b(second),
      documentA(*a.document),
      documentB(*b.document),
      pairs(opPairs),
      baseA(baseOf(a)),
      baseB(baseOf(b)),
      placeA(a.document->boundSymbolCount(), -1),
      placeB(b.document->boundSymbolCount(), -1),
      makerA(a.document->valueCount()),
      makerB(b.document->valueCount()) {
  for (std::size_t i = 0; i < a.joint.ops.size(); ++i) placeA[a.joint.ops[i]] = static_cast<std::int64_t>(i);
  for (std::size_t j = 0; j < b.joint.ops.size(); ++j) placeB[b.joint.ops[j]] = static_cast<std::int64_t>(j);
  const auto findMakers = [](const Analysis& analysis, IdVector<ValueId, BoundSymbolId>& makers) {
    for (const auto op : analysis.joint.ops)
      for (const auto output : analysis.document->outputs(op))
        if (output) makers[output] = op;
  };
  findMakers(a, makerA);
  findMakers(b, makerB);
  findSizes();
  findPairs();
  findWhatRuns(all);
  findEnds();
}

bool RunPairing::isStrict(BoundSymbolId opA, BoundSymbolId opB) const {
  return opA && opB && kindOf(documentA, opA) == kindOf(documentB, opB);
}

ValueId RunPairing::firstMade(const Analysis& of, const IdVector<ValueId, BoundSymbolId>& makers,
                              const IdVector<BoundSymbolId, std::int64_t>& place, const std::vector<char>& isRepeat,
                              ValueId value) const {
  const auto& document = *of.document;
  while (value && makers[value] && isRepeat[place[makers[value]]]) {
    const auto maker = makers[value];
    const auto before = document.outputs(firstRun(document, makers, maker)), now = document.outputs(maker);
    const auto at = static_cast<std::size_t>(std::ranges::find(now, value) - now.begin());
    value = at < before.size() ? before[at] : ValueId();
  }
  return value;
}

ValueId RunPairing::forced(ValueId ofB) const {
  const auto value = firstMade(b, makerB, placeB, isRepeatB, ofB);
  if (!value) return {};
  const auto maker = makerB[value];
  if (!maker) return pairs.partner(Side::right, value);
  const auto partner = partners[placeB[maker]];
  if (partner < 0) return {};
  const auto outputs = documentB.outputs(maker), others = documentA.outputs(a.joint.ops[partner]);
  const auto at = static_cast<std::size_t>(std::ranges::find(outputs, value) - outputs.begin());
  return at < others.size() ? others[at] : ValueId();
}

bool RunPairing::stands(ValueId ofA, ValueId ofB) const {
  const auto value = forced(ofB);
  return value == ofA || (value && value == firstMade(a, makerA, placeA, isRepeatA, ofA));
}

bool RunPairing::isAloneA(BoundSymbolId opA) const {
  return placeA[opA] >= 0 && answers[placeA[opA]] < 0 && !isRepeatA[placeA[opA]];
}
bool RunPairing::isAloneB(BoundSymbolId opB) const {
  return placeB[opB] >= 0 && partners[placeB[opB]] < 0 && !isRepeatB[placeB[opB]];
}

void RunPairing::findPairs() {
  const auto &opsA = a.joint.ops, &opsB = b.joint.ops;
  partners.assign(opsB.size(), -1);
  answers.assign(opsA.size(), -1);
  findRepeats();
  for (std::size_t j = 0; j < opsB.size(); ++j) {
    const auto other = pairs.partner(Side::right, opsB[j]);
    if (!isStrict(other, opsB[j]) || placeA[other] < 0) continue;
    if (!isAnchor(other, opsB[j])) {
      carriersA[other] = opsB[j];
      carriersB[opsB[j]] = other;
      continue;
    }
    partners[j] = placeA[other];
    answers[placeA[other]] = static_cast<std::int64_t>(j);
  }
  // What repeats an op that turned out to have no partner is alone as well.
  for (std::size_t i = 0; i < opsA.size(); ++i)
    isRepeatA[i] = isRepeatA[i] && answers[placeA[firstRun(documentA, makerA, opsA[i])]] >= 0;
  for (std::size_t j = 0; j < opsB.size(); ++j)
    isRepeatB[j] = isRepeatB[j] && partners[placeB[firstRun(documentB, makerB, opsB[j])]] >= 0;
}

void RunPairing::findRepeats() {
  const auto find = [&](Side side, const Analysis& of, const auto& makers, const auto& place, const auto& otherPlace,
                        std::vector<char>& isRepeat) {
    const auto hasPartner = [&](BoundSymbolId op) {
      const auto other = pairs.partner(side, op);
      return other && otherPlace[other] >= 0;
    };
    isRepeat.assign(of.joint.ops.size(), 0);
    for (std::size_t i = 0; i < isRepeat.size(); ++i) {
      const auto op = of.joint.ops[i], first = firstRun(*of.document, makers, op);
      if (first == op || place[first] < 0 || hasPartner(op) || !hasPartner(first)) continue;
      isRepeat[i] = !of.file.recording || gaveTheSame(*of.file.recording, first, op);
    }
  };
  find(Side::left, a, makerA, placeA, placeB, isRepeatA);
  find(Side::right, b, makerB, placeB, placeA, isRepeatB);
}

void RunPairing::findSizes() {
  for (const auto& input : b.joint.inputs) {
    const auto other = input ? pairs.partner(Side::right, input) : ValueId();
    if (!other || !documentA.isTensor(other) || !documentB.isTensor(input)) continue;
    const auto &x = documentA.meta(other), &y = documentB.meta(input);
    if (x.sizes == y.sizes) continue;
    batchDiffers = true;
    ratios_.emplace(x.elements(), y.elements());
  }
}

/// Whether what the two make is the same value of both runs. What only hands on its operands, and a sum of gradients,
/// whose order is nobody's choice, are where these are; nothing of another shape is.
bool RunPairing::isAnchor(BoundSymbolId opA, BoundSymbolId opB) const {
  const auto here = documentA.operands(opA), there = documentB.operands(opB);
  const auto role = documentB.boundSymbol(opB).origin.role;
  const auto stand = [&](ValueId ofA, ValueId ofB) { return stands(ofA, ofB); };
  const bool isSum = (role == Role::gradient || role == Role::accumulation) && kindOf(documentB, opB) == "aten.add";
  if (isSum || isPlain(documentB, opB)) {
    if (here.size() != there.size()) return false;
    if (!std::ranges::equal(here, there, stand)) {
      const bool isSwapped = isSum && here.size() == 2 && stands(here[1], there[0]) && stands(here[0], there[1]);
      if (!isSwapped) return false;
    }
  }
  // Each reads what both have, and not the same: a sum in another order, or an operand that was mistaken. What comes of
  // it tells.
  const auto isOther = [&](std::size_t k) { return !stands(here[k], there[k]); };
  const auto isShared = [&](std::size_t k) {
    const auto maker = here[k] ? makerA[here[k]] : BoundSymbolId();
    return here[k] && forced(there[k]) && (!maker || answers[placeA[maker]] >= 0);
  };
  bool isMixedUp = !isSum && here.size() == there.size() && !std::ranges::equal(here, there, stand);
  for (std::size_t k = 0; isMixedUp && k < here.size(); ++k) isMixedUp = !isOther(k) || isShared(k);
  if (isMixedUp) return false;
  if (batchDiffers) return true;
  const auto sizesOf = [](const Document& document, ValueId value) {
    return value && document.isTensor(value) ? document.meta(value).sizes : std::vector<std::int64_t>();
  };
  const bool readsSame = std::ranges::equal(here, there, stand);
  return readsSame || std::ranges::equal(documentA.outputs(opA), documentB.outputs(opB), [&](ValueId x, ValueId y) {
           return sizesOf(documentA, x) == sizesOf(documentB, y);
         });
}

std::vector<ValueId> silentWrites(const Document& document, BoundSymbolId op) {
  const auto outputs = document.outputs(op);
  if (std::ranges::any_of(outputs, [](ValueId value) { return value.valid(); })) return {};
  return writtenOperands(document, op);
}

void RunPairing::findWhatRuns(bool all) {
  const auto &opsA = a.joint.ops, &opsB = b.joint.ops;
  for (std::size_t j = 0; j < opsB.size(); ++j)
    if (partners[j] < 0)
      for (const auto value : silentWrites(documentB, opsB[j])) dynamicB.insert(value);
  for (std::size_t i = 0; i < opsA.size(); ++i)
    if (answers[i] < 0)
      for (const auto value : silentWrites(documentA, opsA[i]))
        if (const auto other = pairs.partner(Side::left, value)) dynamicB.insert(other);
  runs.assign(opsB.size(), 0);
  needs.assign(opsB.size(), 0);
  for (std::size_t j = 0; j < opsB.size(); ++j) {
    const auto i = partners[j];
    const bool isAlone = i < 0, isDraw = !isAlone && (documentB.boundSymbol(opsB[j]).effects & effect::random) != 0;
    const bool isOther = isAlone || (!isDraw && differs(static_cast<std::size_t>(i), j));
    runs[j] = isAlone ? !isRepeatB[j] : !isDraw && (all || isOther);
    if (isOther) ++mustRun;
    auto need = i < 0 ? std::size_t{0} : static_cast<std::size_t>(i) + 1;
    if (runs[j]) {
      const auto operands = documentB.operands(opsB[j]);
      for (std::size_t slot = 0; slot < operands.size(); ++slot) {
        const auto value = forced(operands[slot]);
        if (!value) continue;
        const auto others = i < 0 ? std::span<const ValueId>() : documentA.operands(opsA[i]);
        if (slot < others.size() && stands(others[slot], operands[slot])) continue;
        wanted.insert(value);
        if (const auto maker = makerA[value]) need = std::max(need, static_cast<std::size_t>(placeA[maker]) + 1);
      }
    }
    needs[j] = need;
  }
  mustRun += static_cast<std::size_t>(std::ranges::count(answers, -1));
}

/// Whether the second's op is another call, or reads something else.
bool RunPairing::differs(std::size_t i, std::size_t j) {
  const auto opA = a.joint.ops[i], opB = b.joint.ops[j];
  if (opA == opB && pairs.isOneDocument()) return false;
  auto& s = pairs.signatures();
  if (s.symbol(Side::left, opA) != s.symbol(Side::right, opB) || s.call(Side::left, opA) != s.call(Side::right, opB))
    return true;
  const auto here = documentA.operands(opA), there = documentB.operands(opB);
  if (here.size() != there.size() || hasDynamicOperand(opB)) return true;
  const auto sameType = [&](ValueId x, ValueId y) {
    if (!x || !y || !documentA.isTensor(x) || !documentB.isTensor(y)) return true;
    return documentA.meta(x).dtype == documentB.meta(y).dtype && documentA.meta(x).device == documentB.meta(y).device;
  };
  for (std::size_t k = 0; k < here.size(); ++k)
    if (!stands(here[k], there[k]) || !sameType(here[k], there[k])) return true;
  const auto made = documentA.outputs(opA), madeB = documentB.outputs(opB);
  return !std::ranges::equal(made, madeB, sameType);
}

bool RunPairing::hasDynamicOperand(BoundSymbolId opB) const {
  return !dynamicB.empty() &&
         std::ranges::any_of(documentB.operands(opB), [&](ValueId value) { return dynamicB.contains(value); });
}

bool RunPairing::isSameButForSizes(const Argument& x, const Argument& y, const std::set<std::int64_t>& dimsA,
                                   const std::set<std::int64_t>& dimsB) const {
  if (x == y) return true;
  if (x.kind != y.kind || x.items.size() != y.items.size()) return false;
  if (x.kind == Argument::Kind::list) {
    for (std::size_t i = 0; i < x.items.size(); ++i)
      if (!isSameButForSizes(x.items[i], y.items[i], dimsA, dimsB)) return false;
    return true;
  }
  if (x.kind == Argument::Kind::operand) return true;
  const bool isInteger = x.kind == Argument::Kind::integer;
  if (!isInteger && x.kind != Argument::Kind::real) return false;
  if (isInteger && dimsA.contains(x.integer) && dimsB.contains(y.integer)) return true;
  const auto numberA = isInteger ? static_cast<double>(x.integer) : x.real,
             numberB = isInteger ? static_cast<double>(y.integer) : y.real;
  return std::ranges::any_of(ratios_, [&](const auto& ratio) {
    const auto [n, m] = ratio;
    return numberA * m == numberB * n || numberA * n == numberB * m;
  });
}

/// Whether literals differ only as the sizes of the batch do.
bool RunPairing::isExplainedBySizes(BoundSymbolId opA, BoundSymbolId opB) const {
  if (!batchDiffers) return false;
  const auto& x = documentA.pattern(documentA.boundSymbol(opA).pattern).arguments;
  const auto& y = documentB.pattern(documentB.boundSymbol(opB).pattern).arguments;
  if (x.size() != y.size()) return false;
  std::set<std::int64_t> dimsA, dimsB;
  collect(documentA, documentA.operands(opA), dimsA);
  collect(documentA, documentA.outputs(opA), dimsA);
  collect(documentB, documentB.operands(opB), dimsB);
  collect(documentB, documentB.outputs(opB), dimsB);
  bool differs = false;
  for (std::size_t i = 0; i < x.size(); ++i) {
    differs |= !(x[i] == y[i]);
    if (!isSameButForSizes(x[i], y[i], dimsA, dimsB)) return false;
  }
  return differs;
}

void RunPairing::findEnds() {
  const auto &outputsA = a.joint.outputs, &outputsB = b.joint.outputs;
  // Of a recording the losses; gradients there have names.
  const bool isRecorded = a.file.recording && b.file.recording;
  const auto placedA = isRecorded ? a.joint.resultCount : outputsA.size(),
             placedB = isRecorded ? b.joint.resultCount : outputsB.size();
  if (placedA == placedB)
    for (std::size_t k = 0; k < placedA; ++k)
      if (outputsA[k] && outputsB[k]) ends.push_back({outputsA[k], outputsB[k], isRecorded ? "the loss" : "a result"});
  if (isRecorded) {
    const auto namesOf = [](const Analysis& analysis) {
      IdVector<StorageId, ValueId> latest(analysis.document->storageCount());
      std::map<std::pair<std::string, std::string>, ValueId> named;  // by name and by whose gradient it is
      for (const auto value : analysis.document->valueIds())
        if (const auto storage = analysis.document->value(value).storage) latest[storage] = value;
      const auto& recording = *analysis.file.recording;
      for (const auto& name : recording.names)
        if (name.role == "buffer") named[{"buffer " + name.name, ""}] = latest[name.storage];
      for (const auto& [name, value] : recording.gradients) named[{"gradient of " + name, name}] = value;
      return named;
    };
    const auto namedA = namesOf(a), namedB = namesOf(b);
    for (const auto& [name, value] : namedA) {
      const auto found = namedB.find(name);
      ends.push_back({value, found == namedB.end() ? ValueId() : found->second, name.first, name.second});
    }
    for (const auto& [name, value] : namedB)
      if (!namedA.contains(name)) ends.push_back({{}, value, name.first, name.second});
  }
  for (const auto& end : ends) {
    const auto other = forced(end.b);
    if (!end.a || !end.b || (stands(end.a, end.b) && !dynamicB.contains(end.b))) continue;
    wanted.insert(end.a);
    if (other) wanted.insert(other);
  }
}

}  // namespace retrograd
