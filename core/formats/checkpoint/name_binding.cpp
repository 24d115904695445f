#include "core/formats/checkpoint/name_binding.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/user_choice.h"

namespace retrograd {
namespace {

constexpr std::array<std::string_view, 4> wrappers{"_orig_mod", "module", "_fsdp_wrapped_module",
                                                   "_checkpoint_wrapped_module"};
constexpr std::array<std::string_view, 4> usualKeys{"model", "state_dict", "module", "model_state_dict"};

/// The wanted names less what they all begin with up to `begin`, found as they are or without wrappers.
class WantedNames {
 public:
  explicit WantedNames(const std::map<std::string, TensorMeta>& wanted, std::size_t begin = 0) {
    for (const auto& [name, meta] : wanted) {
      const auto rest = name.substr(begin);
      exact_.emplace(rest, name);
      auto [it, isNew] = plain_.emplace(withoutWrappers(rest), name);
      if (!isNew) it->second.clear();  // two names are the same without wrappers: neither is found that way
    }
  }
  /// The whole wanted name; empty where none is meant.
  std::string exact(const std::string& name) const {
    const auto it = exact_.find(name);
    return it == exact_.end() ? std::string() : it->second;
  }
  std::string find(std::string_view name) const {
    if (auto whole = exact(std::string(name)); !whole.empty()) return whole;
    const auto it = plain_.find(withoutWrappers(name));
    return it == plain_.end() ? std::string() : it->second;
  }

 private:
  std::unordered_map<std::string, std::string> exact_, plain_;
};

/// Where the wanted names may begin: after each part that all of them share, since a model that was exported within a
/// wrapper of its own has one more.
std::vector<std::size_t> beginnings(const std::map<std::string, TensorMeta>& wanted) {
  std::vector<std::size_t> result{0};
  if (wanted.empty()) return result;
  const auto &first = wanted.begin()->first,
             &last = wanted.rbegin()->first;  // of sorted names these two share what all share
  for (std::size_t i = 0; i < std::min(first.size(), last.size()) && first[i] == last[i]; ++i)
    if (first[i] == '.') result.push_back(i + 1);
  return result;
}

/// A place in the checkpoint where the model's names may begin.
struct Root {
  std::string prefix;  ///< with its dot: "model."
  std::size_t matched = 0, under = 0;
  bool isBorder = false;

