#include "core/formats/pt2/pt2_metadata.h"

#include <charconv>

#include "core/base/number_text.h"
#include "core/trace/source.h"

namespace retrograd::pt2 {
namespace {

constexpr std::string_view blanks = " \t\r";

constexpr std::size_t maxFrames = 1000;

/// File "model.py", line 31, in forward
bool parseFrame(std::string_view line, SourceFrame& frame) {
  constexpr std::string_view opening = "File \"", middle = "\", line ", function = ", in ";
  if (!line.starts_with(opening)) return false;
  const auto end = line.find(middle);
  if (end == std::string_view::npos) return false;
  frame.file = line.substr(opening.size(), end - opening.size());
  line.remove_prefix(end + middle.size());
  std::from_chars(line.data(), line.data() + line.size(), frame.line);
  if (const auto in = line.find(function); in != std::string_view::npos)
    frame.function = line.substr(in + function.size());
  return true;
}

/// Parts of a path as Dynamo writes it, L['self'].layers[0]._modules['mlp'], in dotted form.
std::string dotted(std::string_view path) {
  for (std::string_view prefix : {"L['self']", "L__self__", "getattr("})
    if (path.starts_with(prefix)) {
      path.remove_prefix(prefix.size());
      if (prefix == "getattr(" && path.starts_with("L['self']")) path.remove_prefix(9);
    }
  std::string result;
  const auto isPart = [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) || (c & 0x80); };
  for (std::size_t i = 0; i < path.size();) {
    if (!isPart(path[i])) {
      ++i;
      continue;
    }
    const auto begin = i;
    while (i < path.size() && isPart(path[i])) ++i;
    const auto part = path.substr(begin, i - begin);
    if (part == "_modules") continue;
    if (!result.empty()) result += '.';
    result += part;
  }
  return result;
}

}  // namespace

SourceStack parseStackTrace(std::string_view text) {
  SourceStack stack;
  while (!text.empty() && stack.size() < maxFrames) {
    const auto line = trimmed(takePart(text, '\n'), blanks);
    SourceFrame frame;
    if (parseFrame(line, frame)) {
      stack.push_back(std::move(frame));
    } else if (!stack.empty() && stack.back().code.empty() && line.find_first_not_of("^~ ") != std::string_view::npos) {
      stack.back().code = line;
    }
  }
  return stack;
}

std::string modulePath(std::string_view moduleStack) {
  // Only the last entry counts; neither paths nor classes hold a ';'.
  const auto semicolon = moduleStack.rfind(';');
  const auto entry = semicolon == std::string_view::npos ? moduleStack : moduleStack.substr(semicolon + 1);
  const auto first = entry.find(','), last = entry.rfind(',');
  if (first == std::string_view::npos || last <= first) return {};
  const auto path = entry.substr(first + 1, last - first - 1);
  const bool plain = path.find_first_of("[('") == std::string_view::npos && !path.starts_with("L__self__");
  return plain ? std::string(path) : dotted(path);
}

NodeOrigin MetadataReader::read(const Json& node, std::string_view target) {
  NodeOrigin origin;
  const Json* metadata = node.find("metadata");
  if (!metadata || !metadata->isObject()) return origin;
  origin.source = source(metadata->textAt("stack_trace"));
  origin.module = module(metadata->textAt("nn_module_stack"));
  const auto function = metadata->textAt("torch_fn"), from = metadata->textAt("from_node");
  if (target == "aten.alias.default")
    origin.stoppedGradient =
        function.find("detach") != std::string_view::npos || from.find("aten.detach.default") != std::string_view::npos;
  origin.ranWithoutGrad =
      target.starts_with("aten.") && !from.empty() && function.starts_with("wrap_with_set_grad_enabled");
  return origin;
}

SourceStackId MetadataReader::source(std::string_view stackTrace) {
  if (stackTrace.empty()) return {};
  auto [it, isNew] = sources_.try_emplace(stackTrace);
  if (!isNew) return it->second;
  const auto stack = parseStackTrace(stackTrace);
  if (stack.empty()) return {};
  noteCustomFunctions(stack);
  return it->second = document_.internSource(stack);
}

StringId MetadataReader::module(std::string_view moduleStack) {
  if (moduleStack.empty()) return {};
  auto [it, isNew] = modules_.try_emplace(moduleStack);
  if (isNew)
    if (const auto path = modulePath(moduleStack); !path.empty()) it->second = document_.intern(path);
  return it->second;
}

void MetadataReader::noteCustomFunctions(const SourceStack& stack) {
  for (const auto& frame : stack) {
    if (!callsCustomFunction(frame)) continue;
    auto place = frame.file + ":" + std::to_string(frame.line);
    if (seenFunctions_.insert(place).second) customFunctions_.push_back(std::move(place));
  }
}

std::string MetadataReader::placeOf(const Document& document, SourceStackId source) {
  const auto& stack = document.source(source);
  return stack.empty() ? std::string() : stack.back().file + ":" + std::to_string(stack.back().line);
}

}  // namespace retrograd::pt2
