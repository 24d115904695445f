// Which op is to blame for what OwnErrors measured, and how that is said.
#include <fmt/format.h>

#include <algorithm>

#include "core/formats/recording/recording.h"
#include "core/torch/experiments/compare_own.h"
#include "core/torch/experiments/compare_runs.h"
#include "core/torch/judging/judge.h"
#include "core/torch/tracing/convert.h"
#include "core/trace/diff/diff_text.h"
#include "core/trace/print/printer.h"

namespace retrograd {

namespace {

std::string castText(const Document& document, BoundSymbolId op) {
  return fmt::format("cast of {} to {}", torchName(document.meta(document.operands(op)[0]).dtype),
                     torchName(document.meta(document.outputs(op)[0]).dtype));
}

/// "clamp, sum and div"
template <class Carriers>
std::string namesOf(const Document& document, const std::vector<BoundSymbolId>& ops, const Carriers& carriers) {
  constexpr std::size_t most = 4;
  std::vector<std::string> names;
  std::size_t left = 0;
  for (const auto op : ops) {
    if (isPlain(document, op) || carriers.contains(op)) continue;
    if (names.size() < most) names.push_back(shortNameOf(document, op));
    else ++left;
  }
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() && left == 0 ? " and " : ", ") + names[i];
  return left ? text + fmt::format(" and {} more", left) : text;
}

/// Whether the op makes a tensor whose numbers no other tensor decides: a mask, noise.
bool isMade(const Document& document, BoundSymbolId op) {
  const auto name = shortNameOf(document, op);
  return name.ends_with("_like") || name.starts_with("new_");
}

/// The first that is not plain and reads what both runs have; else the first that is not plain.
template <class Carriers, class IsShared>
BoundSymbolId firstReal(const Document& document, const std::vector<BoundSymbolId>& ops, const Carriers& carriers,
                        const IsShared& isShared) {
  BoundSymbolId first;
  for (const auto op : ops) {
    if (isPlain(document, op) || carriers.contains(op)) continue;
    if (!first) first = op;
    if (!isMade(document, op) && std::ranges::any_of(document.operands(op), isShared)) return op;
  }
  return first;
}

std::string numbersOf(const Measure& measure) {
  if (!measure.failure.empty()) return measure.failure;
  auto off = fmt::format("off by {:.3g} of {:.3g}", measure.deviation, measure.scale);
  if (!(measure.tolerance > 0)) return off;
  return off + fmt::format(", {:.2g} times what rounding explains", measure.ratio());
}

}  // namespace

OwnErrors::Regions OwnErrors::regionsOf(ValueId valueA, ValueId valueB) const {
  Regions regions;
  const auto walk = [](const Document& document, const IdVector<ValueId, BoundSymbolId>& makers, ValueId from,
                       const auto& isAlone, std::vector<BoundSymbolId>& found) {
    std::vector<ValueId> open{from};
    std::set<BoundSymbolId> met;
    while (!open.empty()) {
      const auto value = open.back();
      open.pop_back();
      const auto maker = value ? makers[value] : BoundSymbolId();
      if (!maker || !isAlone(maker) || !met.insert(maker).second) continue;
      for (const auto operand : document.operands(maker)) open.push_back(operand);
    }
    found.insert(found.end(), met.begin(), met.end());
  };
  walk(documentA_, paired_.makerA, valueA, [&](BoundSymbolId op) { return paired_.isAloneA(op); }, regions.a);
  walk(documentB_, paired_.makerB, valueB, [&](BoundSymbolId op) { return paired_.isAloneB(op); }, regions.b);
  if (const auto mixed = mixed_.find(valueB); mixed != mixed_.end()) {
    if (mixed->second.writerA) regions.a.push_back(mixed->second.writerA);
    if (mixed->second.writerB) regions.b.push_back(mixed->second.writerB);
  }
  return regions;
}

