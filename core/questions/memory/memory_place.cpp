#include "core/questions/memory/memory_place.h"

#include <algorithm>

namespace retrograd {
namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool isPython(std::string_view file) { return file.ends_with(".py") || file.starts_with("<"); }

std::string_view baseName(std::string_view file) {
  const auto slash = file.rfind('/');
  return slash == std::string_view::npos ? file : file.substr(slash + 1);
}

/// "linear" of ".../torch/nn/modules/linear.py"
std::string_view stem(std::string_view file) {
  const auto base = baseName(file);
  return base.substr(0, base.rfind('.'));
}

/// A file that Inductor writes: its name is a hash in base 32, whatever the folder of its cache is.
bool isGenerated(std::string_view file) {
  constexpr std::size_t length = 52;
  const auto name = stem(file);
  return has(file, "/torchinductor_") ||
         (name.size() == length && name.starts_with('c') && file.ends_with(".py") &&
          std::ranges::all_of(name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '2' && c <= '7'); }));
}

bool isTorch(std::string_view file) { return has(file, "/torch/"); }

std::string baseLine(std::string_view file, int line) {
  return std::string(baseName(file)) + ":" + std::to_string(line);
}

}  // namespace

MemoryPlaces::MemoryPlaces(const MemorySnapshot& snapshot) : snapshot_(snapshot) {
  lookAtEvents();
  parts_.reserve(snapshot.places.size());
  for (const auto& place : snapshot.places) parts_.push_back(partOf(place));
}

/// Blocks may have stacks where events have none (`context="state"`), and requests where frees have none.
void MemoryPlaces::lookAtEvents() {
  std::vector<std::uint8_t> hasPython(snapshot_.places.size());
  for (std::size_t place = 0; place < hasPython.size(); ++place)
    hasPython[place] = std::ranges::any_of(snapshot_.stack(snapshot_.places[place].stack), [&](std::uint32_t id) {
      return isPython(snapshot_.text(snapshot_.frames[id].file));
    });
  for (const auto& log : snapshot_.events) {
    EventLog::Cursor cursor(log);
    for (MemoryEvent event; cursor.next(event) && !(allocsHavePython_ && freesHaveStacks_);) {
      if (event.action == MemoryAction::alloc) allocsHavePython_ |= hasPython[event.place] != 0;
      if (event.action == MemoryAction::freeCompleted) freesHaveStacks_ |= !isEmpty(event.place);
    }
  }
}

StepPart MemoryPlaces::partOf(const MemoryPlace& place) const {
  const MemoryFrame* outermost = nullptr;
  bool recomputes = false, goesBack = false, zeroes = false, steps = false, moves = false;
  for (const auto id : snapshot_.stack(place.stack)) {
    const auto& frame = snapshot_.frames[id];
    const auto function = snapshot_.text(frame.function), file = snapshot_.text(frame.file);
    if (!isPython(file)) {
      if (has(function, "Workspace")) return StepPart::workspace;
      goesBack |=
          has(function, "autograd::Engine::evaluate_function") || has(function, "autograd::Engine::thread_main");
      continue;
    }
    outermost = &frame;
    zeroes |= function == "zero_grad";
    steps |= has(file, "/torch/optim/") && function != "zero_grad" && function != "__init__";
    moves |= has(file, "/torch/nn/modules/module.py") && function == "_apply";
    moves |= has(file, "/torch/nn/") && (function == "reset_parameters" || function == "__init__");
    recomputes |= has(file, "/torch/utils/checkpoint.py") &&
                  (function == "unpack_hook" || function == "recompute_fn" || function == "backward");
    goesBack |= has(file, "/torch/autograd/__init__.py") &&
                (function == "backward" || function == "grad" || function == "_make_grads");
  }
  if (zeroes) return StepPart::zeroGrad;
  if (steps) return StepPart::optimizer;
  if (recomputes) return StepPart::recompute;
  if (!outermost) return allocsHavePython_ || goesBack ? StepPart::backward : StepPart::unknown;
  // What a person starts begins in a file of theirs; autograd's threads begin in PyTorch.
  if (goesBack || isTorch(snapshot_.text(outermost->file))) return StepPart::backward;
  return moves ? StepPart::setup : StepPart::forward;
}

bool MemoryPlaces::isLibrary(const MemoryFrame& frame) const {
  const auto file = snapshot_.text(frame.file);
  return !isPython(file) || file.starts_with("<") || has(file, "/site-packages/") || has(file, "/dist-packages/") ||
         isTorch(file) || has(file, "/lib/python3") || isGenerated(file);
}

bool MemoryPlaces::innermostIsLibrary(std::uint32_t place) const {
  const auto stack = snapshot_.stack(snapshot_.places[place].stack);
  return !stack.empty() && isLibrary(snapshot_.frames[stack.front()]);
}

const MemoryFrame* MemoryPlaces::lineFrame(std::uint32_t place) const {
  const auto stack = snapshot_.stack(snapshot_.places[place].stack);
  for (const auto id : stack)
    if (!isLibrary(snapshot_.frames[id])) return &snapshot_.frames[id];
  return stack.empty() ? nullptr : &snapshot_.frames[stack.front()];
}

std::string MemoryPlaces::frameText(const MemoryFrame& frame) const {
  auto text = baseLine(snapshot_.text(frame.file), frame.line);
  if (const auto function = snapshot_.text(frame.function); !function.empty() && function != "<module>")
    text += " in " + std::string(function);
  return text;
}

std::string MemoryPlaces::line(std::uint32_t place) const {
  const auto* frame = lineFrame(place);
  if (frame) return frameText(*frame);
  return parts_[place] == StepPart::backward ? "autograd's thread (without lines)" : "without lines";
}

std::string MemoryPlaces::shortLine(std::uint32_t place) const {
  const auto* frame = lineFrame(place);
  return frame && !isLibrary(*frame) ? baseLine(snapshot_.text(frame->file), frame->line) : std::string();
}

std::string MemoryPlaces::innermostLine(std::uint32_t place) const {
  const auto stack = snapshot_.stack(snapshot_.places[place].stack);
  if (stack.empty()) return {};
  const auto& frame = snapshot_.frames[stack.front()];
  return baseLine(snapshot_.text(frame.file), frame.line);
}

std::string_view MemoryPlaces::graphNode(std::uint32_t place) const {
  for (const auto id : snapshot_.stack(snapshot_.places[place].stack))
    if (const auto node = snapshot_.text(snapshot_.frames[id].node); !node.empty()) return node;
  return {};
}

std::pair<std::int32_t, std::int32_t> MemoryPlaces::graphLine(std::uint32_t place) const {
  for (const auto id : snapshot_.stack(snapshot_.places[place].stack)) {
    const auto& frame = snapshot_.frames[id];
    if (snapshot_.text(frame.file).starts_with("<eval_with_key>")) return {frame.file.index, frame.line};
  }
  return {-1, -1};
}

std::string MemoryPlaces::modules(std::uint32_t place) const {
  std::string path;
  const auto stack = snapshot_.stack(snapshot_.places[place].stack);
  for (auto i = stack.size(); i-- > 0;) {
    const auto& frame = snapshot_.frames[stack[i]];
    const auto file = snapshot_.text(frame.file);
    if (snapshot_.text(frame.function) != "forward") continue;
    if (isLibrary(frame) && !has(file, "/torch/nn/modules/")) continue;
    path += path.empty() ? "" : " > ";
    if (isLibrary(frame)) path += stem(file);
    else path += std::string(baseName(file)) + ":" + std::to_string(frame.line);
  }
  return path.empty() ? line(place) : path;
}

}  // namespace retrograd
