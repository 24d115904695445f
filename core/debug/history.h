#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <list>
#include <optional>
#include <vector>

#include "core/debug/live_memory.h"
#include "core/execution/evaluator.h"
#include "core/trace/document.h"

namespace retrograd {

/// What leads a run from position `end` back to `begin`. All that was alive at `begin` is either alive still or held here.
struct Undo {
  struct Write {
    ValueId value;
    at::Tensor tensor, before;  ///< `before`: a copy of its content
  };
  std::size_t begin = 0, end = 0;
  std::vector<std::pair<ValueId, c10::IValue>> released;  ///< values there at `begin` that were let go
  std::vector<std::pair<ValueId, c10::IValue>> rebound;   ///< borrowed values that became copies; to be undone from the last to the first
  std::vector<Write> written;                             ///< likewise
  std::optional<Evaluator::Generators> generators;        ///< before the first draw; none where nothing draws

  std::size_t length() const { return end - begin; }
};

/// The way back of a run within a memory budget: a chain of Undos, one an op while there is room. Beyond the budget the oldest neighbours are
/// joined, at first to pairs, then to fours, and so on, which frees what was made and let go between their ends. A position inside an Undo is
/// reached by going back to its `begin` and running forward; how far that is at most, longest() tells.
///
/// `producedAt`: by value, the position of the op that makes it, -1 for what is there from the start.
class History {
 public:
  History(const Document& document, std::vector<std::int32_t> producedAt, LiveMemory& memory, std::int64_t budget)
      : document_(document), producedAt_(std::move(producedAt)), memory_(memory), budget_(budget), next_(undos_.begin()) {}

  void clear();
  bool empty() const { return undos_.empty(); }
  /// Of the op just before the run's position. Contents put there by hand are noted with writeBefore() and rebindBefore().
  void push(Undo undo);
  /// Takes the last one off the chain; what it holds is the caller's.
  Undo pop();
  /// The content of `tensor` is about to change, or the value to be bound anew, at the run's position.
  void writeBefore(ValueId value, const at::Tensor& tensor);
  void rebindBefore(ValueId value, const c10::IValue& old);

  /// Memory that nothing else keeps: storages the run has let go, copies of contents, generator states.
  std::int64_t bytes() const { return memory_.keptBytes() + copies_; }
  std::size_t longest() const;
  std::size_t size() const { return undos_.size(); }

 private:
  void fit();
  void join(std::list<Undo>::iterator at);
  bool madeWithin(ValueId value, const Undo& undo) const;
  /// Whether the memory under the value is younger than the Undo's begin.
  bool storageMadeWithin(ValueId value, const Undo& undo) const;
  void keep(const Undo& undo);
  void drop(const Undo& undo);

  const Document& document_;
  std::vector<std::int32_t> producedAt_;
  LiveMemory& memory_;
  std::int64_t budget_;
  std::int64_t copies_ = 0;
  std::list<Undo> undos_;
  std::size_t length_ = 2;               ///< to which neighbours are joined at present
  std::list<Undo>::iterator next_;       ///< all before it are joined as far as `length_` allows
};

}  // namespace retrograd