OwnErrors::Regions OwnErrors::regionsOf(BoundSymbolId opA, BoundSymbolId opB) const {
  Regions all;
  const auto here = documentA_.operands(opA), there = documentB_.operands(opB);
  for (std::size_t k = 0; k < std::max(here.size(), there.size()); ++k) {
    const auto x = k < here.size() ? here[k] : ValueId(), y = k < there.size() ? there[k] : ValueId();
    if (paired_.stands(x, y) && !mixed_.contains(y)) continue;
    auto one = regionsOf(x, y);
    all.a.insert(all.a.end(), one.a.begin(), one.a.end());
    all.b.insert(all.b.end(), one.b.begin(), one.b.end());
  }
  for (auto* ops : {&all.a, &all.b}) {
    const auto& place = ops == &all.a ? paired_.placeA : paired_.placeB;
    std::ranges::sort(*ops, {}, [&](BoundSymbolId op) { return place[op]; });
    ops->erase(std::unique(ops->begin(), ops->end()), ops->end());
  }
  return all;
}

void OwnErrors::blame(BoundSymbolId opA, BoundSymbolId opB, const Regions& regions, const Measure& measure,
                      const std::string& end) {
  Blame one;
  one.reader = opB;
  one.claim = {.by = Producer::run, .severity = Severity::fault, .measure = measure};
  auto& kind = one.claim.kind;
  const auto isShared = [](ValueId value, const auto& makers, const auto& place, const auto& partners) {
    return value && (!makers[value] || partners[place[makers[value]]] >= 0);
  };
  // A view of what both have is what both have.
  const auto through = [](const Document& document, const auto& makers, ValueId value) {
    while (value && makers[value] && isPlain(document, makers[value]) && !document.operands(makers[value]).empty())
      value = document.operands(makers[value])[0];
    return value;
  };
  const auto realA = firstReal(documentA_, regions.a, paired_.carriersA, [&](ValueId value) {
    return isShared(through(documentA_, paired_.makerA, value), paired_.makerA, paired_.placeA, paired_.answers);
  });
  const auto realB = firstReal(documentB_, regions.b, paired_.carriersB, [&](ValueId value) {
    return isShared(through(documentB_, paired_.makerB, value), paired_.makerB, paired_.placeB, paired_.partners);
  });
  if (realA && realB) {
    kind = "replaced";
    one.opA = realA;
    one.opB = realB;
  } else if (realB) {
    kind = isCast(documentB_, realB) ? "cast-inserted" : "inserted";
    one.opB = realB;
  } else if (realA) {
    kind = isCast(documentA_, realA) ? "cast-removed" : "removed";
    one.opA = realA;
  } else {
    for (const auto op : regions.b)  // the first that matches and yet reads or does something else
      if (const auto found = paired_.carriersB.find(op); found != paired_.carriersB.end()) {
        opA = found->second;
        opB = op;
        break;
      }
    one.opA = opA;
    one.opB = opB;
    auto& s = pairs_.signatures();
    const auto here = opA ? documentA_.operands(opA) : std::span<const ValueId>(),
               there = opB ? documentB_.operands(opB) : std::span<const ValueId>();
    const bool sameReads = std::ranges::equal(here, there, [&](ValueId x, ValueId y) { return paired_.stands(x, y); });
    if (!opA || !opB) kind = "other-value";
    else if (s.symbol(Side::left, opA) != s.symbol(Side::right, opB)) kind = "other-op";
    else if (s.call(Side::left, opA) != s.call(Side::right, opB)) kind = "arguments";
    else kind = sameReads ? "own-error" : "other-operand";
  }
  if (one.opB) {
    one.position = static_cast<double>(paired_.placeB[one.opB]);
  } else {  // before what follows it in the first
    auto i = one.opA ? paired_.placeA[one.opA] : static_cast<std::int64_t>(paired_.answers.size());
    while (i < std::ssize(paired_.answers) && paired_.answers[i] < 0) ++i;
    one.position = (i < std::ssize(paired_.answers) ? static_cast<double>(paired_.answers[i])
                                                    : static_cast<double>(paired_.partners.size())) -
                   0.5;
  }
  one.claim.op = one.opA;
  one.claim.line = one.opB ? codeLine(documentB_, one.opB) : one.opA ? codeLine(documentA_, one.opA) : "";
  one.claim.subject = one.opB   ? documentB_.text(documentB_.boundSymbol(one.opB).module)
                      : one.opA ? documentA_.text(documentA_.boundSymbol(one.opA).module)
                                : end;
  one.claim.sentence = sentenceOf(one, regions, end);
  add(std::move(one));
}

