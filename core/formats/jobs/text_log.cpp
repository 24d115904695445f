// TORCH_LOGS text: each line of a graph has the whole envelope in front, and the compile and the artifact behind it.
#include <algorithm>
#include <map>

#include "core/base/number_text.h"
#include "core/formats/jobs/log_builder.h"

namespace retrograd::jobs {
namespace {

/// "0/0", "!1/0/0", "0/0_1".
std::optional<std::pair<CompileId, std::int64_t>> compileNamed(std::string_view text) {
  CompileId id;
  std::int64_t attempt = 0;
  if (const auto underscore = text.find('_'); underscore != std::string_view::npos) {
    const auto number = numberIn<std::int64_t>(text.substr(underscore + 1));
    if (!number) return std::nullopt;
    attempt = *number;
    text = text.substr(0, underscore);
  }
  if (text.starts_with('!')) {
    const auto slash = text.find('/');
    id.compiledAutograd = numberIn<std::int64_t>(text.substr(1, slash == std::string_view::npos ? slash : slash - 1));
    if (!id.compiledAutograd) return std::nullopt;
    if (slash == std::string_view::npos) return std::pair(id, attempt);
    text = text.substr(slash + 1);
  }
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  id.frame = numberIn<std::int64_t>(text.substr(0, slash));
  id.compile = numberIn<std::int64_t>(text.substr(slash + 1));
  return id.frame && id.compile ? std::optional(std::pair(id, attempt)) : std::nullopt;
}

/// " ===== Joint graph 0 =====": which graph follows.
std::optional<GraphKind> kindOfTitle(std::string_view text) {
  const auto begin = text.find("===== ");
  if (begin == std::string_view::npos || text.rfind(" =====") <= begin + 5) return std::nullopt;
  const auto title = text.substr(begin + 6, text.rfind(" =====") - begin - 6);
  constexpr std::array<std::pair<std::string_view, GraphKind>, 9> titles{
      {{"Joint graph", GraphKind::joint},
       {"Forward graph", GraphKind::forward},
       {"Backward graph", GraphKind::backward},
       {"Inference graph", GraphKind::inference},
       {"BEFORE PRE GRAD", GraphKind::beforePreGrad},
       {"AFTER PRE GRAD", GraphKind::afterPreGrad},
       {"BEFORE POST GRAD", GraphKind::beforePostGrad},
       {"AFTER POST GRAD", GraphKind::postGrad},
       {"__compiled_fn", GraphKind::dynamo}}};
  for (const auto& [name, kind] : titles) {
    if (title.starts_with(name)) return kind;
  }
  return std::nullopt;
}

/// A graph whose lines are still coming, of one process.
struct Open {
  std::string_view header;
  std::optional<GraphKind> kind;
  GraphRecord graph;
  OpCounter counter;
  CompileId id;
  std::int64_t attempt = 0;
  bool hasClass = false, hasReturn = false;
};

void close(Open& open, Process& process, LogBuilder& builder) {
  if (!open.hasClass || !open.kind) return;
  open.graph.kind = *open.kind;
  open.graph.ops = open.counter.ops();
  open.graph.damaged = !open.hasReturn;
  builder.addGraph(process, open.id, open.attempt, open.graph);
  open.hasClass = false;
}

}  // namespace

std::optional<TextLine> readTextLine(std::string_view line) {
  const auto envelope = readEnvelope(line);
  if (!envelope) return std::nullopt;
  TextLine text;
  text.rank = envelope->rank;
  text.time = envelope->time;
  text.pid = envelope->pid;
  auto rest = envelope->content;
  const auto takeBracket = [&]() -> std::optional<std::string_view> {
    const auto end = rest.starts_with('[') ? rest.find(']') : std::string_view::npos;
    if (end == std::string_view::npos) return std::nullopt;
    const auto inside = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    if (rest.starts_with(' ')) rest.remove_prefix(1);
    return inside;
  };
  const auto compile = takeBracket();
  const auto artifact = takeBracket();
  if (!compile || !artifact || !artifact->starts_with("__")) return std::nullopt;
  text.compile = *compile;
  text.content = rest;
  // One space is the format's own; an empty line may have lost it.
  text.header = line.substr(0, static_cast<std::size_t>(artifact->data() + artifact->size() + 1 - line.data()));
  return text;
}

void scanText(const JobLog& log, std::size_t file, LogBuilder& builder, const Progress& progress) {
  const auto all = log.files[file].bytes.text();
  std::map<std::string, Open, std::less<>> open;  // by process
  int number = 0;
  for (std::size_t at = 0; at < all.size();) {
    const auto end = std::min(all.find('\n', at), all.size());
    const auto offset = at;
    const auto line = all.substr(at, end - at);
    at = end + 1;
    if (++number % 65536 == 0)
      progress.at("reading the log", static_cast<double>(at) / static_cast<double>(all.size()));
    const auto text = readTextLine(line);
    if (!text) continue;
    const std::string pid(text->pid);
    auto& process = builder.process(file, pid);
    if (text->rank) process.rank = text->rank;
    auto& now = open[pid];
    const auto title = kindOfTitle(text->content);
    if (now.header != text->header || title) {
      close(now, process, builder);
      if (now.header != text->header) now.kind.reset();
      const auto compile = compileNamed(text->compile);
      now.header = text->header;
      now.id = compile ? compile->first : CompileId{};
      now.attempt = compile ? compile->second : 0;
      now.counter = {};
      now.hasReturn = false;
      ++process.records;
      if (compile) {
        auto& attempt = builder.attempt(process, now.id, now.attempt);
        if (attempt.time.empty()) attempt.time = text->time;
      }
    }
    // "- 0/0: tensor 'x' size mismatch", below "Recompiling function".
    if (const auto reason = text->content.find("- "); text->header.ends_with("[__recompiles]") &&
                                                      reason != std::string_view::npos &&
                                                      text->content.find_first_not_of(' ') == reason)
      builder.addRecompileReasons(process, now.id, now.attempt, text->content.substr(reason + 2));
    if (title) now.kind = title;
    if (!now.kind) continue;
    if (!now.hasClass) {
      if (text->content.find("class ") == std::string_view::npos) continue;
      now.hasClass = true;
      now.graph.payload = {file, offset, 0, Payload::Lines::prefixed, number};
    }
    now.graph.payload.bytes = std::min(at, all.size()) - now.graph.payload.offset;
    const auto content = textOfLine(*text);
    now.counter.line(content);
    now.hasReturn |= content.find("return ") != std::string_view::npos;
  }
  for (auto& [pid, last] : open) close(last, builder.process(file, pid), builder);
}

}  // namespace retrograd::jobs
