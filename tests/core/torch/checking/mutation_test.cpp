// Does the judge see what is wrong? Each model runs once and is then held against its reference with one gradient
// spoiled.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>

#include "core/torch/checking/check.h"
#include "core/torch/checking/suite.h"
#include "core/torch/judging/compare.h"
#include "tests/support/report_text.h"
#include "tests/support/source_path.h"

namespace fs = std::filesystem;

namespace retrograd {
namespace {

constexpr double wrongBy = 0.02;
constexpr std::size_t gradientsTried = 4;

template <class Real, class Change>
void changeElements(std::byte* data, std::size_t bytes, Change&& change) {
  for (std::size_t i = 0; (i + 1) * sizeof(Real) <= bytes; ++i) {
    Real element;
    std::memcpy(&element, data + i * sizeof element, sizeof element);
    element = static_cast<Real>(change(i, static_cast<double>(element)));
    std::memcpy(data + i * sizeof element, &element, sizeof element);
  }
}

/// A copy with `change(position, element)` instead of each element; nullopt for a dtype that no reference here has.
template <class Change>
std::optional<TensorData> changed(const TensorData& tensor, Change&& change) {
  std::shared_ptr<std::byte[]> copy(new std::byte[std::max<std::size_t>(tensor.bytes, 1)]);
  std::memcpy(copy.get(), tensor.data, tensor.bytes);
  if (tensor.meta.dtype == DType::f32) changeElements<float>(copy.get(), tensor.bytes, change);
  else if (tensor.meta.dtype == DType::f64) changeElements<double>(copy.get(), tensor.bytes, change);
  else return std::nullopt;
  return TensorData{tensor.meta, copy.get(), tensor.bytes, copy};
}

double largest(const TensorData& tensor) {
  double most = 0;
  for (const double element : asDoubles(tensor)) most = std::max(most, std::abs(element));
  return most;
}

struct Spoiled {
  std::string what;
  std::optional<TensorData> tensor;  ///< none: removed
};

std::vector<Spoiled> spoil(const TensorData& tensor) {
  std::vector<Spoiled> all{{"removed", std::nullopt}};
  const auto most = largest(tensor);
  if (tensor.meta.elements() == 0 || !std::isfinite(most)) return all;
  const auto wrong = static_cast<std::size_t>(tensor.meta.elements() / 2);
  const auto add = [&](const char* what, auto&& change) {
    if (auto spoiled = changed(tensor, change); spoiled && difference(*spoiled, tensor).deviation > 0)
      all.push_back({what, std::move(spoiled)});
  };
  add("times 1.02", [](std::size_t, double x) { return x * (1 + wrongBy); });
  add("set to zero", [](std::size_t, double) { return 0.0; });
  add("one element wrong", [&](std::size_t i, double x) { return i == wrong ? x + wrongBy * most : x; });
  return all;
}

/// The gradients of a reference to spoil: those with the smallest elements, which a judge by the largest would not see,
/// and some others.
std::vector<std::pair<TensorMap Expected::*, std::string>> chosen(const Expected& expected) {
  std::vector<std::tuple<double, TensorMap Expected::*, std::string>> all;
  for (const auto map : {&Expected::inputGradients, &Expected::parameterGradients})
    for (const auto& [name, tensor] : expected.*map) all.emplace_back(largest(tensor), map, name);
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return std::get<0>(a) < std::get<0>(b); });
  std::vector<std::pair<TensorMap Expected::*, std::string>> some;
  const auto step = std::max<std::size_t>(1, all.size() / gradientsTried);
  for (std::size_t i = 0; i < all.size() && some.size() < gradientsTried; i += step)
    some.emplace_back(std::get<1>(all[i]), std::get<2>(all[i]));
  return some;
}

/// What became of one spoiled gradient.
enum class Seen { yes, tooNoisy, no };

Seen seen(const Report& report, Producer by, const std::string& name) {
  if (test::verdictOf(report) == Verdict::fail) return Seen::yes;
  const auto* claim = test::findClaim(report, by, name);
  if (claim && claim->measure->tooNoisy()) return Seen::tooNoisy;
  return Seen::no;
}

/// The run has no such gradient, and the reference zeros.
bool isNone(const Report& report, Producer by, const std::string& gradient) {
  const auto note = gradient + " is None, the " + std::string(name(by)) + " has zeros";
  return std::ranges::find(report.notes, note) != report.notes.end();
}

class Mutations : public testing::TestWithParam<SuiteCase> {};

// A gradient that is off by 2 %, zero, missing, or wrong in one element, is seen wherever the tensor's
// tolerance is below 1 %.
TEST_P(Mutations, AreSeen) {
  ModelCheck check(GetParam().model, GetParam().options);
  ASSERT_NE(check.reference(), nullptr);
  const auto& reference = *check.reference();
  const auto sound = check.report();
  ASSERT_EQ(test::verdictOf(sound), Verdict::pass) << test::textOf(sound);
  if (!GetParam().options.deterministic) GTEST_SKIP() << "compared by shape only: it depends on draws";
  std::size_t tried = 0, noisy = 0;
  const auto tryAll = [&](const Expected& expected, Producer by, auto&& with) {
    for (const auto& [map, name] : chosen(expected))
      for (auto& spoiled : spoil((expected.*map).at(name))) {
        auto copy = expected;
        if (spoiled.tensor) (copy.*map)[name] = *spoiled.tensor;
        else (copy.*map).erase(name);
        const auto full = (map == &Expected::inputGradients ? "grad.in." : "grad.p.") + name;
        if (!spoiled.tensor && isNone(sound, by, full)) continue;  // then nothing is missing
        const auto found = seen(check.against(with(std::move(copy))), by, full);
        EXPECT_NE(found, Seen::no) << full << " " << spoiled.what;
        ++tried;
        noisy += found == Seen::tooNoisy;
      }
  };
  tryAll(reference.expected, Producer::reference, [&](Expected copy) {
    auto other = reference;
    other.expected = std::move(copy);
    return other;
  });
  if (reference.inDouble)
    tryAll(*reference.inDouble, Producer::doubleReference, [&](Expected copy) {
      auto other = reference;
      other.inDouble = std::move(copy);
      return other;
    });
  RecordProperty("tried", static_cast<int>(tried));
  RecordProperty("too_noisy", static_cast<int>(noisy));
  EXPECT_LE(noisy, std::max<std::size_t>(6, tried / 4)) << noisy << " of " << tried << " are too noisy to be seen";
}

std::vector<SuiteCase> cases() {
  std::vector<SuiteCase> found;
  for (const char* folder : {"tests/data/models", "tests/data/dynamic", "../shared/cases/models",
                             "../shared/cases/models_2.9", "../shared/cases/ops"}) {
    const auto path = fs::path(sourcePath(folder));
    if (!fs::is_directory(path)) continue;
    for (auto& one : findCases(path.string()))
      if (!one.options.reference.empty()) found.push_back(std::move(one));
  }
  return found;
}

INSTANTIATE_TEST_SUITE_P(OnDisk, Mutations, testing::ValuesIn(cases()), [](const auto& info) {
  auto text = std::to_string(info.index) + "_" + info.param.name;
  std::replace_if(text.begin(), text.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return text;
});

}  // namespace
}  // namespace retrograd
