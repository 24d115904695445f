#pragma once
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/formats/json/json_tree.h"
#include "core/trace/document.h"

namespace retrograd::pt2 {

/// What a node says about where it comes from.
struct NodeOrigin {
  SourceStackId source;
  StringId module;
  bool stoppedGradient = false;  ///< an alias that was `detach` before the graph was decomposed
  bool ranWithoutGrad = false;   ///< was in a no_grad region that decomposing dissolved
};

/// Reads nodes' metadata. Texts that repeat (a layer's stack, a module's path) are parsed once.
class MetadataReader {
 public:
  explicit MetadataReader(Document& document) : document_(document) {}

  NodeOrigin read(const Json& node, std::string_view target);
  /// Places ("model.py:31") where a custom autograd.Function was called: export inlined it and its backward is lost.
  const std::vector<std::string>& customFunctions() const { return customFunctions_; }
  /// "model.py:31", empty when the stack is.
  static std::string placeOf(const Document& document, SourceStackId source);

 private:
  SourceStackId source(std::string_view stackTrace);
  StringId module(std::string_view moduleStack);
  void noteCustomFunctions(const SourceStack& stack);

  Document& document_;
  std::unordered_map<std::string_view, SourceStackId> sources_;
  std::unordered_map<std::string_view, StringId> modules_;
  std::vector<std::string> customFunctions_;
  std::set<std::string> seenFunctions_;
};

/// "File "model.py", line 31, in forward\n    return ..." as frames, innermost last.
SourceStack parseStackTrace(std::string_view text);

/// Dotted path of the innermost module of "key,path,Class;key,path,Class": "layers.0.mlp"; empty for the model itself.
std::string modulePath(std::string_view moduleStack);

}  // namespace retrograd::pt2
