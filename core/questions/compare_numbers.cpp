#include "core/questions/compare_numbers.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace retrograd {
namespace {

/// Ops that PyTorch calls by two names for the same thing.
std::string_view canonical(std::string_view op) {
  if (op == "aten::_unsafe_view" || op == "aten::reshape" || op == "aten::_reshape_alias") return "aten::view";
  return op;
}

bool sameTypes(const std::vector<DebugModeTensor>& x, const std::vector<DebugModeTensor>& y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                    [](const DebugModeTensor& a, const DebugModeTensor& b) { return a.type == b.type; });
}

bool alike(const DebugModeCall& x, const DebugModeCall& y) {
  return canonical(x.op) == canonical(y.op) && sameTypes(x.outputs, y.outputs);
}

/// The call that made each tensor of a run, found by ids or, where there are none, by the norm: the last call before
/// whose output has it.
class Makers {
 public:
  explicit Makers(const DebugModeRun& run) : run_(run) {}

  std::optional<std::size_t> of(const DebugModeTensor& tensor, std::size_t before) const {
    for (std::size_t i = before; i-- > 0;)
      for (const auto& output : run_.calls[i].outputs) {
        if (tensor.id >= 0 ? output.id == tensor.id
                           : output.hasNorm && tensor.hasNorm && relativeDifference(output.norm, tensor.norm) == 0 &&
                                 elements(output.type) == elements(tensor.type))
          return i;
      }
    return std::nullopt;
  }

 private:
  /// Of "f32[2, 3]": a view has other sizes and as many elements.
  static double elements(std::string_view type) {
    double product = 1, number = 0;
    bool digits = false;
    for (std::size_t i = type.find('['); i < type.size(); ++i) {
      if (type[i] >= '0' && type[i] <= '9') number = number * 10 + (type[i] - '0'), digits = true;
      else if (digits) product *= number, number = 0, digits = false;
    }
    return product;
  }

  const DebugModeRun& run_;
};

/// Pairs calls by walking both runs, looking a little ahead where they diverge.
class Pairing {
 public:
  Pairing(const DebugModeRun& a, const DebugModeRun& b) : a_(a.calls), b_(b.calls) {}

  std::vector<PairedCalls> run() {
    std::size_t i = 0, j = 0;
    while (i < a_.size() && j < b_.size()) {
      if (alike(a_[i], b_[j])) {
        rows_.push_back({i++, j++});
        continue;
      }
      const auto [skipA, skipB] = nextMeeting(i, j);
      for (std::size_t n = 0; n < skipA; ++n) rows_.push_back({i++, std::nullopt});
      for (std::size_t n = 0; n < skipB; ++n) rows_.push_back({std::nullopt, j++});
    }
    while (i < a_.size()) rows_.push_back({i++, std::nullopt});
    while (j < b_.size()) rows_.push_back({std::nullopt, j++});
    return std::move(rows_);
  }

 private:
  /// How many calls to leave out on each side until several in a row are alike; where nothing near is, one on each.
  std::pair<std::size_t, std::size_t> nextMeeting(std::size_t i, std::size_t j) const {
    constexpr std::size_t reach = 96;
    for (std::size_t sum = 1; sum <= reach; ++sum)
      for (std::size_t skipA = 0; skipA <= sum; ++skipA)
        if (meets(i + skipA, j + (sum - skipA))) return {skipA, sum - skipA};
    return {i < a_.size() ? 1 : 0, j < b_.size() ? 1 : 0};
  }
  bool meets(std::size_t i, std::size_t j) const {
    constexpr std::size_t inARow = 2;
    for (std::size_t n = 0; n < inARow; ++n) {
      if (i + n >= a_.size() || j + n >= b_.size()) return n > 0;
      if (!alike(a_[i + n], b_[j + n])) return false;
    }
    return true;
  }

  const std::vector<DebugModeCall>&a_, &b_;
  std::vector<PairedCalls> rows_;
};

double differenceOf(const std::vector<DebugModeTensor>& x, const std::vector<DebugModeTensor>& y, bool& compared) {
  double largest = 0;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (!x[i].hasNorm || !y[i].hasNorm) continue;
    compared = true;
    largest = std::max(largest, relativeDifference(x[i].norm, y[i].norm));
  }
  return largest;
}

bool isPaired(const std::vector<PairedCalls>& rows, std::optional<std::size_t> PairedCalls::* side, std::size_t call) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const PairedCalls& row) { return row.*side == call && row.a && row.b; });
}

/// The input that differs: by its norms, or because the other run made it with an op of its own.
std::optional<std::size_t> differingInput(const DebugModeRun& a, const DebugModeRun& b,
                                          const std::vector<PairedCalls>& rows, const NumberDifference& difference,
                                          double tolerance) {
  const auto &x = a.calls[difference.a].inputs, &y = b.calls[difference.b].inputs;
  const auto both = std::min(x.size(), y.size());
  for (std::size_t i = 0; i < both; ++i)
    if (x[i].hasNorm && y[i].hasNorm && relativeDifference(x[i].norm, y[i].norm) > tolerance) return i;
  for (std::size_t i = 0; i < both; ++i) {
    if ((x[i].hasNorm && y[i].hasNorm) || y[i].id < 0) continue;
    const auto maker = Makers(b).of(y[i], difference.b);
    if (maker && !isPaired(rows, &PairedCalls::b, *maker)) return i;
  }
  return std::nullopt;
}

NumberDifference causeOf(const DebugModeRun& a, const DebugModeRun& b, const std::vector<PairedCalls>& rows,
                         std::size_t row, double tolerance) {
  NumberDifference result;
  result.row = row;
  result.a = *rows[row].a;
  result.b = *rows[row].b;
  result.input = differingInput(a, b, rows, result, tolerance);
  if (!result.input) return result;
  result.madeInA = Makers(a).of(a.calls[result.a].inputs[*result.input], result.a);
  result.madeInB = Makers(b).of(b.calls[result.b].inputs[*result.input], result.b);
  result.aloneInA = result.madeInA && !isPaired(rows, &PairedCalls::a, *result.madeInA);
  result.aloneInB = result.madeInB && !isPaired(rows, &PairedCalls::b, *result.madeInB);
  return result;
}

}  // namespace

double relativeDifference(double x, double y) {
  if (x == y || (std::isnan(x) && std::isnan(y))) return 0;
  if (!std::isfinite(x) || !std::isfinite(y)) return std::numeric_limits<double>::infinity();
  return std::abs(x - y) / std::max(std::abs(x), std::abs(y));
}

NumberComparison compareNumbers(const DebugModeRun& a, const DebugModeRun& b, double tolerance) {
  if (a.hashes || b.hashes) tolerance = 0;
  NumberComparison result;
  result.rows = Pairing(a, b).run();
  for (std::size_t i = 0; i < result.rows.size(); ++i) {
    auto& row = result.rows[i];
    if (!row.b) ++result.onlyInA;
    if (!row.a) ++result.onlyInB;
    if (!row.a || !row.b) continue;
    row.difference = differenceOf(a.calls[*row.a].outputs, b.calls[*row.b].outputs, row.compared);
    if (!row.compared) continue;
    ++result.compared;
    result.largest = std::max(result.largest, row.difference);
    if (row.difference > tolerance && !result.first) result.first = causeOf(a, b, result.rows, i, tolerance);
  }
  return result;
}

}  // namespace retrograd
