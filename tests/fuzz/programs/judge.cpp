#include "tests/fuzz/programs/judge.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace retrograd::fuzz {
namespace {

constexpr double perturbation = 1e-13;

struct Rounding {
  double relative, unit;  ///< of a tensor's largest element; one rounding
};

Rounding roundingOf(Precision precision) {
  switch (precision) {
    case Precision::f64: return {1e-9, 0x1p-53};
    case Precision::f32: return {1e-6, 0x1p-24};
    case Precision::f16: return {2e-3, 0x1p-11};
    case Precision::bf16: return {1e-2, 0x1p-8};
  }
  return {};
}

at::Tensor flat(const at::Tensor& tensor) {
  const auto real = tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()) : tensor;
  return real.to(at::kDouble).contiguous().view({-1});
}

double largestOf(const at::Tensor& tensor) {
  if (!tensor.defined() || !(tensor.is_floating_point() || tensor.is_complex())) return 0;
  const auto values = flat(tensor);
  double largest = 0;
  for (std::int64_t i = 0; i < values.numel(); ++i)
    if (const auto v = std::abs(static_cast<const double*>(values.const_data_ptr())[i]); std::isfinite(v))
      largest = std::max(largest, v);
  return largest;
}

/// Whether complex numbers occur.
bool usesComplex(const Program& program) {
  bool found = std::any_of(program.inputs.begin(), program.inputs.end(),
                           [](const Input& input) { return isComplex(input.dtype); });
  forEachCall(program, [&](const Call& call) {
    for (const char* word : {"complex", "fft", "polar"}) found |= call.op.find(word) != std::string::npos;
    for (const auto& arg : call.args)
      forEachArg(
          arg, [&](const Arg& a) { found |= a.kind == Arg::Kind::dtype && isComplex(static_cast<DType>(a.integer)); });
  });
  return found;
}

}  // namespace

Precision precisionOf(const Program& program) {
  auto precision = Precision::f64;
  const auto meet = [&](DType dtype) {
    const auto one = dtype == DType::bf16                         ? Precision::bf16
                     : dtype == DType::f16                        ? Precision::f16
                     : dtype == DType::f32 || dtype == DType::c64 ? Precision::f32
                                                                  : Precision::f64;
    precision = std::max(precision, one);
  };
  for (const auto& input : program.inputs) meet(input.dtype);
  forEachCall(program, [&](const Call& call) {
    for (const auto& arg : call.args)
      forEachArg(arg, [&](const Arg& a) {
        if (a.kind == Arg::Kind::dtype) meet(static_cast<DType>(a.integer));
      });
  });
  return precision;
}

Judge::Judge(const Program& program, const std::vector<at::Tensor>& inputs, const Cotangents& cotangents,
             const OracleOptions& options)
    : program_(program),
      inputs_(inputs),
      cotangents_(cotangents),
      options_(options),
      precision_(precisionOf(program)) {}

std::string Judge::compare(const Outcome& expected, const Outcome& actual, bool generator) {
  largest_ = 1;
  noisy_ = 0;
  infinite_ = false;
  for (const auto* gradients : {&expected.gradients, &expected.second})
    for (const auto& tensor : *gradients)
      infinite_ |= tensor.defined() && (tensor.is_floating_point() || tensor.is_complex()) &&
                   !at::isfinite(tensor).all().item().toBool();
  for (const auto* part : {&expected.outputs, &expected.gradients, &expected.second})
    for (const auto& tensor : *part) largest_ = std::max(largest_, largestOf(tensor));
  const auto inputName = [&](std::size_t i) {
    return i < program_.inputs.size() ? program_.inputs[i].name
                                      : "cotangent " + std::to_string(i - program_.inputs.size());
  };
  auto found = compareAll("output ", expected.outputs, actual.outputs, &Outcome::outputs,
                          [](std::size_t i) { return std::to_string(i); });
  if (found.empty())
    found = compareAll("gradient of ", expected.gradients, actual.gradients, &Outcome::gradients, inputName);
  if (found.empty()) found = compareAll("written ", expected.contents, actual.contents, &Outcome::contents, inputName);
  if (found.empty())
    found = compareAll("second gradient of ", expected.second, actual.second, &Outcome::second, inputName);
  if (found.empty() && generator && actual.generator.defined() && !at::equal(expected.generator, actual.generator))
    found = "the generator's state after the run";
  return found;
}

