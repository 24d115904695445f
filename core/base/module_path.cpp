#include "core/base/module_path.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/base/error.h"
#include "core/base/near_names.h"
#include "core/base/number_text.h"

namespace retrograd {
namespace {

/// The paths and all that they lie in.
std::set<std::string, std::less<>> withParents(const std::set<std::string, std::less<>>& paths) {
  std::set<std::string, std::less<>> all;
  for (const std::string_view path : paths) {
    for (auto end = path.find('.'); end != std::string_view::npos; end = path.find('.', end + 1))
      all.emplace(path.substr(0, end));
    if (!path.empty()) all.emplace(path);
  }
  return all;
}

std::vector<std::string> matching(std::string_view text, const std::set<std::string, std::less<>>& all) {
  if (text.empty()) return {};
  if (all.contains(text)) return {std::string(text)};
  const auto end = "." + std::string(text);
  std::vector<std::string> found;
  std::copy_if(all.begin(), all.end(), std::back_inserter(found),
               [&](const std::string& path) { return path.ends_with(end); });
  return found;
}

}  // namespace

bool isListIndex(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::vector<std::string_view> partsOf(std::string_view path, std::size_t most) {
  std::vector<std::string_view> parts;
  while (!path.empty()) parts.push_back(parts.size() + 1 < most ? takePart(path, '.') : std::exchange(path, {}));
  return parts;
}

std::vector<std::pair<std::string_view, std::string_view>> listsAround(std::string_view path) {
  std::vector<std::pair<std::string_view, std::string_view>> lists;
  for (std::size_t begin = 0; begin < path.size();) {
    const auto end = std::min(path.find('.', begin), path.size());
    if (const auto part = path.substr(begin, end - begin); begin > 0 && isListIndex(part))
      lists.emplace_back(path.substr(0, begin - 1), part);
    begin = end + 1;
  }
  return lists;
}

bool isInModule(std::string_view path, std::string_view module) {
  return path.starts_with(module) && (path.size() == module.size() || path[module.size()] == '.');
}

std::vector<std::string> modulesNamed(std::string_view text, const std::set<std::string, std::less<>>& paths) {
  return matching(text, withParents(paths));
}

std::string moduleNamed(std::string_view text, const std::set<std::string, std::less<>>& paths) {
  const auto all = withParents(paths);
  const auto found = matching(text, all);
  if (found.size() == 1) return found.front();
  if (found.empty())
    badUse("the model has no module of this path" + didYouMean(text, {all.begin(), all.end()}),
           "module '" + std::string(text) + "'");
  constexpr std::size_t most = 5;
  std::string list;
  for (std::size_t i = 0; i < std::min(found.size(), most); ++i) list += (i == 0 ? "" : ", ") + found[i];
  badUse("several modules end in this path: " + list + (found.size() > most ? ", ..." : "") + "; give the whole path",
         "module '" + std::string(text) + "'");
}

}  // namespace retrograd
