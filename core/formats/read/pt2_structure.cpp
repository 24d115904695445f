#include "core/formats/read/pt2_structure.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "core/base/error.h"
#include "core/formats/json/json_tree.h"
#include "core/formats/model/model_file.h"
#include "core/formats/pt2/pt2.h"
#include "core/formats/read/read_file.h"

namespace retrograd {
namespace {

void addLeaves(const Json& spec, const std::string& path, std::vector<std::string>& paths) {
  const Json* type = spec.find("type");
  const auto children = spec.at("children_spec").items();
  if (!type || type->isNull()) return void(paths.push_back(path));
  // The context of a dictionary is the list of its keys, as JSON text; of other containers there are positions.
  std::unique_ptr<JsonTree> context;
  if (const Json* text = spec.find("context"); text && text->isString())
    context = std::make_unique<JsonTree>(text->text());
  const bool keyed = context && context->root().isArray() && context->root().items().size() == children.size();
  for (std::size_t i = 0; i < children.size(); ++i) {
    auto key = std::to_string(i);
    if (keyed) {
      const Json& given = context->root().items()[i];
      key = given.isString()                      ? std::string(given.text())
            : given.kind() == Json::Kind::integer ? std::to_string(given.integer())
                                                  : key;
    }
    addLeaves(children[i], path.empty() ? key : fmt::format("{}.{}", path, key), paths);
  }
}

void readNodes(const Json& graph, Pt2Structure& structure) {
  for (const auto& node : graph.at("nodes").items()) {
    const Json *name = node.find("name"), *metadata = node.find("metadata");
    const Json* stack = metadata ? metadata->find("nn_module_stack") : nullptr;
    if (name && name->isString() && stack && stack->isString())
      structure.moduleCalls[std::string(name->text())] = parseModuleCalls(std::string(stack->text()));
  }
}

void readOutputs(const Json& module, Pt2Structure& structure) {
  const Json* calls = module.find("module_call_graph");
  if (!calls || !calls->isArray()) return;
  for (const auto& call : calls->items()) {
    if (!call.at("fqn").text().empty()) continue;
    const Json* signature = call.find("signature");
    if (signature && signature->isObject())
      structure.outputPaths = leafPaths(std::string(signature->at("out_spec").text()));
  }
}

}  // namespace

std::map<std::string, int> parseModuleCalls(const std::string& moduleStack) {
  std::map<std::string, int> calls;
  for (std::size_t begin = 0; begin <= moduleStack.size();) {
    const auto end = std::min(moduleStack.find(';', begin), moduleStack.size());
    const auto entry = std::string_view(moduleStack).substr(begin, end - begin);
    begin = end + 1;
    const auto first = entry.find(','), last = entry.rfind(',');
    if (first == std::string_view::npos || last <= first) continue;
    const auto key = entry.substr(0, first), path = entry.substr(first + 1, last - first - 1);
    int call = 0;
    if (const auto sign = key.rfind('@'); sign != std::string_view::npos)
      std::from_chars(key.data() + sign + 1, key.data() + key.size(), call);
    if (!path.empty()) calls[std::string(path)] = call;
  }
  return calls;
}

std::vector<std::string> leafPaths(const std::string& treeSpec) {
  const JsonTree tree(treeSpec);
  const auto parts = tree.root().items();  // protocol number, tree
  if (parts.size() != 2) badInput("is not a tree specification", "out_spec");
  std::vector<std::string> paths;
  addLeaves(parts[1], {}, paths);
  return paths;
}

std::optional<Pt2Structure> readPt2Structure(const std::string& path) {
  std::shared_ptr<const Archive> archive;
  try {
    archive = openModelArchive(path, {}, Archive::Verify::onRead);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::badInput)
      return std::nullopt;  // printed traces, for one; a broken archive was refused before
    throw;
  }
  const auto record = findModelRecord(*archive);
  if (record.empty()) return std::nullopt;
  Pt2Structure structure;
  try {
    const JsonTree tree(archive->read(record).text());
    const Json& module = tree.root().at("graph_module");
    readNodes(module.at("graph"), structure);
    readOutputs(module, structure);
  } catch (const Error& error) {
    throw error.at(record).at(path);
  }
  return structure;
}

}  // namespace retrograd
