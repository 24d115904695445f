#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <map>
#include <optional>
#include <vector>

#include "core/stepping/remake.h"
#include "core/torch/execution/evaluator.h"
#include "core/torch/session/live_memory.h"

namespace retrograd {

/// What leads a run from position `end` back to `begin`. All that was alive at `begin` is alive still, held here, or
/// made again.
struct Undo {
  struct Write {
    ValueId value;
    at::Tensor tensor, before;  ///< `before`: a copy of its content
  };
  /// A value that was there at `begin` and was let go for good.
  struct Remade {
    ValueId value;
    ValueId shares;  ///< on the same memory and there at `end`; none: `plan` makes it
    std::vector<std::int64_t> sizes, strides;
    std::int64_t offset = 0;
    at::TensorOptions options;
  };
  std::size_t begin = 0, end = 0;
  std::vector<std::pair<ValueId, c10::IValue>> released;  ///< values there at `begin` that were let go
  std::vector<Remade> remade;                             ///< the rest of these
  std::vector<std::size_t> plan;  ///< positions of the ops that make them, to be run in this order at `begin`
  std::vector<std::pair<ValueId, c10::IValue>>
      rebound;                 ///< borrowed values that became copies; to be undone from the last to the first
  std::vector<Write> written;  ///< likewise
  std::optional<Evaluator::Generators> generators;  ///< before the first draw; none where nothing draws

  std::size_t length() const { return end - begin; }
  /// Ops that run on one step back from `end`, at most.
  std::size_t reruns() const { return length() - 1 + plan.size(); }
};

/// A value of Undo::remade as a view of the one it shares memory with.
at::Tensor viewOf(const at::Tensor& shared, const Undo::Remade& remade);

/// The way back of a run within a memory budget: a chain of Undos, one an op while there is room.
///
/// Beyond the budget, memory is let go that a handful of ops can make again from what is there when it is needed
/// (`Remaking`). Where that is not enough, the oldest neighbours are joined, at first to pairs, then to fours, and so
/// on, which frees what was made and let go between their ends. A position inside an Undo is reached by going back to
/// its `begin` and running forward. reruns() says how many a step back runs at most.
class History {
 public:
  History(Remaking& remaking, const Document& document, LiveMemory& memory, std::int64_t budget)
      : remaking_(remaking),
        document_(document),
        memory_(memory),
        budget_(budget),
        light_(undos_.end()),
        next_(undos_.end()) {}

  void clear();
  void setBudget(std::int64_t budget);
  bool empty() const { return undos_.empty(); }
  /// Of the op just before the run's position. Contents put there by hand are noted with writeBefore() and
  /// rebindBefore().
  void push(Undo undo);
  /// Takes the last one off the chain; what it holds is the caller's.
  Undo pop();
  /// The content of `tensor` is about to change, or the value to be bound again, at the run's position.
  void writeBefore(ValueId value, const at::Tensor& tensor);
  void rebindBefore(ValueId value, const c10::IValue& old);

  /// Memory that nothing else keeps: storages the run has let go, copies of contents, generator states.
  std::int64_t bytes() const { return memory_.keptBytes() + copies_; }
  std::size_t reruns() const;
  std::size_t size() const { return undos_.size(); }

 private:
  using Chain = std::map<std::size_t, Undo>;  // by `begin`
  /// What an Undo is without the memory of a value.
  struct Lighter {
    Undo* undo = nullptr;
    std::vector<Undo::Remade> remade;
    std::vector<std::size_t> plan;
  };

  void fit();
  void lighten(std::int64_t enough);
  void letGo(ValueId value);
  /// Fills `plan`, and `shares` of what is remade. Whether at most `most` ops do.
  bool plan(std::size_t begin, std::size_t end, std::vector<Undo::Remade>& remade, std::vector<std::size_t>& plan,
            std::size_t most) const;
  bool join(Chain::iterator at);
  bool madeWithin(ValueId value, const Undo& undo) const;
  /// Whether the memory under the value is younger than the Undo's begin.
  bool storageMadeWithin(ValueId value, const Undo& undo) const;
  void keep(const Undo& undo);
  void drop(const Undo& undo);

  Remaking& remaking_;
  const Document& document_;
  LiveMemory& memory_;
  std::int64_t budget_;
  std::int64_t copies_ = 0;
  Chain undos_;
  std::size_t most_ = 2;    ///< ops that may make again what an Undo has let go, at present
  Chain::iterator light_;   ///< all before it are as light as `most_` allows
  std::size_t length_ = 2;  ///< to which neighbours are joined at present
  Chain::iterator next_;    ///< all before it are joined as far as `length_` allows
};

}  // namespace retrograd
