#include "core/torch/analysis/recorded_step.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/formats/recording/recording.h"
#include "core/split/partition.h"
#include "core/torch/execution/device.h"
#include "core/trace/relocate.h"

namespace retrograd {
namespace {

void refuseChanges(const ModelFile& file, const DerivationRequest& request) {
  const auto refuse = [&](bool isAsked, const char* what) {
    if (isAsked)
      throw Error(ErrorCode::badUse,
                  std::string("is a recording, whose ops ran on what is in it: ") + what +
                      " cannot be given; save the model with torch.export for that",
                  file.path);
  };
  refuse(!request.inputs.empty() || !request.numbers.empty() || !request.shapes.empty() || !request.data.batch.empty(),
         "other inputs");
  refuse(!request.data.weights.empty(), "other weights");
  refuse(request.order > 1, "another order");
  refuse(request.precision.has_value(), "another precision");
}

/// The joint: results, then a gradient for each input that has one.
Trace jointOf(const Computation& computation, const StepRecording& recording) {
  Trace joint = computation.trace;
  joint.kind = TraceKind::joint;
  joint.name = "joint";
  joint.resultCount = joint.outputs.size();
  joint.forwardCount = std::min(recording.forwardCount, joint.ops.size());
  joint.inputs.resize(joint.inputs.size() + computation.outputs.size());  // no cotangent flows in
  for (const auto& input : computation.inputs) {
    const auto found = recording.gradients.find(input.target);
    const bool isParameter = input.kind == InputKind::parameter && found != recording.gradients.end();
    joint.outputs.push_back(isParameter ? found->second : ValueId());
  }
  return joint;
}

}  // namespace

std::shared_ptr<const Analysis> analysisOfRecording(ModelFile file, const DerivationRequest& request) {
  refuseChanges(file, request);
  auto analysis = std::make_shared<Analysis>();
  analysis->file = std::move(file);
  analysis->request = request;
  auto& document = *analysis->file.document;
  const auto& recording = *analysis->file.recording;
  const auto& computation = analysis->computation();
  analysis->device = withIndex(request.device.value_or(deviceOf(document, computation.trace.inputs)));
  if (request.device) relocate(document, analysis->device);
  analysis->request.inputs = analysis->file.sampleInputs;
  analysis->problems = analysis->file.problems;
  if (recording.ambiguous > 0)
    analysis->problems.push_back(
        {Problem::Severity::note,
         std::to_string(recording.ambiguous) + " backward ops have no link: more than one forward op could be theirs",
         {},
         -1});
  analysis->joint = jointOf(computation, recording);
  auto [forward, backward] = splitJoint(document, analysis->joint, computation.inputs.size());
  forward.history = backward.history = analysis->joint.history;
  analysis->forward = std::move(forward);
  analysis->backward = std::move(backward);
  for (std::size_t i = 0; i < computation.inputs.size(); ++i)
    if (const auto gradient = analysis->joint.outputs[analysis->joint.resultCount + i])
      analysis->gradients[computation.inputs[i].value] = gradient;
  auto left = std::make_shared<LeftOut>();
  left->recording = analysis->file.recording;
  analysis->leftOut = std::move(left);
  analysis->times.read = analysis->file.seconds;
  analysis->links = OriginLinks(document, analysis->joint);
  analysis->document = analysis->file.document;
  return analysis;
}

}  // namespace retrograd