std::string Judge::compareAll(const std::string& what, const std::vector<at::Tensor>& expected,
                              const std::vector<at::Tensor>& actual, std::vector<at::Tensor> Outcome::* part,
                              const std::function<std::string(std::size_t)>& name) {
  if (expected.size() != actual.size())
    return fmt::format("{}: {} of them, eager has {}", what, actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (auto found = compareOne(expected[i], actual[i], part, i); !found.empty()) return what + name(i) + ": " + found;
  return {};
}

std::string Judge::compareOne(const at::Tensor& expected, const at::Tensor& actual,
                              std::vector<at::Tensor> Outcome::* part, std::size_t i) {
  // A second backward makes zeros where nothing flows, or None: both say the same. Eager multiplies its zeros by slopes
  // that may be infinite, which makes NaN.
  const auto isNothing = [](const at::Tensor& tensor) {
    return !tensor.defined() || tensor.nan_to_num(0, 0, 0).count_nonzero().item().toLong() == 0;
  };
  if (part == &Outcome::second && expected.defined() != actual.defined() && isNothing(expected) && isNothing(actual))
    return {};
  if (expected.defined() != actual.defined()) return expected.defined() ? "missing" : "should be None";
  if (!expected.defined()) return {};
  if (expected.scalar_type() != actual.scalar_type())
    return fmt::format("dtype {}, eager has {}", c10::toString(actual.scalar_type()),
                       c10::toString(expected.scalar_type()));
  if (expected.sizes() != actual.sizes())
    return fmt::format("shape {}, eager has {}", c10::str(actual.sizes()), c10::str(expected.sizes()));
  if (!expected.is_floating_point() && !expected.is_complex())
    return at::equal(expected, actual) || isNoise(expected, actual, part, i) ? "" : "other integers";
  const auto e = flat(expected), a = flat(actual);
  double largest = 0, worst = 0;
  std::int64_t at = 0;
  for (std::int64_t k = 0; k < e.numel(); ++k) {
    const double x = static_cast<const double*>(e.const_data_ptr())[k],
                 y = static_cast<const double*>(a.const_data_ptr())[k];
    if (!std::isfinite(x) || !std::isfinite(y)) {
      // Where nothing flows, ours is zero; see isNothing.
      const bool same = std::isnan(x) ? std::isnan(y) || (part == &Outcome::second && y == 0) : x == y;
      if (same) continue;
      if (isAllNoise(expected, part, i) || isInfiniteComplex(part)) return ++noisy_, "";
      return fmt::format("element {} is {}, eager has {}", k, y, x);
    }
    largest = std::max(largest, std::abs(x));
    if (std::abs(x - y) > worst) worst = std::abs(x - y), at = k;
  }
  const auto rounding = roundingOf(precision_);
  if (worst <= rounding.relative * largest + 64 * rounding.unit * largest_) return {};
  if (worst <= noise(expected, part, i)) return {};
  if (isAllNoise(expected, part, i)) return ++noisy_, "";
  return fmt::format("element {} is {:.17g}, eager has {:.17g}; off by {:.3g} of the largest {:.3g}", at,
                     static_cast<const double*>(a.const_data_ptr())[at],
                     static_cast<const double*>(e.const_data_ptr())[at], worst, largest);
}

Outcome Judge::perturbed(double by) {
  auto options = options_;
  options.perturbation = by;
  return runOracle(program_, inputs_, cotangents_, options);
}

/// Whether a tensor in float64 has no two digits that rounding leaves: the gradient of corrcoef, of rows whose variance
/// is rounding itself. Inputs that are moved once, twice and so on in the same direction give other numbers each time
/// then. Where they agree, and differ from what was not moved, something was decided by the movement (which of two
/// equal numbers is the largest), and that does not count as noise.
bool Judge::isAllNoise(const at::Tensor& expected, std::vector<at::Tensor> Outcome::* part, std::size_t i) {
  if (precision_ != Precision::f64) return false;
  try {
    for (double times = 1; moved_.size() < 4; ++times)
      moved_.push_back({perturbed(times * perturbation), perturbed(-times * perturbation)});
  } catch (const std::exception&) {
    return false;
  }
  for (std::size_t sign = 0; sign < 2; ++sign) {
    double apart = 0;
    for (const auto& once : moved_) {
      const auto &first = moved_[0][sign].*part, &other = once[sign].*part;
      if (first.size() <= i || other.size() <= i || !first[i].defined() || !other[i].defined() ||
          first[i].sizes() != other[i].sizes())
        return false;
      const auto a = flat(first[i]), b = flat(other[i]);
      for (std::int64_t n = 0; n < a.numel(); ++n) {
        const double x = static_cast<const double*>(a.const_data_ptr())[n],
                     y = static_cast<const double*>(b.const_data_ptr())[n];
        if (std::isfinite(x) && std::isfinite(y)) apart = std::max(apart, std::abs(x - y));
        else if (std::isfinite(x) != std::isfinite(y)) apart = std::numeric_limits<double>::infinity();
      }
    }
    if (apart <= 0.01 * largestOf(expected)) return false;
  }
  return true;
}

/// Whether the order of sums decides which gradients are finite. LibTorch's sum of complex numbers multiplies its right
/// operand by one, which makes NaN of 1 + inf i; which operand that is, the engine's order decides.
bool Judge::isInfiniteComplex(std::vector<at::Tensor> Outcome::* part) const {
  return infinite_ && (part == &Outcome::gradients || part == &Outcome::second) && usesComplex(program_);
}

/// Two runs with inputs moved, up and down: by 1e-13 in float64, by one step of a shorter dtype. Before these, in a
/// shorter dtype, one in float64.
const Outcome* Judge::reference() {
  if (asked_) return references_.empty() ? nullptr : references_.data();
  asked_ = true;
  try {
    auto options = options_;
    if (precision_ != Precision::f64) {
      options.inDouble = true;
      references_.push_back(runOracle(program_, inputs_, cotangents_, options));
    }
    const double step = precision_ == Precision::f64 ? perturbation : 2 * roundingOf(precision_).unit;
    for (const double by : {step, -step}) references_.push_back(perturbed(by));
  } catch (const std::exception&) {
    references_.clear();
  }
  return references_.empty() ? nullptr : references_.data();
}

/// Whether the integers that differ are ones that rounding changes in eager, too: the bits of a float, an index among
/// equals.
bool Judge::isNoise(const at::Tensor& expected, const at::Tensor& actual, std::vector<at::Tensor> Outcome::* part,
                    std::size_t i) {
  if (!reference()) return false;
  auto open = expected.ne(actual);
  for (const auto& one : references_)
    if ((one.*part).size() > i && (one.*part)[i].defined() && (one.*part)[i].sizes() == expected.sizes() &&
        (one.*part)[i].scalar_type() == expected.scalar_type())
      open = open.logical_and(expected.eq((one.*part)[i]));
  return !open.any().item().toBool();
}

double Judge::noise(const at::Tensor& expected, std::vector<at::Tensor> Outcome::* part, std::size_t i) {
  if (!reference()) return 0;
  double err = 0;
  for (std::size_t n = 0; n < references_.size(); ++n) {
    const auto& one = references_[n];
    // What eager errs on these very numbers may be small by luck: of a sum that cancels, a step of the inputs shows the
    // rest.
    const double times = precision_ == Precision::f64 ? 1 : n == 0 ? 4 : 2;
    if ((one.*part).size() <= i || !(one.*part)[i].defined() || (one.*part)[i].sizes() != expected.sizes()) return 0;
    const auto e = flat(expected), r = flat((one.*part)[i]);
    for (std::int64_t k = 0; k < e.numel(); ++k) {
      const auto difference = std::abs(static_cast<const double*>(e.const_data_ptr())[k] -
                                       static_cast<const double*>(r.const_data_ptr())[k]);
      if (std::isfinite(difference)) err = std::max(err, times * difference);
    }
  }
  if (precision_ != Precision::f64) return err;
  // Of 1e-13 in each input to roundings of 1e-16 in each op; what is off by more than a millionth is never noise.
  return std::min(err, 1e-6 * std::max(largestOf(expected), 1e-3 * largest_));
}

}  // namespace retrograd::fuzz
