#include "core/torch/experiments/compare_path.h"

#include <algorithm>
#include <cmath>

#include "core/trace/effects.h"

namespace retrograd {
namespace {

/// By value of the first: its row, or none.
IdVector<ValueId, std::optional<std::size_t>> rowsOf(const RunComparison& comparison, const Document& document) {
  IdVector<ValueId, std::optional<std::size_t>> rows(document.valueCount());
  for (std::size_t i = 0; i < comparison.rows.size(); ++i) rows[comparison.rows[i].valueA] = i;
  return rows;
}

/// The value that the op's operand is a view or a cast of, behind ops that the second alone has.
ValueId behindCasts(const RunPairing& pairing, ValueId value) {
  while (value) {
    const auto maker = pairing.makerB[value];
    if (!maker || !pairing.isAloneB(maker)) break;
    const bool handsOn = isPlain(pairing.documentB, maker) || isCast(pairing.documentB, maker);
    const auto operands = pairing.documentB.operands(maker);
    value = handsOn && !operands.empty() ? operands[0] : ValueId();
  }
  return value;
}

}  // namespace

void addFigures(RunComparison& comparison, const std::vector<std::size_t>& positions, const OwnErrors& own,
                const Analysis& b) {
  const auto& pairing = own.pairing();
  const auto rows = rowsOf(comparison, pairing.documentA);
  const auto cameIn = [&](BoundSymbolId op) -> std::optional<double> {
    double most = 0;
    for (const auto operand : pairing.documentB.operands(op)) {
      if (!operand || !pairing.documentB.isTensor(operand)) continue;
      const auto value = pairing.forced(behindCasts(pairing, operand));
      if (!value) return {};
      const auto one = rows[value] ? std::optional(comparison.rows[*rows[value]].relative) : own.atStart(value);
      if (one) most = std::max(most, *one);
    }
    return most;
  };
  for (std::size_t i = 0; i < comparison.rows.size(); ++i) {
    auto& row = comparison.rows[i];
    const auto& figures = own.figures(positions[i]);
    row.inherited = cameIn(b.joint.ops[positions[i]]);
    row.own = figures.own;
    row.budget = figures.budget;
    row.enlarged = figures.enlarged;
    if (row.enlarged || !row.inherited || *row.inherited == 0 || !std::isfinite(row.relative)) continue;
    if (!isDifferentiable(pairing.documentA.meta(row.valueA).dtype)) continue;
    const auto digits = std::min(digitsOf(pairing.documentA.meta(row.valueA).dtype),
                                 digitsOf(pairing.documentB.meta(row.valueB).dtype));
    // Less than a rounding that comes in is covered by those of the op itself.
    row.enlarged = row.relative / std::max(*row.inherited, std::ldexp(1.0, 1 - digits));
  }
}

ErrorPath pathOf(const RunComparison& comparison, const OwnErrors& own, const Analysis& a, double tolerance) {
  const auto& pairing = own.pairing();
  const auto& document = *a.document;
  const auto rows = rowsOf(comparison, document);
  const auto relative = [&](ValueId value) {
    return value && rows[value] ? comparison.rows[*rows[value]].relative : -1;
  };
  const auto origin = own.origin();
  // What the op to blame has a part in.
  IdVector<ValueId, char> reached(document.valueCount(), origin ? 0 : 1);
  const auto isReached = [&](ValueId value) { return value && reached[value] != 0; };
  for (const auto op : a.joint.ops) {
    if (op != origin && !std::ranges::any_of(document.operands(op), isReached)) continue;
    for (const auto output : document.outputs(op))
      if (output) reached[output] = 1;
    for (const auto written : writtenOperands(document, op)) reached[written] = 1;
  }
  ErrorPath path;
  ValueId end;
  const auto take = [&](ValueId value, const std::string& name) {
    if (end || !isReached(value) || !(relative(value) > (origin ? 0 : tolerance))) return;
    end = value;
    path.end = name;
  };
  for (const auto& one : pairing.ends)
    if (one.parameter.empty()) take(one.a, one.name);
  for (const auto& one : pairing.ends) take(one.a, one.name);
  if (!end && comparison.firstDivergence && !origin)
    take(comparison.rows[*comparison.firstDivergence].valueA, "the first value that differs");
  for (auto value = end; value;) {
    if (rows[value]) path.rows.push_back(*rows[value]);
    const auto maker = pairing.makerA[value];
    if (!maker || maker == origin) break;
    ValueId next;
    for (const auto operand : document.operands(maker))
      if (isReached(operand) && pairing.makerA[operand] && (!next || relative(operand) > relative(next)))
        next = operand;
    if (!origin && next && !(relative(next) > 0)) break;
    value = next;
  }
  std::ranges::reverse(path.rows);
  for (const auto row : path.rows) {
    const auto enlarged = comparison.rows[row].enlarged.value_or(0);
    if (enlarged >= 10 && (!path.amplifier || enlarged > *comparison.rows[*path.amplifier].enlarged))
      path.amplifier = row;
  }
  return path;
}

}  // namespace retrograd
