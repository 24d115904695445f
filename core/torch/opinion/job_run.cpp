#include "core/torch/opinion/job_run.h"

#include "core/torch/analysis/joint_run.h"
#include "core/torch/judging/compare.h"
#include "core/torch/tracing/drawn_input.h"

namespace retrograd {

void JobRun::runForward() {
  auto request = runRequest(seed_, filled_);
  request.inputs = derived_.model().analysis->request.inputs;
  giveConstants(graphs_.forward, derived_.constants(), request.inputs);
  const auto model =
      openGraph(graphs_.forward, graphs_.forwardPlace, {.sizes = graphs_.sizes, .runnable = true}, request, progress_);
  forward_ = runJoint(*model.analysis).outputs;
}

void JobRun::openBackward() {
  auto request = runRequest(seed_ + 1, filled_);  // what it draws itself is nothing that the forward drew
  for (std::size_t k = 0; k < graphs_.tangents.size(); ++k)
    request.inputs.emplace(graphs_.backward.inputs[graphs_.tangents[k]].name, derived_.cotangents().at(k));
  const auto give = [&](const std::string& name, std::size_t output) {
    if (const auto* tensor = result(output)) request.inputs.emplace(name, *tensor);
  };
  for (std::size_t i = 0; i < graphs_.savedFrom.size(); ++i)
    if (graphs_.savedFrom[i]) give(graphs_.backward.inputs[i].name, *graphs_.savedFrom[i]);
  for (const auto& [node, output] : graphs_.shared) give(graphs_.backward.nodes[node].name, output);
  jobs::ListingOptions options{.sizes = graphs_.sizes, .runnable = true};
  for (const auto& [name, tensor] : request.inputs)
    options.given.emplace(name, tensor.meta);  // types in a log are those of fake tensors
  giveConstants(graphs_.backward, derived_.constants(), request.inputs);
  backwardModel_ = openGraph(graphs_.backward, graphs_.backwardPlace, options, request, progress_);
}

std::string JobRun::runBackward() {
  try {
    openBackward();
    backward_ = runJoint(*backwardModel_.analysis).outputs;
    return {};
  } catch (const Error& e) {
    if (e.code() == ErrorCode::cancelled || e.code() == ErrorCode::unknownOp || e.code() == ErrorCode::io) throw;
    return e.what();
  } catch (const NotPossible& e) {  // every op is there, so it is the graph that does not hold together
    return e.reason;
  }
}

bool JobRun::scalesBy(double factor) const {
  auto scaled = *backwardModel_.analysis;
  for (std::size_t k = 0; k < graphs_.tangents.size(); ++k) {
    const auto& cotangent = derived_.cotangents().at(k);
    const auto numbers = asDoubles(cotangent);
    if (numbers.size() != 1) return false;
    scaled.request.inputs[graphs_.backward.inputs[graphs_.tangents[k]].name] =
        filledTensor(cotangent.meta, factor * numbers.front());
  }
  const auto outputs = runJoint(scaled).outputs;
  for (std::size_t i = 0; i < graphs_.backward.outputs.size(); ++i) {
    const auto* gradient = this->gradient(i);
    if (gradient != nullptr && !(at(outputs, i) && isTimes(*at(outputs, i), *gradient, factor))) return false;
  }
  return true;
}

const TensorData* JobRun::gradient(std::size_t i) const {
  return graphs_.backward.outputs[i].value.is(fx::Expression::Kind::none) ? nullptr : at(backward_, i);
}

}  // namespace retrograd
