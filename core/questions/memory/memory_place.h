#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/formats/memory/snapshot.h"

namespace retrograd {

/// Which part of a training step a stack belongs to, as far as its functions say.
enum class StepPart : std::uint8_t {
  unknown,    ///< nothing is known: the history has no stacks
  setup,      ///< a module is moved to a device or made there
  forward,    ///< any other line of Python
  recompute,  ///< a checkpoint runs its forward again
  backward,   ///< autograd: its own thread has no frames of Python, or begins in PyTorch's
  optimizer,  ///< an optimizer's step
  zeroGrad,   ///< gradients are given back
  workspace   ///< a library's workspace, which the functions of C++ name
};

/// What the stacks of a snapshot say, each looked at once.
class MemoryPlaces {
 public:
  explicit MemoryPlaces(const MemorySnapshot& snapshot);

  StepPart part(std::uint32_t place) const { return parts_[place]; }
  /// The part of the step in which memory is let go; unknown where the history has no stacks of that
  /// (`context="alloc"`).
  StepPart partOfFree(std::uint32_t place) const {
    return freesHaveStacks_ || !isEmpty(place) ? parts_[place] : StepPart::unknown;
  }
  bool isEmpty(std::uint32_t place) const { return snapshot_.places[place].stack == 0; }
  /// "train.py:14 in forward": the innermost line that is not of a library; else the innermost; else says that there
  /// is none.
  std::string line(std::uint32_t place) const;
  /// "train.py:14": the same line without its function, and the innermost line whosever it is; empty where the stack
  /// has none.
  std::string shortLine(std::uint32_t place) const;
  std::string innermostLine(std::uint32_t place) const;
  /// The node of a graph that the innermost frame which knows one names; empty where none does.
  std::string_view graphNode(std::uint32_t place) const;
  /// A file of code that torch.fx generated ("<eval_with_key>.3") and the line in it; line -1 where there is none.
  std::pair<std::int32_t, std::int32_t> graphLine(std::uint32_t place) const;
  /// Calls `isIt(file, line)` for the frames from the innermost on until it says so.
  template <class IsIt>
  void findFrame(std::uint32_t place, const IsIt& isIt) const {
    for (const auto id : snapshot_.stack(snapshot_.places[place].stack))
      if (isIt(snapshot_.text(snapshot_.frames[id].file), snapshot_.frames[id].line)) return;
  }
  /// "forward train.py:21 > train.py:14 > Linear": the calls of modules, outermost first, as far as frames say.
  std::string modules(std::uint32_t place) const;
  /// Whether the innermost frame is PyTorch's, as where an op was called through its Python function.
  bool innermostIsLibrary(std::uint32_t place) const;

 private:
  const MemoryFrame* lineFrame(std::uint32_t place) const;
  StepPart partOf(const MemoryPlace& place) const;
  bool isLibrary(const MemoryFrame& frame) const;
  std::string frameText(const MemoryFrame& frame) const;

  const MemorySnapshot& snapshot_;
  void lookAtEvents();

  bool allocsHavePython_ = false, freesHaveStacks_ = false;
  std::vector<StepPart> parts_;
};

}  // namespace retrograd
