#include "core/derivation/size_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace retrograd {
namespace {

__extension__ typedef __int128 Wide;  // products of numbers up to `largest` and of their differences fit

constexpr int highestDegree = 3;
constexpr std::size_t mostFactors = 12;
constexpr std::int64_t highestDivisor = 64;
constexpr std::int64_t largest = std::int64_t{1} << 40;
constexpr int strictTries = 256, tries = 1024;
constexpr std::size_t mostTold = 32;  // symbols; among more of them some are alike
constexpr std::int64_t smallest = 2;  // 0 and 1 are sizes of their own kind to LibTorch: they broadcast and vanish

/// A name, or one call: what binds tighter than any operator.
bool bindsTightly(std::string_view text) {
  const auto name =
      std::min(text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"), text.size());
  if (name == text.size()) return true;
  if (name == 0 || text[name] != '(') return false;
  int depth = 0;
  for (std::size_t i = name; i < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth == 0) return i + 1 == text.size();
  }
  return false;
}

bool isConstant(const std::vector<std::int64_t>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [&](std::int64_t n) { return n == numbers.front(); });
}

std::string times(std::int64_t factor, const std::string& text, bool isAtom) {
  if (factor == 1) return text;
  std::string product = factor == -1 ? std::string("-") : std::to_string(factor);
  if (factor != -1) product += '*';
  return product.append(isAtom ? "" : "(").append(text).append(isAtom ? "" : ")");
}

std::string plus(std::string sum, const std::string& term) {
  const bool negative = term.starts_with('-');
  sum.append(negative ? " - " : " + ").append(term, negative ? 1 : 0);
  return sum;
}

std::string plus(std::string sum, std::int64_t constant) {
  return constant == 0 ? sum : plus(std::move(sum), std::to_string(constant));
}

}  // namespace

SizeFit::SizeFit(const std::vector<std::string>& symbols, std::vector<SizeBindings> points)
    : points_(std::move(points)) {
  for (const auto& symbol : symbols) know(symbol);
}

void SizeFit::know(const std::string& expression) {
  const auto parsed = SizeExpression::parse(expression);
  if (!parsed) return;
  Term term;
  for (const auto& point : points_) {
    const auto number = parsed->evaluate(point);
    if (!number || *number > largest || *number < -largest) return;
    term.at.push_back(*number);
  }
  if (isConstant(term.at) || known_.contains(term.at)) return;
  known_.emplace(term.at, expression);
  term.text = expression;
  term.isAtom = bindsTightly(expression);
  terms_.push_back(std::move(term));
  products_.clear();
}

/// Of the known terms those that are not multiples of products of the ones before them, and their products.
void SizeFit::makeProducts() {
  if (!products_.empty()) return;
  std::vector<Term> factors;
  for (const auto& term : terms_) {
    if (factors.size() == mostFactors) break;
    if (asMultiple(term.at, 1)) continue;
    factors.push_back(term);
    products_ = productsOf(factors);
  }
}

std::vector<SizeFit::Term> SizeFit::productsOf(const std::vector<Term>& factors) const {
  std::vector<Term> products = factors;
  std::vector<std::size_t> lastFactor(factors.size());
  std::iota(lastFactor.begin(), lastFactor.end(), std::size_t{0});
  const auto wrapped = [](const Term& t) { return t.isAtom ? t.text : "(" + t.text + ")"; };
  for (std::size_t i = 0; i < products.size() && products[i].degree < highestDegree; ++i)
    for (auto f = lastFactor[i]; f < factors.size(); ++f) {
      Term product = products[i];
      bool fits = true;
      for (std::size_t p = 0; p < points_.size(); ++p)
        fits &= !__builtin_mul_overflow(product.at[p], factors[f].at[p], &product.at[p]) && product.at[p] < largest &&
                product.at[p] > -largest;
      if (!fits) continue;
      product.text = wrapped(products[i]) + "*" + wrapped(factors[f]);
      product.isAtom = true;  // it only ever is in further products and sums
      ++product.degree;
      products.push_back(std::move(product));
      lastFactor.push_back(f);
    }
  return products;
}

std::optional<std::string> SizeFit::expressionOf(const std::vector<std::int64_t>& numbers) {
  if (isConstant(numbers)) return std::string();
  const auto [it, isNew] = known_.try_emplace(numbers);
  if (isNew) it->second = search(numbers);
  return it->second;
}

