#include "core/torch/analysis/run_values.h"

#include "core/base/id_vector.h"
#include "core/torch/analysis/input_values.h"
#include "core/torch/execution/evaluator.h"
#include "core/torch/tracing/thread_scope.h"
#include "core/trace/effects.h"

namespace retrograd {
namespace {

/// By storage: some op of the joint trace writes to it.
IdVector<StorageId, char> writtenStorages(const Analysis& analysis) {
  const auto& document = *analysis.document;
  IdVector<StorageId, char> written(document.storageCount(), 0);
  for (auto op : analysis.joint.ops)
    for (auto value : writtenOperands(document, op))
      if (const auto storage = document.value(value).storage) written[storage] = 1;
  return written;
}

}  // namespace

RunValues runValues(const Analysis& analysis, const Progress& progress) {
  const RunThreads threads(0);
  const auto& document = *analysis.document;
  const auto written = writtenStorages(analysis);
  RunValues values;
  Evaluator evaluator(document, analysis.request.seed);
  evaluator.setLeftOut(analysis.leftOut);
  for (auto& [id, value] : inputValues(analysis)) evaluator.bind(id, value);
  for (auto& [id, value] : cotangentValues(analysis)) evaluator.bind(id, value);
  for (std::size_t i = 0; i < analysis.joint.ops.size(); ++i) {
    const auto op = analysis.joint.ops[i];
    progress.at(document.symbol(op).name, static_cast<double>(i) / static_cast<double>(analysis.joint.ops.size()));
    evaluator.run(op);
    for (auto output : document.outputs(op)) {
      if (!evaluator.has(output)) continue;
      const auto& value = evaluator.value(output);
      if (!value.isTensor()) {
        if (auto number = numberArgument(value)) values.numbers[output] = *number;
        continue;
      }
      if (const auto& tensor = value.toTensor(); tensor.defined()) {
        const auto storage = document.value(output).storage;
        const bool changes = !storage || written[storage];
        if (!changes && document.storage(storage).external) continue;
        const bool plain =
            tensor.layout() == at::kStrided && tensor.device().is_cpu() && !tensor.is_conj() && !tensor.is_neg();
        values.tensors[output] = plain && !changes ? keepTensor(tensor) : copyOut(tensor);
      }
    }
  }
  return values;
}

}  // namespace retrograd
