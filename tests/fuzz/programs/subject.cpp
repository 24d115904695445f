#include "tests/fuzz/programs/subject.h"

#include <ATen/Functions.h>

#include "core/derivation/analysis.h"
#include "core/formats/text/text_trace.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/analysis/higher_order.h"
#include "core/torch/analysis/input_values.h"
#include "core/torch/analysis/results.h"
#include "core/torch/execution/evaluator.h"
#include "core/torch/stages/boundary.h"
#include "core/torch/stages/pipeline.h"
#include "core/torch/tracing/op_table.h"
#include "tests/fuzz/programs/print.h"

namespace retrograd::fuzz {
namespace {

constexpr const char* path = "program.txt";

at::Tensor tensorOf(const TensorData& data) { return borrowTensor(data); }

/// Forward, then backward on what it saved, as runSplit() does; the generator's state comes along.
struct SplitRun {
  RunResult result;
  at::Tensor generator;
};

SplitRun runInTwo(const Analysis& analysis) {
  Evaluator forward(*analysis.document, analysis.request.seed);
  const auto inputs = inputValues(analysis);
  for (const auto& [id, value] : inputs) forward.bind(id, value);
  for (auto op : analysis.forward.ops) forward.run(op);
  Evaluator backward(*analysis.document, analysis.request.seed);
  backward.setGenerators(forward.generators());
  backward.takeDraws(forward);
  for (auto id : analysis.backward.inputs)
    if (id && forward.has(id)) backward.bind(id, forward.value(id));
  for (auto& [id, value] : cotangentValues(analysis)) backward.bind(id, value);
  for (const auto& [id, value] : inputs)
    if (analysis.constants.contains(id)) backward.bind(id, value);
  for (auto op : analysis.backward.ops) backward.run(op);
  return {{resultsOf(analysis, forward), gradientsOf(analysis, backward), mutatedOf(analysis, forward)},
          backward.generators().cpu};
}

bool refuses(const Error& e) {
  return e.code() == ErrorCode::unsupportedOp || e.code() == ErrorCode::badInput || e.code() == ErrorCode::badUse ||
         e.code() == ErrorCode::execution || e.code() == ErrorCode::unknownOp;
}

std::string problemsOf(const std::vector<Problem>& problems) {
  for (const auto& problem : problems)
    if (problem.severity == Problem::Severity::error)
      return (problem.place.empty() ? "" : problem.place + ": ") + problem.message;
  return "no backward, and no problem that says why";
}

std::map<std::size_t, at::Tensor> cotangentsOf(const Analysis& analysis) {
  std::map<std::size_t, at::Tensor> found;
  for (const auto& [position, data] : analysis.request.cotangents)
    if (!position.empty()) found[std::stoul(position)] = tensorOf(data);
  return found;
}

}  // namespace

struct Subject::Impl {
  Impl(const Program& p, std::vector<at::Tensor> in, std::int64_t s)
      : program(p), inputs(std::move(in)), size(s), text(printProgram(p)) {}

  ModelFile read() const {
    auto file = readTextModel(text, path, lookupSymbol);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto& input = program.inputs[i];
      if (input.kind != Input::Kind::user) file.weights[input.name] = keepTensor(inputs[i]);
    }
    file.isText = false;  // the weights are here
    return file;
  }

  DerivationRequest options() const {
    DerivationRequest options;
    options.seed = program.seed;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (program.inputs[i].kind == Input::Kind::user) options.inputs[program.inputs[i].name] = keepTensor(inputs[i]);
    return options;
  }

  std::string keyOf(const Input& input) const {
    return (input.kind == Input::Kind::user ? "in." : input.kind == Input::Kind::buffer ? "b." : "p.") + input.name;
  }