std::string OwnErrors::sentenceOf(const Blame& blame, const Regions& regions, const std::string& end) const {
  const auto& kind = blame.claim.kind;
  const auto numbers = numbersOf(*blame.claim.measure);
  const auto read = !end.empty()   ? end + " is " + numbers
                    : blame.reader ? shortNameOf(documentB_, blame.reader) + " that reads it is " + numbers
                                   : numbers;
  const auto lineA = blame.opA ? codeLine(documentA_, blame.opA) : std::string();
  const auto first = lineA.empty() || lineA == blame.claim.line ? std::string() : " (" + lineA + ")";
  if (kind == "inserted")
    return fmt::format("only the second runs {}: {}", namesOf(documentB_, regions.b, paired_.carriersB), read);
  if (kind == "removed")
    return fmt::format("only the first runs {}: {}", namesOf(documentA_, regions.a, paired_.carriersA), read);
  if (kind == "cast-inserted")
    return fmt::format("only the second has a {}: {}", castText(documentB_, blame.opB), read);
  if (kind == "cast-removed") return fmt::format("only the first has a {}: {}", castText(documentA_, blame.opA), read);
  if (kind == "replaced")
    return fmt::format("{} of the first{} is {} in the second: {}", namesOf(documentA_, regions.a, paired_.carriersA),
                       first, namesOf(documentB_, regions.b, paired_.carriersB), read);
  if (!blame.opA || !blame.opB) return end + " is " + numbers;
  const auto own = end.empty() ? numbers : end + " is " + numbers;
  if (kind == "other-op")
    return fmt::format("{} of the first{} is {} in the second: {}", shortNameOf(documentA_, blame.opA), first,
                       shortNameOf(documentB_, blame.opB), own);
  const auto name = shortNameOf(documentB_, blame.opB);
  const auto callA = printCall(documentA_, blame.opA), callB = printCall(documentB_, blame.opB);
  const auto after = [](std::string call) {
    if (const auto made = call.find(" = "); made != std::string::npos) call.erase(0, made + 3);
    constexpr std::string_view prefix = "torch.ops.aten.";
    return call.starts_with(prefix) ? call.substr(prefix.size()) : call;
  };
  if (kind == "arguments")
    return fmt::format("{} has other arguments, {} and not {}{}: {}", name, after(callB), after(callA), first, own);
  if (kind == "other-operand") return fmt::format("{} reads another value{}: {}", name, first, own);
  return fmt::format("{} by itself is {}{}", name, own, first);
}

/// One claim for a line: what else its ops do, and what their backward makes of it, follows from it.
void OwnErrors::add(Blame blame) {
  const auto originOf = [](const Document& document, BoundSymbolId op) {
    const auto origin = op ? document.boundSymbol(op).origin.op : BoundSymbolId();
    return origin != op ? origin : BoundSymbolId();
  };
  const auto fromA = originOf(documentA_, blame.opA), fromB = originOf(documentB_, blame.opB);
  const bool follows = (fromA && culpritsA_.contains(fromA)) || (fromB && culpritsB_.contains(fromB));
  if (blame.opA) culpritsA_.insert(blame.opA);
  if (blame.opB) culpritsB_.insert(blame.opB);
  const auto moduleOf = [&](const Blame& one) {
    return one.opB   ? documentB_.text(documentB_.boundSymbol(one.opB).module)
           : one.opA ? documentA_.text(documentA_.boundSymbol(one.opA).module)
                     : std::string_view();
  };
  for (auto& other : blames_) {
    const bool sameLine =
        !blame.claim.line.empty() && blame.claim.line == other.claim.line && moduleOf(blame) == moduleOf(other);
    if (!sameLine && !(follows && ((fromA && fromA == other.opA) || (fromB && fromB == other.opB)))) continue;
    const auto more = other.more + 1;
    if (blame.position < other.position) other = std::move(blame);
    other.more = more;
    return;
  }
  if (follows) return;
  blames_.push_back(std::move(blame));
}

