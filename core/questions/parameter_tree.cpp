#include "core/questions/parameter_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/base/module_path.h"

namespace retrograd {
namespace {

struct Module {
  std::vector<std::string> names;  ///< of its parts, in the order of the inputs
  std::map<std::string, Module> parts;
  std::optional<std::size_t> input;
};

/// "0", or "0.weight" where the member of a list has one part.
bool startsWithNumber(const std::string& label) { return isListIndex(label.substr(0, label.find('.'))); }

void insert(Module& root, const std::string& path, std::size_t input) {
  auto* module = &root;
  for (std::size_t begin = 0; begin <= path.size();) {
    const auto end = std::min(path.find('.', begin), path.size());
    const auto name = path.substr(begin, end - begin);
    const auto [part, isNew] = module->parts.try_emplace(name);
    if (isNew) module->names.push_back(name);
    module = &part->second;
    begin = end + 1;
  }
  module->input = input;
}

ParameterTree treeOf(const Module& module, const std::string& name, const std::string& path) {
  ParameterTree tree{name, path, startsWithNumber(name), module.input, {}};
  for (const auto& part : module.names) {
    auto made = treeOf(module.parts.at(part), part, path.empty() ? part : fmt::format("{}.{}", path, part));
    const auto& parts = made.parts;
    const bool isList = !made.input && std::all_of(parts.begin(), parts.end(),
                                                   [](const ParameterTree& p) { return startsWithNumber(p.label); });
    if (!isList) {
      tree.parts.push_back(std::move(made));
      continue;
    }
    for (auto& member : made.parts) {
      member.label = part + "." + member.label;
      tree.parts.push_back(std::move(member));
    }
  }
  if (tree.parts.size() != 1 || tree.input || path.empty()) return tree;
  auto only = std::move(tree.parts.front());
  only.label = name + "." + only.label;
  only.isMember = only.isMember || tree.isMember;
  return only;
}

}  // namespace

bool ParameterTree::holdsMembers() const {
  return std::any_of(parts.begin(), parts.end(),
                     [](const ParameterTree& part) { return part.isMember || part.holdsMembers(); });
}

ParameterTree parameterTree(const Computation& computation) {
  Module root;
  for (std::size_t i = 0; i < computation.inputs.size(); ++i)
    if (const auto& input = computation.inputs[i]; input.kind == InputKind::parameter && input.value)
      insert(root, input.target, i);
  auto tree = treeOf(root, {}, {});
  while (tree.parts.size() == 1 && !tree.parts.front().parts.empty()) {
    auto only = std::move(tree.parts.front());
    tree = std::move(only);
  }
  return tree;
}

}  // namespace retrograd