  std::string key() const { return prefix.empty() ? prefix : prefix.substr(0, prefix.size() - 1); }
  std::size_t superfluous(std::size_t all) const { return (isBorder ? under : all) - matched; }
  int usual() const {
    const auto name = key();
    const auto last = std::string_view(name).substr(name.rfind('.') + 1);
    return std::find(usualKeys.begin(), usualKeys.end(), last) != usualKeys.end() ? 2 : prefix.empty() ? 1 : 0;
  }
};

/// Every beginning of a name that ends at a dot.
std::map<std::string, Root> rootsOf(const Checkpoint& checkpoint, const WantedNames& wanted) {
  constexpr std::size_t maxParts = 64;
  std::map<std::string, Root> roots;
  for (const auto& tensor : checkpoint.tensors) {
    const std::string_view name = tensor.name;
    std::size_t at = 0;
    for (std::size_t part = 0; part < maxParts; ++part) {
      auto& root = roots[std::string(name.substr(0, at))];
      root.prefix = name.substr(0, at);
      ++root.under;
      root.isBorder |= std::find(tensor.borders.begin(), tensor.borders.end(), at) != tensor.borders.end();
      if (!wanted.find(name.substr(at)).empty()) ++root.matched;
      const auto dot = name.find('.', at);
      if (dot == std::string_view::npos) break;
      at = dot + 1;
    }
  }
  return roots;
}

/// The wanted names as the checkpoint has most of them.
WantedNames fittingNames(const Checkpoint& checkpoint, const std::map<std::string, TensorMeta>& wanted) {
  std::size_t most = 0, best = 0;
  for (const auto begin : beginnings(wanted)) {
    std::size_t matched = 0;
    for (const auto& [prefix, root] : rootsOf(checkpoint, WantedNames(wanted, begin)))
      matched = std::max(matched, root.matched);
    if (matched > most) best = begin;
    most = std::max(most, matched);
    if (most == wanted.size()) break;
  }
  return WantedNames(wanted, best);
}

Root chooseRoot(const Checkpoint& checkpoint, const WantedNames& wanted, const std::string& under) {
  const auto roots = rootsOf(checkpoint, wanted);
  if (!under.empty()) {
    const auto it = roots.find(under + ".");
    if (it == roots.end()) badUse("has no tensors under '" + under + "'", checkpoint.path);
    return it->second;
  }
  const auto all = checkpoint.tensors.size();
  const auto rank = [&](const Root& root) {
    return std::tuple(root.matched, ~root.superfluous(all), root.isBorder, root.usual());
  };
  const Root* best = nullptr;
  std::vector<const Root*> equal;
  for (const auto& [prefix, root] : roots) {
    if (best && rank(root) < rank(*best)) continue;
    if (!best || rank(root) > rank(*best)) equal.clear();
    best = &root;
    equal.push_back(&root);
  }
  if (!best) return {};
  if (best->matched == 0) return roots.begin()->second;  // nothing fits: the whole file is as good as any part
  if (equal.size() == 1) return *best;
  std::string names;
  for (const auto* root : equal) names += (names.empty() ? "'" : ", '") + root->key() + "'";
  badUse("holds the wanted names in several places: " + names + "; choose one with " + nameOf(UserChoice::weightsUnder),
         checkpoint.path);
}

bool isUnder(const CheckpointTensor& tensor, const Root& root) { return tensor.name.starts_with(root.prefix); }

void addLines(std::string& text, const std::vector<Mismatch>& all, const std::string& what) {
  constexpr std::size_t most = 200;
  for (std::size_t i = 0; i < std::min(all.size(), most); ++i) {
    const auto& one = all[i];
    text += "\n  " + what + ": " + one.name + " ";
    if (one.wanted && one.found) text += shapeText(*one.found) + ", wanted " + shapeText(*one.wanted);
    else text += shapeText(one.wanted ? *one.wanted : *one.found);
  }
  if (all.size() > most) text += "\n  " + what + ": " + std::to_string(all.size() - most) + " more";
}

}  // namespace

std::string withoutWrappers(std::string_view name) {
  std::string result;
  for (std::size_t at = 0; at <= name.size();) {
    const auto end = std::min(name.find('.', at), name.size());
    const auto part = name.substr(at, end - at);
    const bool isLast = end == name.size();
    if (isLast || std::find(wrappers.begin(), wrappers.end(), part) == wrappers.end()) {
      result += part;
      if (!isLast) result += '.';
    }
    at = end + 1;
  }
  return result;
}

bool sameShapeAndDType(const TensorMeta& wanted, const TensorMeta& found) {
  return wanted.sizes == found.sizes && wanted.dtype == found.dtype;
}

NameBinding bindNames(const Checkpoint& checkpoint, const std::map<std::string, TensorMeta>& wanted,
                      const std::string& under, Fits fits) {
  const auto names = fittingNames(checkpoint, wanted);
  const auto root = chooseRoot(checkpoint, names, under);
  NameBinding binding;
  binding.under = root.key();
  std::map<std::string, const CheckpointTensor*> found;
  std::vector<const CheckpointTensor*> rest;
  const auto pass = [&](bool exactOnly) {  // a name as it is goes before one that only fits without wrappers
    for (const auto& tensor : checkpoint.tensors) {
      if (!isUnder(tensor, root)) {
        if (!exactOnly && !root.isBorder) rest.push_back(&tensor);
        continue;
      }
      const auto name = tensor.name.substr(root.prefix.size());
      const auto exact = names.exact(name);
      if (exact.empty() == exactOnly) continue;
      const auto meant = exactOnly ? exact : names.find(name);
      if (meant.empty() || !found.emplace(meant, &tensor).second) rest.push_back(&tensor);
    }
  };
  pass(true);
  pass(false);
  for (const auto& [name, meta] : wanted) {
    const auto it = found.find(name);
    if (it == found.end()) binding.missing.push_back({name, meta, std::nullopt});
    else if (!fits(meta, it->second->meta)) binding.different.push_back({name, meta, it->second->meta});
    else binding.bound.emplace(name, it->second);
  }
  for (const auto* tensor : rest) binding.superfluous.push_back({tensor->name, std::nullopt, tensor->meta});
  return binding;
}

std::string shapeText(const TensorMeta& meta) {
  auto text = typeComment(meta);
  return text.substr(text.find(' ') + 1);
}

std::string describeMismatches(const NameBinding& binding, bool superfluous) {
  std::string text;
  addLines(text, binding.missing, "missing");
  addLines(text, binding.different, "different");
  if (superfluous) addLines(text, binding.superfluous, "superfluous");
  return text;
}

}  // namespace retrograd
