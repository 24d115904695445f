#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/model/model_file.h"
#include "core/formats/zip/archive.h"

namespace retrograd {

/// What a session file (.retrograd) holds: a model as it was opened, with all that was derived from it, under the same
/// ids. The format is described in docs/session-file.md. core/torch/reading/session_file.h turns it into an Analysis
/// and back.
struct SessionFile {
  static constexpr std::int64_t format = 1;

  ModelFile
      model;  ///< `path`: absolute, where the model file was found; where the weights are embedded, where it once was
  std::string relativePath;        ///< the same from the session file's folder, as it was when saved; filled by reading
  Trace joint, forward, backward;  ///< without history where nothing was derived

  TensorMap inputs, cotangents;
  std::map<std::string, Argument> numbers;
  std::vector<std::string> inputSource;
  std::map<ValueId, TensorData> constants;
  std::map<std::size_t, ValueId> mutated;
  std::map<ValueId, ValueId> gradients;
  std::vector<std::string> dataDependent;
  std::vector<Problem> problems;

  std::uint64_t seed = 0;
  bool minCut = false;
  std::optional<std::int64_t> budget;
  std::vector<std::string> recompute;
  bool regions = true;
  std::optional<std::vector<std::string>> gradInputs;
  std::optional<DType> precision;         ///< that took the place of the model's own
  std::map<std::string, double> seconds;  ///< by pass

  std::map<ValueId, TensorData> values;      ///< of a run, if wanted
  std::map<ValueId, Argument> valueNumbers;  ///< the same for values that are not tensors
  std::map<std::string, std::string>
      marks;  ///< a window's breakpoints, notes and the like: JSON texts by name, kept verbatim

  /// Gradients of gradients: the session whose joint or backward trace is this one's computation, under the same ids.
  /// Its `model.embedded` and `marks` are not asked.
  std::shared_ptr<SessionFile> differentiated;

  bool derived() const { return !joint.history.empty(); }
};

/// Writes the file whole or not at all. Throws Error(badUse) for marks other than JSON, for a name of marks other than
/// letters, digits, '-' and '_', and where the file would refer to a model file that is gone or was changed since it
/// was read; Error(internal) for a session that reading would refuse; Error(io).
void writeSessionFile(const std::string& path, const SessionFile& session, const std::string& openedFrom = {});

/// Reads and verifies. Ops are looked up again: what the file says of an op is only compared. Every id is in range,
/// sizes fit the bytes there are, the traces pass the verifier and agree with one another, and a trace that can be run
/// names only ops that `lookup` gives. Throws Error(badInput) naming the file, the record and the row; for a model file
/// that is missing or changed: naming it and what to do.
SessionFile readSessionFile(const std::string& path, const SymbolLookup& lookup, const Progress& progress = {});

/// The first half: all but what lies in the model file. Weights, constants and sample inputs there have no data yet.
SessionFile readSessionRecords(const std::shared_ptr<const Archive>& archive, const SymbolLookup& lookup,
                               const Progress& progress);

}  // namespace retrograd
