#include "core/torch/reading/job_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/formats/jobs/differentiated.h"
#include "core/formats/jobs/shared_draws.h"
#include "core/formats/listing/listing.h"
#include "core/torch/tracing/op_table.h"

namespace retrograd {
namespace {

/// Gives inputs the names and the meaning that they have in the Python program.
class InputNamer {
 public:
  InputNamer(ModelFile& file, const JobGraphs& graphs) : file_(file), graphs_(graphs) {}

  void name(InputSpec& spec, std::size_t input) {
    spec.requiresGrad = isDifferentiated(graphs_, input);
    if (spec.value && file_.document->isTensor(spec.value))
      file_.document->value(spec.value).requiresGrad = spec.requiresGrad;
    const auto& source = graphs_.sources[input];
    if (!source) return;
    const auto plain = jobs::plainName(source->name);
    if (plain.empty() || !names_.insert(plain).second)
      return;  // the same tensor under two names: the second keeps the graph's
    const bool isParameter = source->kind == jobs::InputSource::Kind::parameter;
    if (isParameter || source->kind == jobs::InputSource::Kind::buffer) {
      spec.kind = isParameter ? InputKind::parameter : InputKind::buffer;
      spec.target = spec.storageKey = plain;
    } else {
      spec.name = plain;
    }
  }

  void nameConstant(InputSpec& spec, const std::string& attribute) {
    spec.requiresGrad = false;
    if (spec.value) file_.document->value(spec.value).requiresGrad = false;
    spec.kind = InputKind::constant;
    spec.target = spec.storageKey = attribute;
  }

 private:
  ModelFile& file_;
  const JobGraphs& graphs_;
  std::set<std::string> names_;
};

std::string whatIsShown(const JobGraphs& graphs, const std::string& compile) {
  if (graphs.computed == jobs::GraphKind::other)
    return fmt::format(
        "a graph that the log holds as it was traced ({}), whole: no backward is derived of it; retrograd graphs lists "
        "the others, and --compile NAME opens one",
        compile);
  if (graphs.computed == jobs::GraphKind::inference)
    return fmt::format(
        "the inference graph of compile {}: it was compiled without gradients, so this compile has no backward in the "
        "log",
        compile);
  if (graphs.computed == jobs::GraphKind::joint)
    return fmt::format(
        "the forward part of the joint graph of compile {}, which has no forward and no backward graph in the log; the "
        "backward is derived here",
        compile);
  if (graphs.backward.inputs.empty() && graphs.backward.outputs.empty())
    return fmt::format(
        "the forward graph of compile {}, which has no backward in the log; the backward is derived here", compile);
  return fmt::format(
      "the forward graph of compile {}; its backward is derived here (`retrograd check` compares it with the job's "
      "own)",
      compile);
}

}  // namespace

ModelFile readJobModel(const std::string& path, const GivenData& data, const Progress& progress) {
  const auto log = jobs::openJobLog(path, progress);
  const auto choice = jobs::chooseCompile(log, data.compile, data.rank);
  auto graphs = readComputedGraphs(log, *choice.attempt, choice.graph);
  drawPlainly(graphs.forward);
  auto forward = differentiatedForward(graphs);
  jobs::ListingOptions options;
  options.sizes = graphs.sizes;
  options.runnable = true;
  options.returnsAll = false;
  for (std::size_t i = 0; i < graphs.results; ++i) options.outputs.push_back(i);
  options.unrecorded = std::move(forward.cuts.unrecorded);
  options.writes = std::move(forward.cuts.writes);
  const auto listing = jobs::listingOf(forward.graph, lookupSymbol, options);
  auto file = jobs::modelOf(listing, path);
  file.identity = identityOf(log.files.at(choice.attempt->file).bytes);
  file.torchVersion = choice.process->torchVersion;
  file.isPart = true;
  for (const auto& note : listing.notes) file.problems.push_back({Problem::Severity::note, note, path, -1});
  for (const auto& warning : warningsOf(forward))
    file.problems.push_back({Problem::Severity::warning, warning, path, -1});
  InputNamer namer(file, graphs);
  auto& inputs = file.computation.inputs;
  for (std::size_t k = 0; k < listing.inputs.size(); ++k) {
    const auto spec =
        std::ranges::find_if(inputs, [&](const InputSpec& input) { return input.name == listing.inputs[k]; });
    if (spec == inputs.end()) continue;
    const auto constant = listing.constants.find(listing.inputs[k]);
    constant == listing.constants.end() ? namer.name(*spec, listing.positions[k])
                                        : namer.nameConstant(*spec, constant->second);
  }
  auto shown = whatIsShown(graphs, jobs::nameOf(*choice.compile));
  if (forward.ofJoint)
    shown +=
        ". It is shown as the joint graph has it, with what ran under no_grad or was detached: the forward graph "
        "does not say";
  file.problems.push_back({Problem::Severity::note, std::move(shown), path, -1});
  return file;
}

}  // namespace retrograd
