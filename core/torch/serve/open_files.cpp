#include "core/torch/serve/open_files.h"

#include <algorithm>

#include "core/questions/op_facts.h"
#include "core/torch/opening/open_model.h"
#include "core/torch/page/gather_page.h"
#include "core/torch/serve/questions.h"
#include "core/trace/print/printer.h"
#include "core/trace/source.h"

namespace retrograd {

using Json = Method::Json;

OpenFile& OpenFiles::open(const std::string& path, const Progress& progress) {
  const auto known = std::ranges::find_if(files_, [&](const auto& file) { return file->request.path == path; });
  if (known != files_.end()) {
    last_ = static_cast<std::size_t>(known - files_.begin());
    return **known;
  }
  auto file = std::make_unique<OpenFile>();
  file->request = request_;
  file->request.path = path;
  if (auto snapshot = snapshotAt(path, progress)) {
    const auto device = firstDevice(*snapshot);
    file->memory = std::make_unique<const RecordedMemory>(recordedMemory(path, std::move(snapshot), device, progress));
    file->kind = name(Format::pickle);
  } else {
    file->analysis = openModel(file->request, progress);
    file->kind = name(file->analysis->file.format);
  }
  last_ = files_.size();
  files_.push_back(std::move(file));
  return *files_.back();
}

OpenFile& OpenFiles::at(const Json& arguments) {
  if (files_.empty()) badUse("nothing is open: call open first");
  if (!arguments.contains("file")) return *files_[last_];
  const auto number = arguments["file"].get<std::int64_t>();
  if (number < 1 || number > static_cast<std::int64_t>(files_.size()))
    badUse("there is no open file of this number; the last is " + std::to_string(files_.size()));
  last_ = static_cast<std::size_t>(number - 1);
  return *files_[last_];
}

std::size_t OpenFiles::numberOf(const OpenFile& file) const {
  return static_cast<std::size_t>(std::ranges::find_if(files_, [&](const auto& one) { return one.get() == &file; }) -
                                  files_.begin()) +
         1;
}

const std::shared_ptr<const Analysis>& OpenFiles::analysis(OpenFile& file) const {
  if (!file.analysis) badUse("is a memory snapshot, which has no ops: ask `memory`", file.request.path);
  return file.analysis;
}

DebugScript& OpenFiles::script(OpenFile& file) const {
  if (!file.script) file.script = std::make_unique<DebugScript>(analysis(file));
  return *file.script;
}

Json OpenFiles::command(OpenFile& file, const std::string& line, const Progress& progress) const {
  auto answer = script(file).run(line, progress).json;
  answer.erase("command");
  return answer;
}

std::string textIn(const Json& arguments, const char* name, const std::string& otherwise) {
  return arguments.contains(name) ? arguments[name].get<std::string>() : otherwise;
}

std::size_t countIn(const Json& arguments, const char* name, std::size_t otherwise) {
  if (!arguments.contains(name)) return otherwise;
  const auto count = arguments[name].get<std::int64_t>();
  if (count < 0) badUse(std::string(name) + " is to be 0 or more");
  return static_cast<std::size_t>(count);
}

Json opAnswer(const Analysis& analysis, BoundSymbolId op) {
  if (!op) return nullptr;
  const auto& document = *analysis.document;
  const auto& bound = document.boundSymbol(op);
  const auto* frame = shownFrame(sourceOf(document, op));
  const auto from = bound.origin.op ? bound.origin.op : op;
  Json json{{"id", op.index}, {"call", printCall(document, op)}};
  const auto module = document.text(bound.module ? bound.module : document.boundSymbol(from).module);
  if (!module.empty()) json["module"] = module;
  if (frame) json["line"] = frame->file + ":" + std::to_string(frame->line);
  if (frame && !frame->code.empty()) json["code"] = frame->code;
  if (bound.origin.role != Role::none) json["role"] = name(bound.origin.role);
  std::string types;
  for (const auto output : document.outputs(op))
    if (output) types += (types.empty() ? "" : ", ") + shortType(document, output);
  if (!types.empty()) json["makes"] = types;
  if (const auto forward = analysis.links.forwardOf(document, op); forward && forward != op)
    json["forward"] = forward.index;
  return json;
}

std::vector<Method> questionMethods(const OpenRequest& request) {
  const auto files = std::make_shared<OpenFiles>(request);
  std::vector<Method> all;
  for (auto&& group : {fileMethods(files), opMethods(files), whyMethods(files)})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace retrograd
