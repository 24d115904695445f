#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/zip/archive.h"

namespace retrograd {

/// What a torch.export archive says of a graph's surroundings that the graph itself does not need: read when someone
/// asks.
struct Pt2Structure {
  /// By node name: which call of each module on its stack the node ran in. "l" called a second time: {"l", 1}.
  std::map<std::string, std::map<std::string, int>> moduleCalls;
  /// Path of each user output in what forward returned: "loss", "logits.1", or the position where it is a tuple or
  /// list; "" for a bare tensor. Empty where the archive does not say.
  std::vector<std::string> outputPaths;
};

/// nullopt for a file that is not a torch.export archive. Throws Error(badInput) as openModelArchive() does, and for a
/// broken record.
std::optional<Pt2Structure> readPt2Structure(const std::string& path);

/// Modules and calls of a node's `nn_module_stack`: "L__self__,,M;L__self__l@1,l,L" has {"l", 1}.
std::map<std::string, int> parseModuleCalls(const std::string& moduleStack);
/// Paths of the leaves of a tree as torch.utils._pytree writes it. Throws Error(badInput) where it is none.
std::vector<std::string> leafPaths(const std::string& treeSpec);

}  // namespace retrograd
