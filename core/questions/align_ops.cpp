#include "core/questions/align_ops.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

namespace retrograd {
namespace {

using Origin = std::tuple<std::string, Role, int, int>;  // computation op, role, operand, output

/// Positions in the joint, by what the ops come from.
std::map<Origin, std::vector<std::size_t>> byOrigin(const Analysis& analysis) {
  const auto& document = *analysis.document;
  std::map<BoundSymbolId, std::string> names;
  std::map<std::string, int> sameName;
  for (auto op : analysis.computation().trace.ops) {
    const std::string name(document.text(document.boundSymbol(op).name));
    names[op] = name + "/" + std::to_string(sameName[name]++);
  }
  std::map<Origin, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < analysis.joint.ops.size(); ++i) {
    const auto& origin = document.boundSymbol(analysis.joint.ops[i]).origin;
    std::string base;
    if (origin.op) {
      const auto known = names.find(origin.op);
      // Ops in the body of a higher-order op, and ops without a place of their own, by symbol.
      base = known != names.end()
                 ? known->second
                 : std::string(document.text(document.boundSymbol(origin.op).name)) + "?" + document.opName(origin.op);
    }
    groups[{base, origin.role, origin.operand, origin.output}].push_back(i);
  }
  return groups;
}

/// The op's name, the same for a write in place.
std::string_view kindOf(const Document& document, BoundSymbolId op) {
  const std::string_view name = document.symbol(op).name;
  const auto overload = name.rfind('.');
  const auto end = overload == std::string_view::npos ? name.size() : overload;
  return name.substr(0, end > 0 && name[end - 1] == '_' ? end - 1 : end);
}

class Pairing {
 public:
  Pairing(const Analysis& a, const Analysis& b) : a_(a), b_(b), result_(a.joint.ops.size()) {}

  std::vector<std::optional<std::size_t>> run() {
    const auto others = byOrigin(b_);
    for (const auto& [origin, mine] : byOrigin(a_))
      if (const auto found = others.find(origin); found != others.end()) pair(mine, found->second);
    return std::move(result_);
  }

 private:
  /// What pairing these two is worth: nothing for ops of different kinds.
  int worth(std::size_t i, std::size_t k) const {
    const auto opA = a_.joint.ops[i], opB = b_.joint.ops[k];
    const auto& documentA = *a_.document;
    const auto& documentB = *b_.document;
    if (kindOf(documentA, opA) != kindOf(documentB, opB)) return 0;
    const auto outputsA = documentA.outputs(opA), outputsB = documentB.outputs(opB);
    const auto sizes = [](const Document& document, ValueId value) {
      return value && document.isTensor(value) ? document.meta(value).sizes : std::vector<std::int64_t>();
    };
    const bool same = std::equal(outputsA.begin(), outputsA.end(), outputsB.begin(), outputsB.end(),
                                 [&](ValueId x, ValueId y) { return sizes(documentA, x) == sizes(documentB, y); });
    return same ? 3 : 2;
  }

  /// The common subsequence worth most. Groups that are too large for it, such as loops of thousands of iterations, go
  /// one by one.
  void pair(const std::vector<std::size_t>& mine, const std::vector<std::size_t>& theirs) {
    constexpr std::size_t most = 1 << 20;
    const auto n = mine.size(), m = theirs.size();
    if (n * m > most) {
      for (std::size_t i = 0; i < std::min(n, m); ++i)
        if (worth(mine[i], theirs[i]) > 0) result_[mine[i]] = theirs[i];
      return;
    }
    std::vector<int> best((n + 1) * (m + 1), 0);  // of the parts from (i, k) on
    const auto at = [&](std::size_t i, std::size_t k) -> int& { return best[i * (m + 1) + k]; };
    for (auto i = n; i-- > 0;)
      for (auto k = m; k-- > 0;) {
        const auto together = worth(mine[i], theirs[k]);
        at(i, k) = std::max({at(i + 1, k), at(i, k + 1), together > 0 ? together + at(i + 1, k + 1) : 0});
      }
    for (std::size_t i = 0, k = 0; i < n && k < m;) {
      const auto together = worth(mine[i], theirs[k]);
      if (together > 0 && at(i, k) == together + at(i + 1, k + 1)) result_[mine[i++]] = theirs[k++];
      else if (at(i, k) == at(i + 1, k)) ++i;
      else ++k;
    }
  }

  const Analysis& a_;
  const Analysis& b_;
  std::vector<std::optional<std::size_t>> result_;
};

}  // namespace

std::vector<std::optional<std::size_t>> alignOps(const Analysis& a, const Analysis& b) { return Pairing(a, b).run(); }

}  // namespace retrograd