  void take(SubjectRun& run, const RunResult& result) const {
    for (const auto& output : result.outputs) run.outcome.outputs.push_back(output ? tensorOf(*output) : at::Tensor());
    auto gradients = result.gradients;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto& input = program.inputs[i];
      const auto gradient = gradients.find((input.kind == Input::Kind::user ? "in." : "p.") + input.name);
      run.outcome.gradients.push_back(gradient == gradients.end() ? at::Tensor() : tensorOf(gradient->second));
      const auto written = result.mutated.find(keyOf(input));
      run.outcome.contents.push_back(input.kind == Input::Kind::parameter ? at::Tensor()
                                     : written == result.mutated.end()    ? inputs[i].contiguous()
                                                                          : tensorOf(written->second));
    }
  }

  /// Derives and runs; `second`: gradients of what order 2 adds.
  SubjectRun run(const DerivationRequest& options) {
    SubjectRun run;
    try {
      const auto analysis = analyse(read(), options);
      const auto& first = analysis->differentiated ? *analysis->differentiated : *analysis;
      if (!analysis->derived()) return refused(problemsOf(analysis->problems));
      if (!analysis->differentiated && options.order > 1) return refused(problemsOf(analysis->problems));
      const auto split = runInTwo(first);
      run.cotangents.first = cotangentsOf(first);
      run.outcome.generator = split.generator;
      take(run, split.result);
      run.steps = static_cast<int>(analysis->forward.ops.size() + analysis->backward.ops.size());
      if (analysis->differentiated) takeSecond(run, first, *analysis);
      if (options.order == 1 && options.partition == PartitionOptions()) whole = analysis;
      return run;
    } catch (const Error& e) {
      if (!refuses(e)) throw;
      return refused(e.what());
    }
  }

  void takeSecond(SubjectRun& run, const Analysis& first, const Analysis& second) const {
    run.cotangents.second = cotangentsOf(second);
    const auto result = runInTwo(second).result;
    const auto find = [&](const std::string& key) {
      const auto it = result.gradients.find(key);
      return it == result.gradients.end() ? at::Tensor() : tensorOf(it->second);
    };
    for (const auto& input : program.inputs) {
      auto gradient = find("p." + input.name);
      run.outcome.second.push_back(gradient.defined() ? gradient : find("in." + input.name));
    }
    const auto inputCount = first.computation().inputs.size();
    for (std::size_t i = 0; i < first.computation().outputs.size(); ++i) {
      const auto cotangent = first.joint.inputs.at(inputCount + i);
      run.outcome.second.push_back(cotangent ? find("in." + first.document->displayName(cotangent)) : at::Tensor());
    }
  }

  static SubjectRun refused(std::string message) {
    SubjectRun run;
    run.status = SubjectRun::Status::refused;
    run.message = std::move(message);
    return run;
  }

  const Program& program;
  std::vector<at::Tensor> inputs;
  std::int64_t size;
  std::string text;
  std::shared_ptr<const Analysis> whole;  ///< plain
};

Subject::Subject(const Program& program, std::vector<at::Tensor> inputs, std::int64_t size)
    : impl_(std::make_unique<Impl>(program, std::move(inputs), size)) {}
Subject::~Subject() = default;

SubjectRun Subject::plain() { return impl_->run(impl_->options()); }

SubjectRun Subject::inMode() {
  auto options = impl_->options();
  const auto& mode = impl_->program.mode;
  if (mode.minCut) options.partition.kind = PartitionOptions::minCut;
  if (mode.recomputeAll) options.partition.recompute = {"all"};
  options.order = mode.order;
  return impl_->run(options);
}

SubjectRun Subject::inStages() {
  SubjectRun run;
  if (!impl_->whole) {
    plain();
    if (!impl_->whole) return Impl::refused("the whole model was refused");
  }
  try {
    auto model = impl_->read();
    run.cotangents.first = cotangentsOf(*impl_->whole);
    const auto notCut = [&](const Error& e) {
      run.status = SubjectRun::Status::notCut;
      run.message = e.what();
      return run;
    };
    PipelineSplit split;
    try {
      completeTypes(model, *impl_->whole);
      split = splitPipeline(*model.document, model.computation, impl_->program.mode.cuts, {});
    } catch (const Error& e) {
      if (e.code() != ErrorCode::badUse && e.code() != ErrorCode::unsupportedOp) throw;
      return notCut(e);
    }
    std::optional<Pipeline> pipeline;
    try {
      pipeline = derivePipeline(std::move(model), impl_->whole, std::move(split));
    } catch (const Error& e) {  // as_strided reads memory beyond what the cut sends
      if (std::string_view(e.what()).find("move the cut") == std::string_view::npos) throw;
      return notCut(e);
    }
    impl_->take(run, runPipeline(*pipeline));
    return run;
  } catch (const Error& e) {
    if (!refuses(e)) throw;
    return Impl::refused(std::string("in stages: ") + e.what());
  }
}

}  // namespace retrograd::fuzz
