#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/ids.h"
#include "core/base/progress.h"
#include "core/formats/model/model_file.h"
#include "core/trace/symbol.h"
#include "core/trace/tensor_data.h"

namespace retrograd {

/// The part of a training step that an op ran in (docs/recording-format.md).
enum class Phase : std::uint8_t { forward, loss, backward, recompute, hook, accumulation, clip, optimizer, other };
inline constexpr int phaseCount = 9;
std::string_view name(Phase);
std::optional<Phase> phaseNamed(std::string_view name);

/// What a recording knows of an op of its document beyond the bound symbol.
struct StepOp {
  std::int64_t number = -1;  ///< in the recording; -1: a view or a write that the reader put there
  Phase phase = Phase::other;
  bool hasNode = false;        ///< autograd made a node when it was called
  bool moves = false;          ///< moves shards between ranks or layouts, below what autograd sees
  std::optional<bool> kept;    ///< of a detach: autograd made it, to keep a result; none: not known
  std::int32_t step = -1;      ///< the update that it belongs to, from 0
  std::int32_t backward = -1;  ///< the latest backward that had begun, counted in the recording from 0
  std::int32_t call = 0;       ///< of its module, in its step
  std::int32_t thread = 0;
  StringId node, hook, function, accumulates;     ///< as the format says; none: absent
  SourceStackId called;                           ///< where the backward of a backward op was called; none: elsewhere
  StringId generatorState;                        ///< data: what the generator is put to before it draws; none: goes on
  StringId opaque;                                ///< why nobody can run it; none: it runs
  std::uint32_t checksBegin = 0, checkCount = 0;  ///< in StepRecording::checks
  std::uint32_t putsBegin = 0, putCount = 0;      ///< in StepRecording::puts
  BoundSymbolId arrivedOf;  ///< the collective whose result the reader puts there; none: it is no such op
  BoundSymbolId since;      ///< of a write that was noticed later: the op that it came after; none: its line is known
};

/// A tensor's hash after its op, as the recording has it.
struct RecordedHash {
  ValueId value;
  std::optional<std::uint64_t> hash;  ///< none: not hashed
};

/// Recorded bytes of a value that no op of ours makes.
struct RecordedPut {
  ValueId value;
  std::string data;      ///< by name in StepRecording::data
  bool storage = false;  ///< the bytes of the whole storage; else the elements in logical order
};

/// What the loop calls a memory.
struct RecordedName {
  StorageId storage;
  std::string role;   ///< "parameter", "gathered" (of its shards), "buffer", "gradient", "optimizer"
  std::string name;   ///< of the parameter or buffer
  std::string state;  ///< of the optimizer: "exp_avg"

