#include "core/torch/session/op_moment.h"

#include "core/formats/files/deferred_check.h"
#include "core/formats/files/mapping_watch.h"
#include "core/torch/execution/evaluator.h"
#include "core/torch/execution/statistics.h"
#include "core/torch/tracing/convert.h"

namespace retrograd {
namespace {

/// What `ask` finds out about a tensor, unless it lies in a file that is damaged or changed.
template <class Ask>
auto read(const at::Tensor& tensor, Ask&& ask) {
  requireVerified(hostMemoryOf(tensor));
  auto answer = ask(tensor);
  requireUnchanged(hostMemoryOf(tensor));
  return answer;
}

}  // namespace

ValueState stateOf(const Analysis& analysis, ValueId value, const c10::IValue* content, std::string reason) {
  ValueState state;
  const auto& document = *analysis.document;
  if (!document.contains(value)) {
    state.reason = "there is no such value";
    return state;
  }
  if (const auto meta = document.value(value).meta) state.meta = document.meta(meta);
  state.present = content && !content->isNone();
  if (!state.present) {
    const auto opaque = analysis.leftOut ? analysis.leftOut->reason(value) : BoundSymbolId();
    state.reason =
        opaque ? "depends on the opaque op " + document.opName(opaque) + ", which is not run" : std::move(reason);
  } else if (content->isTensor()) {
    state.meta = metaOf(content->toTensor());
  } else {
    state.number = numberArgument(*content);
  }
  return state;
}

const c10::IValue* OpMoment::find(ValueId value, Side side) const {
  if (side == Side::after)
    if (const auto it = after.find(value); it != after.end()) return &it->second;
  const auto it = before.find(value);
  return it != before.end() && (side == Side::before || failure.empty()) ? &it->second : nullptr;
}

at::Tensor OpMoment::tensor(ValueId value, Side side) const {
  const auto* content = find(value, side);
  if (!content || !content->isTensor())
    throw Error(ErrorCode::badUse, "it has no tensor at this op", analysis->document->displayName(value));
  return content->toTensor();
}

ValueState OpMoment::state(ValueId value, Side side) const {
  return stateOf(*analysis, value, find(value, side),
                 !failure.empty()       ? failure
                 : side == Side::before ? "not computed yet"
                                        : "not a value of the run");
}

TensorStatistics OpMoment::statistics(ValueId value, Side side) const {
  return read(tensor(value, side), computeStatistics);
}
TensorData OpMoment::contents(ValueId value, Side side) const { return read(tensor(value, side), copyOut); }
std::vector<std::int64_t> OpMoment::histogram(ValueId value, Side side, int bins) const {
  return read(tensor(value, side), [bins](const at::Tensor& tensor) { return computeHistogram(tensor, bins); });
}

}  // namespace retrograd
