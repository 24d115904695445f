#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/tensor_statistics.h"
#include "core/derivation/analysis.h"

namespace retrograd {

/// What an optimizer keeps of a parameter, after an update: its moments, its count of steps.
struct OptimizerState {
  std::string name;  ///< as the optimizer calls it: "exp_avg_sq"
  TensorStatistics statistics;
};

/// What one update did to one parameter.
struct ParameterUpdate {
  std::string parameter;
  ValueId value;                             ///< the parameter as the update left it; none: the update did not write it
  std::optional<TensorStatistics> gradient;  ///< as backward left it, unscaled; none: it has none
  std::optional<TensorStatistics> read;      ///< the gradient that the optimizer read; none: it read none
  /// What scaled the gradient between backward and update: clipping, or other code of the loop.
  enum class Change : std::uint8_t { none, clipping, other };
  Change change = Change::none;
  std::optional<TensorStatistics> weight;  ///< before the update
  std::optional<TensorStatistics> update;  ///< what was added to the weight; none: nothing wrote it
  std::vector<OptimizerState> states;      ///< by name
  std::optional<double> along;             ///< inner product of the update and the gradient that was read
  bool beginsStates = false;               ///< the optimizer made its states in this update
  std::string badBefore;                   ///< the state that was not finite before the update; empty: none
  std::string zeroRoot;  ///< the second moment that is 0 wherever the update is not finite; empty: none is

  /// What the gradient was multiplied by in between; none where nothing was, and where a norm is 0 or not finite.
  std::optional<double> clipFactor() const;
  /// Norm of the update over norm of the weight.
  std::optional<double> ratio() const;
  bool isFinite() const { return !update || update->nan + update->inf == 0; }
};

/// One update of the optimizers in a recording.
struct OptimizerStep {
  std::int32_t step = -1;                   ///< as the loop counts updates, from 0
  std::int32_t backward = -1;               ///< the backward before it, counted in the recording
  bool wasSkipped = false;                  ///< by a scaler that found a gradient that is not finite
  double scale = 0;                         ///< by which a scaler had multiplied the loss; 0: there is none
  double nextScale = 0;                     ///< what the scaler goes on with; 0: not known
  BoundSymbolId op;                         ///< the first that wrote a weight; none: none did
  std::string line;                         ///< of that op
  std::vector<ParameterUpdate> parameters;  ///< in the order in which the optimizer read them
};

/// The first update that is not finite, and why.
struct BadUpdate {
  std::size_t step = 0, parameter = 0;  ///< in OptimizerUpdates
  std::string why;                      ///< "its second moment (exp_avg_sq) is 0 in 3 of 8 elements, ..."
  BoundSymbolId op;                     ///< that made it of finite numbers; none where it is not known
  std::string line;                     ///< of that op: "train.py:12 in step"; may be empty
};

/// The updates of a recorded step, of any optimizer: the weights before and after are compared.
struct OptimizerUpdates {
  std::vector<OptimizerStep> steps;
  std::optional<BadUpdate> firstBad;
  std::string incomplete;  ///< why the run ended before all updates were seen; empty: all were
};

/// Whether an op of this name is the one by which a scaler divides gradients by its scale and looks for what is not
/// finite.
bool unscales(std::string_view op);

/// Runs the recorded step again. Throws Error(cancelled), Error(badUse) for a model.
OptimizerUpdates optimizerUpdates(const std::shared_ptr<const Analysis>& analysis, const Progress& progress = {});

/// The norm over all elements: NaN where there is one, then infinite where there is one.
double normOfAll(const TensorStatistics& statistics);

/// "step 7", "step 7, backward 2" where a step has several.
std::string titleOf(const OptimizerUpdates& updates, const OptimizerStep& step);
/// "the scaler skipped it: the gradient of first.weight has 2 NaN or infinities at scale 65536; the next scale is
/// 32768".
std::string whySkipped(const OptimizerStep& step);
/// "the update of first.weight in step 7 is not finite: ...; #57 aten.addcdiv_.default, train.py:12 in step".
std::string describe(const OptimizerUpdates& updates, const Document& document, const BadUpdate& bad);

/// A table for people: a heading for each update, a row for each parameter; docs/updates.schema.json for programs.
/// `parameter`: only this one; empty: all.
std::string textOf(const OptimizerUpdates& updates, const Document& document, const std::string& parameter = {});
nlohmann::ordered_json jsonOf(const OptimizerUpdates& updates, const Document& document,
                              const std::string& parameter = {});

}  // namespace retrograd
