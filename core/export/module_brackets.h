#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace retrograd {

/// Walks a list of ops in order and reports where modules begin and end, as brackets: a module's ops that are not
/// together come in several brackets. `modules`: path by op. `visitor` has enter(name, path, first, last), op(i) and
/// leave().
template <class Visitor>
void forEachInModules(const std::vector<std::vector<std::string_view>>& modules, Visitor& visitor) {
  struct Walk {
    const std::vector<std::vector<std::string_view>>& modules;
    Visitor& visitor;
    bool within(std::size_t i, std::size_t depth, std::string_view part) const {
      return modules[i].size() > depth && modules[i][depth] == part;
    }
    void run(std::size_t first, std::size_t last, std::size_t depth) {
      for (auto i = first; i < last;) {
        if (modules[i].size() <= depth) {
          visitor.op(i++);
          continue;
        }
        auto end = i + 1;
        while (end < last && within(end, depth, modules[i][depth])) ++end;
        visitor.enter(modules[i][depth], depth, i, end);
        run(i, end, depth + 1);
        visitor.leave();
        i = end;
      }
    }
  };
  Walk{modules, visitor}.run(0, modules.size(), 0);
}

}  // namespace retrograd
