#include "core/torch/checking/suite.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "core/formats/json/json_tree.h"

namespace fs = std::filesystem;

namespace retrograd {
namespace {

/// What manifest.json of a folder says of the cases in it.
class FolderNotes {
 public:
  explicit FolderNotes(const fs::path& folder) {
    const auto manifest = folder / "manifest.json";
    std::ifstream file(manifest);
    if (!file) return;
    try {
      const JsonTree tree(std::string{std::istreambuf_iterator<char>(file), {}});
      if (tree.root().isArray()) read(tree.root());
    } catch (const Error& e) {
      throw e.at(manifest.string());
    }
  }

  void apply(const std::string& name, CheckOptions& options) const {
    if (const auto it = deterministic_.find(name); it != deterministic_.end()) options.deterministic = it->second;
  }

 private:
  void read(const Json& entries) {
    for (const auto& entry : entries.items()) {
      const auto *name = entry.find("dir"), *deterministic = entry.find("deterministic");
      if (name) deterministic_[std::string(name->text())] = !deterministic || deterministic->boolean();
    }
  }

  std::map<std::string, bool> deterministic_;
};

SuiteCase caseOf(const fs::path& suite, const fs::path& model, std::map<fs::path, FolderNotes>& notes) {
  const auto folder = model.parent_path();
  const auto stem = model.stem().string();
  auto name = folder == suite ? folder.filename().string() : fs::relative(folder, suite).string();
  if (stem != "model") name += "/" + stem;
  SuiteCase found{name, model.string(), {}};
  if (const auto reference = folder / "ref.safetensors"; fs::exists(reference))
    found.options.reference = reference.string();
  for (const auto& place : {suite, folder.parent_path()}) {  // the nearer word counts
    const auto it = notes.try_emplace(place, place).first;
    it->second.apply(folder.filename().string(), found.options);
  }
  if (isRecordedFolder(folder.string()))
    if (const auto choice = chooseGraph(folder.string()); choice && fs::equivalent(choice->graph.model, model)) {
      found.options.customBackward = choice->graph.customBackward;
      for (const auto& line : choice->cannotReplay) found.options.warnings.push_back("cannot be replayed: " + line);
    }
  return found;
}

}  // namespace

std::vector<SuiteCase> findCases(const std::string& folder) {
  std::error_code error;
  const auto suite = fs::canonical(folder, error);
  if (error || !fs::is_directory(suite)) throw Error(ErrorCode::badUse, "no such folder", folder);
  std::vector<SuiteCase> cases;
  std::map<fs::path, FolderNotes> notes;
  for (const auto& entry : fs::recursive_directory_iterator(suite, fs::directory_options::skip_permission_denied))
    if (entry.is_regular_file() && entry.path().extension() == ".pt2")
      cases.push_back(caseOf(suite, entry.path(), notes));
  if (cases.empty()) throw Error(ErrorCode::badUse, "no .pt2 file in this folder or one under it", folder);
  std::ranges::sort(cases, [](const auto& a, const auto& b) { return a.name < b.name; });
  return cases;
}

}  // namespace retrograd