void OwnErrors::judgeInputs() {
  struct Found {
    std::string name;
    bool isWeight;
    RunDifference difference;
    BoundSymbolId reader;
  };
  std::vector<Found> all;
  std::size_t others = 0;
  for (const auto& input : b_.computation().inputs) {
    const auto other = input.value ? pairs_.partner(Side::right, input.value) : ValueId();
    const auto mine = startB_.find(input.value), first = startA_.find(other);
    if (!other || mine == startB_.end() || first == startA_.end()) continue;
    ++judged_;
    const auto &x = first->second, &y = mine->second;
    const auto name = input.target.empty() ? "input " + input.name : input.target;
    if (x.is_meta() || y.is_meta()) continue;
    if (x.sizes() != y.sizes()) {
      if (others++ < 5)
        notes_.push_back(
            fmt::format("{} is {} in the first and {} in the second: the second's ops are judged on the "
                        "first's",
                        name, typeComment(metaOf(x)), typeComment(metaOf(y))));
      continue;
    }
    if (x.scalar_type() == y.scalar_type() && x.device() == y.device() && x.equal(y)) {
      atStart_[other] = 0;
      continue;
    }
    const auto found = differenceOf(x, y);
    atStart_[other] = found.relative;
    const bool isRounded = x.scalar_type() != y.scalar_type() && x.is_floating_point() && y.is_floating_point();
    if (found.relative == 0) continue;
    if (isRounded && found.note.empty()) {
      const auto floor = std::max(roundingFloor(toDType(x.scalar_type()), found.scale, 1),
                                  roundingFloor(toDType(y.scalar_type()), found.scale, 1));
      if (found.largest <= floor) continue;
    }
    BoundSymbolId reader;
    for (const auto op : b_.joint.ops)
      if (std::ranges::find(documentB_.operands(op), input.value) != documentB_.operands(op).end()) {
        reader = op;
        break;
      }
    all.push_back({name, input.kind == InputKind::parameter, found, reader});
  }
  const auto weights = static_cast<std::size_t>(std::ranges::count(all, true, &Found::isWeight));
  constexpr std::size_t most = 3;
  bool isTold = false;
  for (const auto& one : all) {
    if (one.isWeight && weights > most && std::exchange(isTold, true)) continue;
    Blame blame;
    blame.position = one.reader ? static_cast<double>(paired_.placeB[one.reader]) - 0.75 : -1;
    blame.claim = {.by = Producer::run,
                   .severity = Severity::fault,
                   .kind = one.isWeight ? "weights" : "input",
                   .subject = one.name};
    const bool isGroup = one.isWeight && weights > most;
    blame.claim.sentence =
        isGroup ? fmt::format("{} weights have other values as the runs begin, first {}", weights, one.name)
                : fmt::format("{} has other values as the runs begin: {}", one.name,
                              one.difference.note.empty()
                                  ? fmt::format("{:.3g} of {:.3g}", one.difference.largest, one.difference.scale)
                                  : one.difference.note);
    if (one.reader) {
      blame.claim.line = codeLine(documentB_, one.reader);
      blame.claim.sentence += "; read first by " + shortNameOf(documentB_, one.reader);
      blame.claim.op = pairs_.partner(Side::right, one.reader);
    }
    blames_.push_back(std::move(blame));
  }
}