std::optional<std::string> SizeFit::realExpressionOf(const std::vector<double>& numbers) {
  constexpr double numerators = 16, limit = 1e12;
  const auto wholes = [&](auto&& wholeOf) {
    Numbers found;
    for (const auto number : numbers) {
      const double whole = std::nearbyint(wholeOf(number));
      if (!(std::abs(whole) < limit)) return Numbers();
      found.push_back(static_cast<std::int64_t>(whole));
    }
    return found;
  };
  const auto same = [&](const Numbers& found, auto&& back) {
    for (std::size_t i = 0; i < found.size(); ++i)
      if (back(static_cast<double>(found[i])) != numbers[i]) return false;
    return !found.empty();
  };
  if (const auto found = wholes([](double d) { return d; }); same(found, [](double d) { return d; }))
    return expressionOf(found);
  for (double numerator = 1; numerator <= numerators; ++numerator) {
    const auto over = [&](double d) { return numerator / d; };
    const auto found = wholes(over);
    if (!same(found, over)) continue;
    if (auto divisor = expressionOf(found); divisor && !divisor->empty())
      return fmt::format(fmt::runtime(bindsTightly(*divisor) ? "{}/{}" : "{}/({})"), numerator, *divisor);
  }
  return std::nullopt;
}

std::optional<std::string> SizeFit::search(const Numbers& numbers) {
  if (std::any_of(numbers.begin(), numbers.end(), [](std::int64_t n) { return n > largest || n < -largest; }))
    return std::nullopt;
  makeProducts();
  const auto points = points_.size();
  std::optional<std::string> found;
  if (points >= 3) found = asMultiple(numbers, 1);
  if (!found && points >= 4) found = asLine(numbers);
  if (!found && points >= 4) found = asMultiple(numbers, highestDivisor);
  if (!found && points >= 5) found = asPlane(numbers);
  return found;
}

/// a * P, or a * P // b where that leaves no remainder at any point.
std::optional<std::string> SizeFit::asMultiple(const Numbers& numbers, std::int64_t largestDivisor) const {
  for (const auto& product : products_) {
    if (product.at[0] == 0 || numbers[0] == 0) continue;
    const auto common = std::gcd(numbers[0], product.at[0]) * (product.at[0] < 0 ? -1 : 1);
    const auto factor = numbers[0] / common, divisor = product.at[0] / common;
    bool holds = divisor <= largestDivisor;
    for (std::size_t p = 1; p < numbers.size() && holds; ++p)
      holds = static_cast<Wide>(numbers[p]) * divisor == static_cast<Wide>(factor) * product.at[p];
    if (!holds) continue;
    if (divisor == 1) return times(factor, product.text, product.isAtom);
    return fmt::format(
        "{}//{}",
        factor == 1 && !product.isAtom ? "(" + product.text + ")" : times(factor, product.text, product.isAtom),
        divisor);
  }
  return std::nullopt;
}

/// a * P + b
std::optional<std::string> SizeFit::asLine(const Numbers& numbers) const {
  for (const auto& product : products_) {
    std::size_t other = 1;
    while (other < numbers.size() && product.at[other] == product.at[0]) ++other;
    if (other == numbers.size()) continue;
    const auto run = product.at[other] - product.at[0], rise = numbers[other] - numbers[0];
    if (rise == 0 || rise % run != 0) continue;
    const Wide slope = rise / run, rest = numbers[0] - slope * product.at[0];
    bool holds = rest > -largest && rest < largest;
    for (std::size_t p = 0; p < numbers.size() && holds; ++p) holds = numbers[p] == slope * product.at[p] + rest;
    if (holds)
      return plus(times(static_cast<std::int64_t>(slope), product.text, product.isAtom),
                  static_cast<std::int64_t>(rest));
  }
  return std::nullopt;
}

