#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/derivation/analysis.h"

namespace retrograd {

/// Memory that a training step allocates, as its traces say.
struct TracedAllocation {
  static constexpr std::int32_t none = -1;
  enum class Use : std::uint8_t { saved, result, gradient, temporary };

  std::uint64_t bytes = 0;
  std::string op, module;       ///< that makes it: "aten.addmm", "blocks.0.up"
  std::string line, innermost;  ///< of Python: "net.py:14" of the model, "linear.py:134"; empty: not known
  std::size_t lastForward = 0, firstBackward = 0;  ///< saved: who reads it last before the backward, and first in it
  bool isFloat32 = false;
  std::size_t position = 0, lastRead = 0;  ///< of ops: that makes it, that reads it last
  std::string reader, readerModule;        ///< saved: the op of the backward that reads it first
  std::string lastReader;                  ///< the op at lastRead
  std::string parameter;                   ///< gradient: of which
  std::string name;                        ///< of the value
  Use use = Use::temporary;
  bool backward = false;
  bool mayReuse = false;            ///< autograd may add in place instead
  std::int32_t continuedBy = none;  ///< the sum that may take this gradient's memory, in TracedStep::allocations
  std::string storedAs;             ///< the dtype that its only reader casts it to at once, where that is narrower
  std::int32_t node = -1;           ///< of a job's graph: which of its nodes; -1: the trace is of no job
  std::string copyOf;               ///< saved: the value, saved too, that it is a copy of
  BoundSymbolId maker;              ///< the op of the joint that makes it; invalid where that is not known
};

struct TracedParameter {
  std::string name;
  std::uint64_t bytes = 0;
};

/// Code that a compiler wrote for the forward or the backward: what each of its lines takes memory for.
struct TracedCode {
  struct Line {
    std::int32_t line = 0;
    std::int32_t allocation = TracedAllocation::none;  ///< what is in it in the end; none: not known
    bool isExact = false;                              ///< and nothing else was in it before
    std::string op;                                    ///< that writes it
  };
  std::string file;  ///< its name, without folders
  bool backward = false;
  std::vector<Line> lines;  ///< by line
};

/// What a step allocates in the order of its ops, and what is there before: the side of a join that knows names.
struct TracedStep {
  std::vector<TracedAllocation> allocations;  ///< by position
  std::vector<TracedParameter> parameters;    ///< and buffers, as a module lists them; shared ones once
  std::size_t forwardCount = 0;               ///< ops of the forward
  std::vector<TracedCode> code;               ///< of a job that Inductor compiled
};

TracedStep tracedStep(const Analysis& analysis);

/// Has the makers of a step of `traced` be ops of `shown`, which is the same program derived for another device: the op
/// that does the same, else the nearest that comes from the same op of the computation in the same direction.
void showMakersIn(TracedStep& step, const Analysis& traced, const Analysis& shown);

}  // namespace retrograd