  bool isWeight() const { return role == "parameter" || role == "gathered"; }
};

/// A rank's part of a DTensor.
struct RecordedShard {
  StorageId storage;
  TensorMeta meta;                      ///< of the part: sizes and offset tell parts on one memory apart
  std::string role, name, state;        ///< as RecordedName has them
  std::vector<std::int64_t> sizes;      ///< of the whole
  std::vector<std::int64_t> mesh;       ///< ranks, row by row
  std::vector<std::int64_t> meshSizes;  ///< along each dimension of the mesh
  std::vector<std::string> dims;        ///< names of these; empty where they have none
  std::vector<std::string> placements;  ///< by dimension: "replicate", "shard 0", "partial sum"
};

/// A parameter of the model or of an optimizer.
struct RecordedParameter {
  std::string name;
  bool requiresGrad = true;
  std::string standsFor;  ///< of an optimizer's that the model does not have: the model's whose place it has
};

/// An optimizer that the recorder was given, or that made an update.
struct RecordedOptimizer {
  std::string name;  ///< of its class
  std::vector<RecordedParameter> parameters;
};

/// The exception that ended a recording, as the recorder answered it.
struct RecordedError {
  std::string answer;                                     ///< why, in a sentence; empty: it is none of PyTorch's own
  std::string line;                                       ///< "train.py:12 in step", that it was raised from
  std::vector<std::pair<std::string, std::int64_t>> ops;  ///< what each op did ("overwrote"), by its number
};

/// What results depend on, apart from the ops: of the machine that recorded.
struct RecordedSettings {
  std::string torch, cpu, machine, matmulPrecision, gpu;
  std::int64_t threads = 0;
  bool deterministic = false;
};

/// A recording of training steps, read: what a document does not hold.
struct StepRecording {
  std::string path;
  bool complete = false;
  std::string damage;  ///< why not all of it was read; empty: all was
  std::string error;   ///< the exception that ended the recording; empty: none
  RecordedError raised;
  std::string device;  ///< "cpu", "cuda"
  std::int64_t rank = 0, ranks = 1;
  RecordedSettings settings;
  std::vector<std::int64_t> updates;
  std::vector<RecordedParameter> parameters;  ///< of the model
  std::vector<RecordedOptimizer> optimizers;
  std::map<std::int32_t, std::vector<std::string>> inEval;  ///< by backward: modules that its forward called in eval
  std::vector<std::string> optimized;        ///< parameters that optimizers were given and that require a gradient
  std::vector<std::string> straightens;      ///< custom Functions whose backward asks for contiguous memory
  std::vector<std::string> withoutGradient;  ///< of these, those that had none at any update
  std::vector<RecordedName> names;
  std::vector<RecordedShard> shards;
  std::map<BoundSymbolId, std::vector<std::int64_t>> groups;  ///< of collectives: the ranks that take part
  std::int64_t linked = 0, ambiguous = 0, unlinked = 0;       ///< backward ops and their forward ops
  std::vector<std::string> notes;                             ///< of the recorder, for people
  std::vector<StepOp> ops;                                    ///< by op of the document
  std::vector<RecordedHash> checks;
  std::vector<RecordedPut> puts;
  TensorMap data;                                             ///< all that the data files hold, by name: bytes
  std::vector<ValueId> losses;                                ///< what each backward began with, where known
  std::map<std::string, ValueId> gradients;                   ///< of parameters, by name: the last value
  std::map<std::string, std::vector<ValueId>> states;         ///< of the optimizer, by parameter
  std::vector<std::pair<std::int64_t, std::string>> missing;  ///< storages without their bytes, and why
  std::size_t forwardCount = 0;                               ///< ops before the first backward

  const StepOp& op(BoundSymbolId id) const { return ops[id.index]; }
  bool has(BoundSymbolId id) const { return id && static_cast<std::size_t>(id.index) < ops.size(); }
};

/// A stretch of ops of one step and phase. Hooks, recomputation and accumulation within a backward are part of it.
struct RecordedSection {
  std::size_t begin = 0;  ///< among the ops that were asked for
  std::string title;      ///< "step 0, backward 1"
};
/// `ops`: of the recording, in their order.
std::vector<RecordedSection> sectionsOf(const StepRecording& recording, const std::vector<BoundSymbolId>& ops);

/// "train.py:12 in step", the line of the loop or model that an op was called in; empty where it is not known.
std::string recordedLine(const Document& document, BoundSymbolId op);
/// The same of a stack.
std::string recordedLine(const Document& document, SourceStackId source);
/// Who wrote memory, and where: "aten.mul_.default at train.py:12 in step", "code outside of PyTorch's ops, between
/// train.py:12 in step and train.py:14 in step".
std::string writerText(const Document& document, const StepRecording& recording, BoundSymbolId op);

/// Whether `path` is a folder that `retrograd.record` wrote.
bool isRecording(const std::string& path);
/// The recordings in a folder that has one of each rank, in the order of the ranks; empty for any other.
std::vector<std::string> ranksIn(const std::string& path);

/// Reads a recording (docs/recording-format.md) as a computation: its ops in the order in which they ran. A stream that
/// breaks off is read up to there, and `damage` says so. Nothing that the folder names is run: an op that `lookup` does
/// not know is opaque. Offsets and sizes are checked against storages, links against ops. Throws Error(badInput) naming
/// file and line for a recording that contradicts itself or is of a newer version.
ModelFile readRecording(const std::string& path, const SymbolLookup& lookup, const Progress& progress = {});
/// The same from the text of its stream; `data` by name. For tests and fuzzing.
ModelFile readRecordingText(std::string_view stream, StepRecording recording, const SymbolLookup& lookup,
                            const Progress& progress = {});

}  // namespace retrograd