/// a * P + b * Q + c, the factors' degrees at most 2. Three points give a, b and c by Cramer's rule.
std::optional<std::string> SizeFit::asPlane(const Numbers& numbers) const {
  for (std::size_t i = 0; i < products_.size() && products_[i].degree < highestDegree; ++i)
    for (std::size_t j = i + 1; j < products_.size() && products_[j].degree < highestDegree; ++j) {
      const auto &p = products_[i].at, &q = products_[j].at;
      const Wide p1 = p[1] - p[0], p2 = p[2] - p[0], q1 = q[1] - q[0], q2 = q[2] - q[0], n1 = numbers[1] - numbers[0],
                 n2 = numbers[2] - numbers[0];
      const Wide determinant = p1 * q2 - p2 * q1;
      if (determinant == 0) continue;
      const Wide a = (n1 * q2 - n2 * q1) / determinant, b = (p1 * n2 - p2 * n1) / determinant;
      if (a == 0 || b == 0 || a > largest || a < -largest || b > largest || b < -largest) continue;
      const Wide c = numbers[0] - a * p[0] - b * q[0];
      bool holds = c > -largest && c < largest;
      for (std::size_t k = 0; k < numbers.size() && holds; ++k) holds = numbers[k] == a * p[k] + b * q[k] + c;
      if (!holds) continue;
      const auto first = times(static_cast<std::int64_t>(a), products_[i].text, products_[i].isAtom);
      const auto second = times(static_cast<std::int64_t>(b), products_[j].text, products_[j].isAtom);
      return plus(a < 0 && b > 0 ? plus(second, first) : plus(first, second), static_cast<std::int64_t>(c));
    }
  return std::nullopt;
}

SizePoints::SizePoints(const ModelFile& file)
    : symbols_(file.document->sizeSymbols()),
      conditions_(sizeConditions(file)),
      hints_(file.document->sizeHints()),
      seen_{hints_} {
  const auto& document = *file.document;
  for (auto& branch : branchConditions(document)) conditions_.push_back(std::move(branch.condition));
  const auto add = [&](std::string_view text) {
    auto expression = SizeExpression::parse(text);
    if (text.empty() || !expression) return;
    for (const auto& name : expression->symbols())
      if (hints_.contains(name) && std::find(names_.begin(), names_.end(), name) == names_.end())
        names_.push_back(name);
    inputSizes_.push_back(*std::move(expression));
  };
  for (const auto& input : file.computation.inputs) {
    if (input.kind != InputKind::user || !input.value) continue;
    const auto meta = document.value(input.value).meta;
    if (!meta) add(document.sizeExpression(input.value));
    else
      for (const auto& symbol : document.meta(meta).symbols) add(symbol);
  }
}

/// splitmix64: a generator of our own, as points must not depend on the standard library's.
std::int64_t SizePoints::draw(const SizeSymbol& symbol, std::int64_t window) {
  state_ += 0x9e3779b97f4a7c15;
  auto bits = state_;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  bits ^= bits >> 31;
  const auto hint = std::min(symbol.hint, largest);
  if (multiples_) return hint * static_cast<std::int64_t>(2 + bits % 15);
  const auto least = std::max(symbol.least, std::min(smallest, symbol.greatest.value_or(smallest)));
  const auto greatest = std::min(symbol.greatest.value_or(hint + window), std::max(hint, least) + window);
  return greatest <= least ? least
                           : least + static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(greatest - least + 1));
}

bool SizePoints::isNew(const SizeBindings& point, bool strictly) const {
  strictly &= names_.size() <= mostTold;
  for (const auto& earlier : seen_) {
    if (earlier == point) return false;
    for (const auto& name : names_)
      if (strictly && earlier.find(name)->second == point.find(name)->second) return false;
  }
  for (std::size_t i = 0; strictly && i < names_.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (point.find(names_[i])->second == point.find(names_[j])->second) return false;
  return true;
}

bool SizePoints::isAllowed(const SizeBindings& point) const {
  for (const auto& symbol : symbols_) {
    const auto value = point.find(symbol.name)->second;
    if (value < symbol.least || (symbol.greatest && value > *symbol.greatest)) return false;
  }
  const auto isSize = [&](const SizeExpression& size) { return size.evaluate(point).value_or(0) >= 1; };
  const auto holds = [&](const SizeCondition& condition) { return condition.holds.evaluate(point).value_or(0) != 0; };
  return std::all_of(inputSizes_.begin(), inputSizes_.end(), isSize) &&
         std::all_of(conditions_.begin(), conditions_.end(), holds);
}

std::optional<SizeBindings> SizePoints::next() {
  for (int i = 0; i < tries; ++i) {
    SizeBindings point = hints_;
    const std::int64_t window = 16 << (i * 6 / tries);  // near the hints first: ops without a shape rule run for real
    for (const auto& symbol : symbols_)
      if (std::find(names_.begin(), names_.end(), symbol.name) != names_.end())
        point[symbol.name] = draw(symbol, window);
    if (!isNew(point, i < strictTries) || !isAllowed(point)) continue;
    seen_.push_back(point);
    return point;
  }
  return std::nullopt;
}

}  // namespace retrograd