void OwnErrors::judgeEnd(const RunPairing::End& end) {
  const auto valueA = end.a, valueB = end.b;
  if (!valueA || !valueB) {
    if (end.parameter.empty() || (!valueA && !valueB)) return;
    Blame one;
    one.position = static_cast<double>(paired_.partners.size());
    one.claim = {.by = Producer::run, .severity = Severity::fault, .kind = "no-gradient", .subject = end.parameter};
    one.claim.sentence = fmt::format("{} is in the {} only", end.name, valueA ? "first" : "second");
    // What stands in the way: the first op that the run without it has alone.
    for (std::size_t j = 0; valueA && j < paired_.partners.size(); ++j)
      if (const auto op = b_.joint.ops[j];
          paired_.partners[j] < 0 && documentB_.boundSymbol(op).origin.role != Role::gradient) {
        one.opB = op;
        one.position = static_cast<double>(j);
        one.claim.sentence += fmt::format("; only the second runs {}", shortNameOf(documentB_, op));
        one.claim.line = codeLine(documentB_, op);
        break;
      }
    return add(std::move(one));
  }
  ++judged_;
  const auto mixed = mixed_.find(valueB);
  const auto other = paired_.forced(valueB);
  if (mixed == mixed_.end() && paired_.stands(valueA, valueB)) return;
  const auto right = snapshots_.find(valueA), forcedTo = snapshots_.find(other);
  if (right == snapshots_.end() || (mixed == mixed_.end() && forcedTo == snapshots_.end())) return;
  const auto &x = right->second, &y = mixed != mixed_.end() ? mixed->second.tensor : forcedTo->second;
  if (!x.defined() || !y.defined() || (paired_.batchDiffers && x.sizes() != y.sizes())) return;
  const auto found = differenceOf(x, y);
  if (found.relative == 0) return;
  const auto regions = regionsOf(valueA, valueB);
  Measure measure{.deviation = found.largest, .tolerance = 0, .scale = found.scale, .failure = found.note};
  if (x.is_floating_point()) {
    const auto type = paired_.isCoarse() ? paired_.baseB : toDType(x.scalar_type());
    const auto steps = 1.0 + static_cast<double>(std::max(regions.a.size(), regions.b.size()));
    const auto coarse =
        std::max(roundingFloor(type, found.scale, 64), roundingFloor(toDType(x.scalar_type()), found.scale, 64));
    measure.tolerance = steps * coarse;
  }
  if (!measure.good()) blame(paired_.makerA[valueA], paired_.makerB[valueB], regions, measure, end.name);
}

void OwnErrors::drew(std::size_t position) { draws_.push_back(position); }

Report OwnErrors::report() {
  if (blames_.empty() && !draws_.empty()) {
    const auto op = b_.joint.ops[draws_.front()];
    Blame one;
    one.claim = {.by = Producer::run, .severity = Severity::fault, .kind = "draw"};
    one.claim.op = a_.joint.ops[paired_.partners[draws_.front()]];
    one.claim.line = codeLine(documentB_, op);
    one.claim.sentence = fmt::format("{} draws other random numbers", shortNameOf(documentB_, op));
    one.more = draws_.size() - 1;
    blames_.push_back(std::move(one));
  }
  std::ranges::stable_sort(blames_, {}, &Blame::position);
  if (!blames_.empty()) {
    const auto& first = blames_.front();
    origin_ = first.opA ? first.opA : first.reader ? pairs_.partner(Side::right, first.reader) : first.claim.op;
  }
  Report report{.unit = "op"};
  for (auto& one : blames_) {
    if (one.more > 0) one.claim.sentence += fmt::format("; {} more of this line or behind it", one.more);
    report.claims.push_back(std::move(one.claim));
  }
  report.judged = report.due = judged_;
  report.due += notJudged_.size();
  report.notJudged = std::move(notJudged_);
  report.notes = std::move(notes_);
  return report;
}

}  // namespace retrograd
