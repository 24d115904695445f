#include "core/base/near_names.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace retrograd {
namespace {

constexpr std::size_t mostLetters = 64, mostNames = 3;

/// Letters to insert, remove, replace or swap with the next one (optimal string alignment).
std::size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    next[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      next[j + 1] = std::min({row[j + 1] + 1, next[j] + 1, row[j] + (a[i] == b[j] ? 0 : 1)});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
        next[j + 1] = std::min(next[j + 1], before[j - 1] + 1);
    }
    before = std::exchange(row, next);
  }
  return row.back();
}

}  // namespace

std::vector<std::string> nearNames(std::string_view wanted, const std::vector<std::string>& known) {
  wanted = wanted.substr(0, mostLetters);
  if (wanted.empty()) return {};
  const auto most = std::max<std::size_t>(1, (wanted.size() + 1) / 3);
  std::vector<std::pair<std::size_t, std::string_view>> ranked;
  for (const std::string_view name : known) {
    const bool isPart = wanted.size() >= 3 && name.find(wanted) != std::string_view::npos;
    const auto longer = name.size() > wanted.size() ? name.size() - wanted.size() : wanted.size() - name.size();
    if (!isPart && longer > most) continue;
    const auto distance = editDistance(wanted, name.substr(0, 2 * mostLetters));
    if (distance <= most) ranked.emplace_back(distance, name);
    else if (isPart) ranked.emplace_back(most + longer, name);
  }
  std::sort(ranked.begin(), ranked.end());
  ranked.erase(std::unique(ranked.begin(), ranked.end()), ranked.end());
  std::vector<std::string> near;
  for (std::size_t i = 0; i < std::min(ranked.size(), mostNames); ++i) near.emplace_back(ranked[i].second);
  return near;
}

std::string didYouMean(std::string_view wanted, const std::vector<std::string>& known) {
  const auto near = nearNames(wanted, known);
  std::string text;
  for (std::size_t i = 0; i < near.size(); ++i)
    text += (i == 0 ? "; did you mean '" : i + 1 == near.size() ? "' or '" : "', '") + near[i];
  return text.empty() ? text : text + "'?";
}

}  // namespace retrograd
