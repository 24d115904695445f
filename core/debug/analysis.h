#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/formats/model_file.h"
#include "core/grad/registry.h"
#include "core/split/partition.h"
#include "core/trace/links.h"
#include "core/tracing/trace_inputs.h"

namespace retrograd {

/// What the derivation starts from: which values flow in and for which a gradient is wanted.
struct AnalysisOptions {
  TensorMap inputs;                          ///< user inputs by argument name; absent ones: sample inputs, else drawn
  std::map<std::string, Argument> numbers;   ///< user inputs that are numbers
  std::map<std::string, InputShape> shapes;  ///< user inputs to draw in this shape where `inputs` has none
  TensorMap cotangents;                      ///< by position among the user outputs as text ("0"); absent ones: see `exactCotangents`
  bool exactCotangents = false;              ///< only outputs listed in `cotangents` get one (a reference's cot.*)
  std::optional<std::vector<std::string>> gradInputs;  ///< user inputs to differentiate; absent: all floating and complex
  std::uint64_t seed = 0;                    ///< for drawn inputs and cotangents and for random ops
  std::optional<DType> precision;            ///< float64, float32, bfloat16 or float16 in place of the model's own (precision.h); absent: as in the file
  std::optional<Device> device;              ///< where it is said to run: parameters, inputs and device literals are moved there; absent:
                                             ///< what printed traces say, else the CPU
  PartitionOptions partition;                ///< what is saved for backward and what is recomputed
  int order = 1;                             ///< 2: the joint (or backward) is differentiated again, and so on (higher_order.h)
  TraceKind again = TraceKind::joint;        ///< what is differentiated again: joint or backward
  bool createGraph = false;                  ///< take formulas that can be differentiated again
  std::shared_ptr<const RuleRegistry> rules; ///< registered gradient rules (registry.h); none: LibTorch's own alone
};

/// Times of the passes, in seconds.
struct AnalysisTimes {
  double read = 0, trace = 0, joint = 0, split = 0;
};

/// A model opened: the computation and what was derived from it. Immutable once made; shared by window, command line, tests.
struct Analysis {
  ModelFile file;
  std::shared_ptr<const Document> document;
  Trace joint, forward, backward;            ///< joint.ops empty where the derivation was not possible (see problems)
  OriginLinks links;
  TensorMap inputs;                          ///< the user inputs used
  std::map<std::string, Argument> numbers;
  TensorMap cotangents;                      ///< by position among the user outputs as text
  std::vector<std::string> inputSource;      ///< for people: "x: sample input of the archive", "y: drawn from seed 0"
  std::uint64_t seed = 0;
  PartitionOptions partition;
  std::shared_ptr<const RuleRegistry> rules;
  std::shared_ptr<const Analysis> differentiated;  ///< order 2 and up: what this is the derivative of; its joint or backward is the computation
  std::optional<std::vector<std::string>> gradInputs;  ///< as AnalysisOptions has it
  std::optional<DType> precision;            ///< as AnalysisOptions has it
  Device device;                             ///< as AnalysisOptions has it; tensors of this struct are on the CPU all the same
  std::vector<Problem> problems;
  TensorMap constants;                       ///< literals inside formulas, by value id as text
  std::map<std::size_t, ValueId> mutated;    ///< computation input -> the value its in-place writes leave at the forward's end
  std::map<ValueId, ValueId> gradients;      ///< as JointResult::gradients; gradientOf() asks it
  std::vector<std::string> printedDifferences;  ///< where traces that a text file gives are not those derived from its computation
  std::vector<std::string> dataDependent;    ///< why the traces hold for these inputs only; empty: they do not depend on data
  AnalysisTimes times;

  // What only a session file brings (session_file.h).
  std::string sessionPath;                   ///< that it was opened from; empty: none
  std::map<ValueId, TensorData> values;      ///< of a run, where the session file holds them
  std::map<ValueId, Argument> valueNumbers;  ///< the same for values that are no tensors
  std::map<std::string, std::string> marks;  ///< breakpoints, notes and the like, kept for the window: JSON texts by name

  const Computation& computation() const { return file.computation; }
  bool derived() const { return !joint.ops.empty() || !joint.history.empty(); }
};

/// Whether the computation writes to this input in place, directly or through a view.
bool isWritten(const ModelFile& file, ValueId input);

/// Derives joint, forward and backward anew, `repeats` times with an empty rule cache and `repeats` times with a warm one.
struct DerivationTimes {
  std::vector<double> joint, jointWarm, split;   ///< seconds, one entry a repeat
};
DerivationTimes timeDerivation(const Analysis& analysis, int repeats);

/// Reads a file of any kind (read_model.h) and derives joint, forward and backward. Unknown ops leave the computation alone, with a Problem each. A session file
/// opens as it was saved; where `options` ask for anything, its model is derived anew with that and what else it was saved with.
/// Deriving for a device needs no such device; running does (execution/device.h).
/// Throws Error (badInput, unsupportedOp, cancelled, ...) that names the file or the op.
std::shared_ptr<const Analysis> openModel(const std::string& path, const AnalysisOptions& options = {}, const Progress& progress = {});
/// The same from a file that was read already.
std::shared_ptr<const Analysis> analyse(ModelFile file, const AnalysisOptions& options = {}, const Progress& progress = {});

}  // namespace retrograd
