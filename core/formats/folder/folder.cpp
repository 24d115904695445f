#include "core/formats/folder/folder.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/memory_account.h"
#include "core/formats/files/mapped_file.h"
#include "core/formats/json/json_tree.h"

namespace retrograd {
namespace {

namespace fs = std::filesystem;

constexpr const char* manifestName = "retrograd.json";
constexpr std::int64_t knownVersion = 1;

bool hasManifest(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / manifestName, ignored);
}

/// The folder that `path` lies in, also where it ends in a slash.
fs::path withoutSlash(const std::string& path) {
  const fs::path given(path);
  return given.has_filename() ? given : given.parent_path();
}

/// The folder with the manifest: `path`, or the one around it. None for a recording (formats/recording), which has a
/// manifest of its own, and for what is in it.
std::optional<fs::path> folderWithManifest(const std::string& path) {
  std::error_code ignored;
  const auto given = withoutSlash(path);
  if (!fs::is_directory(given, ignored)) return std::nullopt;
  const auto around = given.has_parent_path() ? given.parent_path() : fs::path(".");
  const auto& folder = hasManifest(given) ? given : around;
  if (!hasManifest(folder) || fs::exists(folder / "ops.jsonl", ignored)) return std::nullopt;
  return folder;
}

std::vector<std::string> textsAt(const Json& json, std::string_view key) {
  std::vector<std::string> texts;
  for (const auto& item : json.itemsAt(key)) texts.emplace_back(item.text());
  return texts;
}

/// A path of the manifest as a path to open: relative, and without a way out of the folder.
std::string inside(const std::string& folder, std::string_view relative, const char* what) {
  const fs::path path(relative);
  const bool leaves =
      path.is_absolute() || std::any_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
  if (relative.empty() || leaves)
    badInput("the path of the " + std::string(what) + " is not inside the folder: '" + path.string() + "'");
  return (fs::path(folder) / path).string();
}

CustomBackward customBackwardOf(const Json& json) {
  CustomBackward custom;
  custom.isHook = json.textAt("kind") == "hook";
  custom.name = json.textAt("name");
  // "model.py:12 in backward"
  auto place = json.textAt("line");
  place = place.substr(0, place.find(" in "));
  if (const auto colon = place.rfind(':'); colon != std::string::npos) {
    custom.file = place.substr(0, colon);
    const auto digits = place.substr(colon + 1);
    std::from_chars(digits.data(), digits.data() + digits.size(), custom.line);
  }
  return custom;
}

FolderGraph graphOf(const Json& json, const std::string& folder) {
  FolderGraph graph;
  graph.name = std::string(json.at("name").text());
  graph.model = inside(folder, json.at("model").text(), "model");
  if (const auto values = json.textAt("values"); !values.empty()) graph.values = inside(folder, values, "values");
  graph.ops = json.integerAt("ops");
  graph.mode = json.textAt("mode");
  graph.compile = json.textAt("compile");
  graph.location = json.textAt("location");
  graph.notFinite = textsAt(json, "not_finite");
  graph.cannotReplay = textsAt(json, "cannot_replay");
  for (const auto& one : json.itemsAt("custom_backward")) graph.customBackward.push_back(customBackwardOf(one));
  return graph;
}

RecordedFolder folderOf(const Json& json, const std::string& path) {
  if (json.textAt("format") != "retrograd.folder") badInput("its \"format\" is not \"retrograd.folder\"");
  if (const auto version = json.at("version").integer(); version != knownVersion)
    badInput("version " + std::to_string(version) + " of the format is not known here; a newer Retrograd may read it");
  RecordedFolder folder;
  folder.path = path;
  folder.kind = std::string(json.at("kind").text());
  if (const auto* made = json.find("made")) folder.torchVersion = made->textAt("torch");
  folder.rank = json.integerAt("rank");
  folder.ranks = json.integerAt("ranks", 1);
  if (const auto* step = json.find("step"); step && step->kind() == Json::Kind::integer) folder.step = step->integer();
  if (const auto* failure = json.find("failure")) {
    const auto message = failure->textAt("message");  // of an exception it may be long
    folder.failure = message.substr(0, message.find('\n'));
  }
  for (const auto& graph : json.at("graphs").items()) {
    folder.graphs.push_back(graphOf(graph, path));
    if (const auto device = json.textAt("device"); device != "cpu") folder.graphs.back().device = device;
  }
  if (const auto* recorded = json.find("recorded"))
    if (const auto numbers = recorded->textAt("debug_mode"); !numbers.empty())
      folder.numbers = inside(path, numbers, "recorded numbers");
  if (const auto* open = json.find("open")) {
    folder.openGraph = open->textAt("graph");
    folder.atRoot = open->textAt("at") == "root";
  }
  folder.cannotReplay = textsAt(json, "cannot_replay");
  return folder;
}

}  // namespace

bool isRecordedFolder(const std::string& path) { return folderWithManifest(path).has_value(); }

RecordedFolder readRecordedFolder(std::string_view text, const std::string& path) {
  return folderOf(JsonTree(text).root(), path);
}

RecordedFolder readRecordedFolder(const std::string& path) {
  const auto manifest = (fs::path(path) / manifestName).string();
  const auto bytes = mapFile(manifest);
  const ReadingScope scope(bytes.size);
  return readingFile(manifest, [&] { return readRecordedFolder(bytes.text(), path); });
}

std::vector<std::string> recordedFoldersIn(const std::string& path) {
  std::vector<std::string> folders;
  std::error_code error;
  for (auto entry = fs::directory_iterator(path, fs::directory_options::skip_permission_denied, error);
       !error && entry != fs::directory_iterator(); entry.increment(error))
    if (hasManifest(entry->path())) folders.push_back(entry->path().string());
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::optional<FolderChoice> chooseGraph(const std::string& path) {
  const auto whole = folderWithManifest(path);
  if (!whole) return std::nullopt;
  const auto given = withoutSlash(path);
  const bool isWhole = *whole == given;
  const auto folder = readRecordedFolder(whole->string());
  const auto name = isWhole ? folder.openGraph : given.filename().string();
  auto found = std::find_if(folder.graphs.begin(), folder.graphs.end(),
                            [&](const FolderGraph& graph) { return graph.name == name; });
  if (found == folder.graphs.end() && isWhole) found = folder.graphs.begin();
  if (std::error_code ignored; found == folder.graphs.end() && fs::exists(given / "recorded" / "ops.jsonl", ignored))
    badUse("has no graph; open its recording, " + (given / "recorded").string(), path);
  if (found == folder.graphs.end())
    badInput(folder.graphs.empty() ? "no graph was saved in this folder: see \"cannot_replay\" in its retrograd.json"
                                   : "retrograd.json names no graph of this folder",
             path);
  FolderChoice choice{*found, folder.atRoot && isWhole, folder.failure, folder.cannotReplay};
  for (const auto& line : found->cannotReplay)
    if (std::find(choice.cannotReplay.begin(), choice.cannotReplay.end(), line) == choice.cannotReplay.end())
      choice.cannotReplay.push_back(line);
  return choice;
}

}  // namespace retrograd
