#pragma once
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace retrograd {

/// Whether `path` is `module` or lies below it: "h.3.mlp" in "h.3", not in "h.31".
bool isInModule(std::string_view path, std::string_view module);

/// Whether a part of a path is the number of a member of a list.
bool isListIndex(std::string_view part);

/// The parts of a path; at most `most`, of which the last is then all the rest.
std::vector<std::string_view> partsOf(std::string_view path, std::size_t most);

/// The lists that a path is in, from the outermost, and the member of each: "h.3.experts.1" is in "h" as "3", and in
/// "h.3.experts" as "1".
std::vector<std::pair<std::string_view, std::string_view>> listsAround(std::string_view path);

/// The modules that a person may mean by `text`: the one of this path, else every path that `text` ends, counted in
/// whole components ("h.0" is "transformer.h.0"). `paths`: of the ops of a model. Empty where there is none.
std::vector<std::string> modulesNamed(std::string_view text, const std::set<std::string, std::less<>>& paths);

/// The one module that is meant. Throws Error(badUse) where there is none, with near names, or several, with their
/// paths.
std::string moduleNamed(std::string_view text, const std::set<std::string, std::less<>>& paths);

}  // namespace retrograd
