#include "core/layout/open_module.h"

#include "core/layout/scene.h"

namespace retrograd::layout {
namespace {

bool isIn(std::string_view path, std::string_view module) {
  return path.starts_with(module) && (path.size() == module.size() || path[module.size()] == '.');
}

}  // namespace

bool openModule(const GraphTree& tree, Folds& open, std::string_view path) {
  std::vector<bool> whole(tree.size(), true);  // all below is in the module
  for (auto i = tree.size() - 1; i > 0; --i) {
    const auto& node = tree.node(i);
    const std::size_t at = i, above = node.parent;
    if (node.kind == TreeNode::Kind::op && tree.node(node.parent).kind == TreeNode::Kind::operation) {
      whole[at] = false;  // its operation says
      continue;
    }
    if (node.kind == TreeNode::Kind::op || node.kind == TreeNode::Kind::operation)
      whole[at] = isIn(tree.document().text(node.module), path);
    if (!whole[at]) whole[above] = false;
  }
  bool any = false;
  for (std::int32_t i = 0; i < tree.size();) {
    if (path.empty() || !whole[i]) {
      ++i;
      continue;
    }
    any = true;
    reveal(tree, open, i);
    if (tree.canOpen(i)) open[i] = true;
    i = tree.node(i).end;
  }
  return any;
}

Folds allOpen(const GraphTree& tree) {
  Folds open(tree.size());
  for (std::int32_t i = 0; i < tree.size(); ++i) open[i] = i == 0 || tree.canOpen(i);
  return open;
}

}  // namespace retrograd::layout
