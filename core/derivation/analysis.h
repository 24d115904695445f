#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/progress.h"
#include "core/derivation/registry.h"
#include "core/derivation/trace_inputs.h"
#include "core/formats/checkpoint/given_data.h"
#include "core/formats/model/model_file.h"
#include "core/split/partition.h"
#include "core/trace/links.h"
#include "core/trace/opaque.h"

namespace retrograd {

/// What a derivation is asked for: which values flow in, for which a gradient is wanted, and what is saved for
/// backward.
struct DerivationRequest {
  TensorMap inputs;                          ///< user inputs by argument name; absent ones: sample inputs, else drawn
  std::map<std::string, Argument> numbers;   ///< user inputs that are numbers
  std::map<std::string, InputShape> shapes;  ///< user inputs to draw in this shape where `inputs` has none
  GivenData data;          ///< weights instead of the file's, and a batch for inputs that `inputs` lacks
  TensorMap cotangents;    ///< by position among the user outputs as text ("0"); absent ones: see `exactCotangents`
  TensorMap higherInputs;  ///< order 2 and up: what flows into the traces that are differentiated, by name
                           ///< ("cotangent_0"); `cotangents` are then those of the highest order
  bool exactCotangents = false;  ///< only outputs listed in `cotangents` get one (a reference's cot.*)
  std::optional<std::vector<std::string>>
      gradInputs;                  ///< user inputs to differentiate; absent: all floating and complex
  TensorMap filled;                ///< results of opaque ops by the value's name, instead of what cannot be computed
  std::uint64_t seed = 0;          ///< for drawn inputs and cotangents and for random ops
  std::optional<DType> precision;  ///< float64, float32, bfloat16 or float16 instead of the model's own (precision.h);
                                   ///< absent: as in the file
  std::optional<Device> device;    ///< where it is said to run: parameters, inputs and device literals are moved there;
                                   ///< absent: what printed traces say, else the CPU
  PartitionOptions partition;      ///< what is saved for backward and what is recomputed
  int order = 1;                   ///< 2: the joint (or backward) is differentiated again, and so on (higher_order.h)
  TraceKind again = TraceKind::joint;         ///< what is differentiated again: joint or backward
  bool createGraph = false;                   ///< take formulas that can be differentiated again
  std::shared_ptr<const RuleRegistry> rules;  ///< registered gradient rules (registry.h); none: LibTorch's own alone
};

/// Times of the passes, in seconds.
struct AnalysisTimes {
  double read = 0, trace = 0, joint = 0, split = 0;
};

/// What was derived: traces over one document, and what belongs to them.
struct Derivation {
  Trace joint, forward, backward;  ///< joint.ops empty where the derivation was not possible (see problems)
  OriginLinks links;
  std::map<ValueId, TensorData> constants;  ///< literals inside formulas
  std::map<ValueId, ValueId> readLate;      ///< JointResult::readLate, for a further derivative
  std::set<std::pair<BoundSymbolId, BoundSymbolId>>
      lateReads;  ///< ops whose backward reads memory as it is after a later op wrote to it, with that op
  std::map<ValueId, std::vector<std::int64_t>>
      gradientSizes;  ///< inputs whose gradients have other sizes than they themselves
  std::map<std::size_t, ValueId>
      mutated;  ///< computation input -> the value its in-place writes leave at the forward's end
  std::map<ValueId, ValueId> gradients;    ///< as JointResult::gradients; gradientOf() asks it
  std::shared_ptr<const LeftOut> leftOut;  ///< what opaque ops keep from being computed; null where there are none
  std::map<std::size_t, BoundSymbolId>
      refusedGradients;  ///< computation input -> the opaque op that its gradient would pass through
  std::vector<std::string>
      printedDifferences;  ///< where traces that a text file gives are not those derived from its computation
  std::vector<std::string>
      dataDependent;  ///< why the traces hold for these inputs only; empty: they do not depend on data
  std::vector<Problem> problems;
  AnalysisTimes times;

  bool derived() const { return !joint.ops.empty() || !joint.history.empty(); }
};

/// What only a session file brings along (torch/reading/session_file.h).
struct SessionContents {
  std::string sessionPath;                   ///< that it was opened from; empty: none
  std::map<ValueId, TensorData> values;      ///< of a run, where the session file holds them
  std::map<ValueId, Argument> valueNumbers;  ///< the same for values that are not tensors
  std::map<std::string, std::string>
      marks;  ///< breakpoints, notes and the like, kept for the window: JSON texts by name
};

/// A model opened: what was read, what was asked for, and, as its parts, what was derived and what a session file adds.
/// Immutable once made; shared by window, command line, tests.
struct Analysis : Derivation, SessionContents {
  ModelFile file;
  std::shared_ptr<const Document> document;
  DerivationRequest request;  ///< with the inputs, numbers and cotangents that were used, drawn ones included
  Device device;              ///< that it is derived for; tensors of this struct are on the CPU all the same
  std::vector<std::string> inputSource;  ///< for people: "x: sample input of the archive", "y: drawn from seed 0"
  std::shared_ptr<const Analysis>
      differentiated;  ///< order 2 and up: what this is the derivative of; its joint or backward is the computation

  const Computation& computation() const { return file.computation; }
};

}  // namespace retrograd
