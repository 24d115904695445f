#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/derivation/analysis.h"

namespace retrograd {

struct SaveSessionOptions {
  bool embed = false;  ///< weights, constants and sample inputs go into the file; else it refers to the model file
  bool values =
      false;  ///< run forward and backward, and store every value; else those stay that the analysis brought along
  std::optional<std::map<std::string, std::string>> marks;  ///< instead of the analysis' own: JSON texts by name
  int threads =
      0;  ///< that the session's runs shall use; 0: as the analysis brought along, else as many as kernels use now
};

/// Whether the session holds the weights whatever the options say: those of another precision or of a checkpoint are
/// not the model file's, a repro script would have to run again to be read, and printed traces and a job's log only
/// describe them. A session that holds its weights goes on holding them when it is saved again.
bool embedsWeights(const Analysis& analysis, const SaveSessionOptions& options);

/// Saves all that an analysis is (docs/session-file.md), whole or not at all. Throws Error(unsupportedOp) where the
/// traces call an op that no file may name, which LibTorch's formulas may; Error(badUse, io) as writeSessionFile does;
/// Error(execution, cancelled).
void saveSession(const Analysis& analysis, const std::string& path, const SaveSessionOptions& options = {},
                 const Progress& progress = {});

/// Opens a session file as it was saved, with the same ids; nothing is derived. `rules` are those that deriving again
/// will use. Throws Error(badInput) as readSessionFile does.
std::shared_ptr<const Analysis> loadSession(const std::string& path, const Progress& progress = {},
                                            const std::shared_ptr<const RuleRegistry>& rules = {});

/// Threads that a session file says its runs use, so that they make the same bits; none for an analysis that does not
/// come from one.
std::optional<int> savedThreads(const Analysis& analysis);

/// What leads from the model to this analysis once more, over all orders: inputs, numbers and cotangents of the first
/// derivation, seed, partition and the rest.
DerivationRequest optionsFromModel(const Analysis& analysis);
/// The same, but for what `given` asks for; with other inputs the cotangents are drawn again where none are given.
DerivationRequest overlaid(const Analysis& stored, const DerivationRequest& given);

/// Derives the model of a loaded session once more, on a document of its own; says so in a note.
std::shared_ptr<const Analysis> deriveAnew(const Analysis& stored, const DerivationRequest& options,
                                           const Progress& progress = {});

/// The model of a session file with the inputs it was saved with as sample inputs: to be given to analyse().
ModelFile modelOfSession(const std::string& path, const Progress& progress = {});

}  // namespace retrograd
