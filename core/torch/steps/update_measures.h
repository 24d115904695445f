#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/base/id_vector.h"
#include "core/formats/recording/recording.h"
#include "core/torch/session/run_follower.h"
#include "core/torch/steps/optimizer_updates.h"

namespace retrograd {

/// Measures the updates of a recorded step while it runs: which ops read gradients and write weights and states of the
/// optimizer is known before. Holds a copy of a weight from its first write in an update to its last.
class UpdateMeasures final : public RunFollower {
 public:
  explicit UpdateMeasures(const Analysis& analysis);
  /// The measurements, once the run is over.
  OptimizerUpdates take() { return std::move(updates_); }

  void begins(const std::vector<std::pair<ValueId, c10::IValue>>& given) override;
  void ran(std::size_t position, const Evaluator& evaluator, const OpMeasure& measure) override;

 private:
  /// First and last write to some memory in an update: the values before and after.
  struct Writes {
    std::size_t first, last;  ///< positions
    ValueId before, after;
  };
  /// A parameter's part in an update.
  struct Row {
    std::size_t step, parameter;  ///< in OptimizerUpdates
    std::optional<Writes> weight;
    std::map<std::string, Writes> states;
    at::Tensor before;                            ///< the weight
    at::Tensor gradient;                          ///< as it was read, until the weight is measured
    std::map<std::string, at::Tensor> newStates;  ///< until the weight is measured
  };
  /// Something to measure at an op.
  struct Look {
    enum class What : std::uint8_t {
      gradient,
      unscaled,  ///< it was clipped while it was scaled: the gradient before that counts, divided by the scale
      read,
      weightBefore,
      weightAfter,
      stateBefore,
      stateAfter,
      isSkipped,
      inverseScale,
      nextScale
    };
    What what;
    std::size_t row;  ///< of what a scaler does: the step
    ValueId value;
    std::string state;
  };
  /// The ops of one step and backward that update parameters, or would have.
  struct Update {
    std::size_t step = 0;
    std::map<std::string, std::size_t> rows;  ///< by parameter
    std::unordered_set<StorageId> seen, clipped,
        read;  ///< gradients that ops of the loop, of clipping, of the optimizer read
  };
  using Lookup = std::function<at::Tensor(ValueId)>;

  void takeNames();
  void planOp(std::size_t position, BoundSymbolId op);
  void planUnscaling(std::size_t position, BoundSymbolId op, Update& update);
  void planRows();
  void planReads(std::size_t position, BoundSymbolId op, Update& update);
  void planReadsBefore(std::size_t position, BoundSymbolId op, Update& update);
  void planWrites(std::size_t position, BoundSymbolId op, Update& update);
  void planLooks();
  bool isUpdating(BoundSymbolId op) const;
  std::size_t rowOf(Update& update, const std::string& parameter);
  std::vector<ValueId> writtenBy(BoundSymbolId op) const;
  ValueId after(BoundSymbolId op, ValueId written) const;
  const RecordedName* nameOf(ValueId value) const;
  void take(const Look& look, const Lookup& tensorOf);
  void measureUpdate(Row& row, ParameterUpdate& update, const at::Tensor& after);
  ParameterUpdate& of(const Row& row) { return updates_.steps[row.step].parameters[row.parameter]; }

  const Analysis& analysis_;
  const Document& document_;
  const StepRecording& recording_;
  std::unordered_map<StorageId, RecordedName> names_;
  std::map<std::pair<std::int32_t, std::int32_t>, Update> planned_;  ///< by step and backward
  Update* latest_ = nullptr;
  std::vector<Row> rows_;
  std::unordered_map<std::size_t, std::vector<Look>> before_, after_;  ///< by position
  OptimizerUpdates updates_;
};

/// Finds the first update that is not finite, and why; where there is one, the step runs once more.
void explainFirstBad(const Analysis& analysis, OptimizerUpdates& updates, const Progress& progress);

}  // namespace retrograd
