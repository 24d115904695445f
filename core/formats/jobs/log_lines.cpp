// What a single line of a log says.
#include <algorithm>
#include <array>
#include <utility>

#include "core/base/enum_array.h"
#include "core/base/number_text.h"
#include "core/formats/jobs/log_builder.h"

namespace retrograd::jobs {
namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isNamePart(char c) { return isDigit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Takes the characters up to the next space, and the space.
std::string_view takeWord(std::string_view& text) {
  const auto space = text.find(' ');
  if (space == std::string_view::npos) return {};
  const auto word = text.substr(0, space);
  text.remove_prefix(space + 1);
  return word;
}

constexpr std::array<std::pair<std::string_view, GraphKind>, 10> records{
    {{"dynamo_output_graph", GraphKind::dynamo},
     {"before_pre_grad_graph", GraphKind::beforePreGrad},
     {"after_pre_grad_graph", GraphKind::afterPreGrad},
     {"aot_joint_graph", GraphKind::joint},
     {"aot_inference_graph", GraphKind::inference},
     {"aot_forward_graph", GraphKind::forward},
     {"aot_backward_graph", GraphKind::backward},
     {"fx_graph_runnable", GraphKind::runnable},
     {"before_post_grad_graph", GraphKind::beforePostGrad},
     {"inductor_post_grad_graph", GraphKind::postGrad}}};

constexpr EnumArray<GraphKind, std::string_view, 11> kindNames{
    "dynamo",   "before-pre-grad", "after-pre-grad",   "joint",     "inference", "forward",
    "backward", "runnable",        "before-post-grad", "post-grad", "other"};

}  // namespace

std::string_view name(GraphKind kind) { return kindNames[kind]; }

std::optional<GraphKind> graphKindOfRecord(std::string_view name) {
  const auto* found =
      std::find_if(records.begin(), records.end(), [&](const auto& record) { return record.first == name; });
  return found == records.end() ? std::nullopt : std::optional(found->second);
}

bool beginsGraph(std::string_view line) {
  return line.starts_with("class ") && line.find("(torch.nn.Module):") != std::string_view::npos;
}

std::vector<std::string> recompileReasonsOf(std::string_view text) {
  std::vector<std::string> reasons;
  const auto add = [&](std::string_view reason) {
    while (!reason.empty() && (reason.front() == '\n' || reason.front() == ' ')) reason.remove_prefix(1);
    reason = reason.substr(0, reason.find('\n'));
    while (!reason.empty() && (reason.back() == ' ' || reason.back() == '\r')) reason.remove_suffix(1);
    if (!reason.empty()) reasons.emplace_back(reason);
  };
  if (text.starts_with('[')) {
    try {
      const JsonTree tree(text);
      for (const auto& item : tree.root().items())
        if (item.isString()) add(item.text());
      return reasons;
    } catch (const Error& e) {
      if (e.code() != ErrorCode::badInput) throw;
    }
  }
  add(text);
  return reasons;
}

std::optional<Envelope> readEnvelope(std::string_view line) {
  Envelope envelope;
  auto rest = line;
  if (rest.starts_with("[rank")) {
    const auto close = rest.find("]:");
    if (close == std::string_view::npos) return std::nullopt;
    envelope.rank = numberIn<std::int64_t>(rest.substr(5, close - 5));
    rest.remove_prefix(close + 2);
  }
  constexpr std::string_view levels = "VIWEC";
  if (rest.size() < 6 || levels.find(rest.front()) == std::string_view::npos || rest[5] != ' ') return std::nullopt;
  if (!std::all_of(rest.begin() + 1, rest.begin() + 5, isDigit)) return std::nullopt;
  const auto* timeBegin = rest.data() + 1;
  rest.remove_prefix(6);
  const auto clock = takeWord(rest);
  envelope.time = std::string_view(timeBegin, static_cast<std::size_t>(clock.data() + clock.size() - timeBegin));
  envelope.pid = takeWord(rest);
  const auto close = rest.find(']');
  if (clock.empty() || envelope.pid.empty() || !std::all_of(envelope.pid.begin(), envelope.pid.end(), isDigit) ||
      close == std::string_view::npos)
    return std::nullopt;
  const auto colon = rest.substr(0, close).rfind(':');
  if (colon == std::string_view::npos || colon + 1 == close) return std::nullopt;
  rest.remove_prefix(close + 1);
  envelope.content = rest.starts_with(' ') ? rest.substr(1) : rest;
  envelope.all = line.substr(0, line.size() - envelope.content.size());
  return envelope;
}

bool OpCounter::makesOp(std::string_view right, std::string_view type) const {
  right = right.substr(0, right.find(';'));
  if (type.starts_with("Sym(") || right.starts_with("self.") || right.starts_with("fx_pytree.tree_flatten_spec("))
    return false;
  const auto end = static_cast<std::size_t>(std::find_if_not(right.begin(), right.end(), isNamePart) - right.begin());
  if (end == right.size()) return false;  // another name of a value
  const bool isItem =
      right[end] == '[' && right.back() == ']' && std::all_of(right.begin() + end + 1, right.end() - 1, isDigit);
  return !isItem || !several_.contains(std::string(right.substr(0, end)));
}

void OpCounter::line(std::string_view text) {
  const auto indent = text.find_first_not_of(' ');
  if (indent == std::string_view::npos) return;
  text.remove_prefix(indent);
  if (text.starts_with("class ")) {
    inClass_ = indent == 0;  // a class within is a body
    return;
  }
  if (indent == 0) inClass_ = false;
  if (!inClass_ || !isNamePart(text.front()) || isDigit(text.front()) || text.back() == ',') return;
  const auto end = static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), isNamePart) - text.begin());
  auto rest = text.substr(end);
  std::string_view type;
  if (rest.starts_with(": \"")) {
    const auto quote = rest.find('"', 3);
    if (quote == std::string_view::npos) return;
    type = rest.substr(3, quote - 3);
    rest.remove_prefix(quote + 1);
  }
  const bool isWrite =
      rest.starts_with('[') ||
      (rest.size() > 3 && rest[0] == ' ' && rest.substr(1, 4).find("= ") != std::string_view::npos && rest[1] != '=');
  if (isWrite) {
    ops_ += rest.find(" = ") != std::string_view::npos ? 1 : 0;
  } else if (rest.starts_with(" = ")) {
    ops_ += makesOp(rest.substr(3), type) ? 1 : 0;
    if (type.empty()) several_.emplace(text.substr(0, end));
  }
}

std::optional<std::pair<CompileId, std::int64_t>> compileOfFolder(std::string_view name) {
  std::vector<std::optional<std::int64_t>> parts;
  while (true) {
    const auto end = name.find('_');
    const auto part = name.substr(0, end);
    if (part == "-") {
      parts.emplace_back();
    } else if (const auto number = numberIn<std::int64_t>(part); number && *number >= 0) {
      parts.emplace_back(*number);
    } else {
      return std::nullopt;
    }
    if (end == std::string_view::npos) break;
    name.remove_prefix(end + 1);
  }
  if (parts.size() == 3) parts.insert(parts.begin(), std::nullopt);  // before compiled autograd
  if (parts.size() != 4) return std::nullopt;
  return std::pair(CompileId{parts[0], parts[1], parts[2]}, parts[3].value_or(0));
}

}  // namespace retrograd::jobs
