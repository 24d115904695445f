#include "core/torch/opinion/job_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/number_text.h"
#include "core/base/user_choice.h"
#include "core/formats/fx/fx_reader.h"
#include "core/formats/jobs/given_tensors.h"
#include "core/torch/analysis/joint_run.h"
#include "core/torch/opinion/graph_model.h"

namespace retrograd {
namespace {

/// The sizes of a type as the job met them; nothing where the log does not say one.
std::optional<std::vector<std::int64_t>> sizesOf(const fx::Type& type, const SizeBindings& bindings) {
  std::vector<std::int64_t> sizes;
  for (const auto& text : type.sizes) {
    const auto size = evaluateSize(text, bindings);
    if (!size) return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}

std::string typeText(DType dtype, const std::vector<std::string>& sizes) {
  return fmt::format("{}[{}]", shortName(dtype), fmt::join(sizes, ", "));
}

constexpr std::string_view resumed = "torch_dynamo_resume_in_", stack = "___stack";

/// "forward" of "torch_dynamo_resume_in_forward_at_123"; any other name as it is.
std::string_view originalOf(std::string_view function) {
  if (!function.starts_with(resumed)) return function;
  function.remove_prefix(resumed.size());
  return function.substr(0, function.rfind("_at_"));
}

/// A result of the graph that is called like the local variable: Dynamo names a node after the variable that it was
/// assigned to, a later value of the same variable "h_1".
std::optional<int> likeness(std::string_view node, std::string_view local) {
  if (node == local) return 0;
  if (!node.starts_with(local) || node.size() < local.size() + 2 || node[local.size()] != '_') return std::nullopt;
  const auto number = numberIn<int>(node.substr(local.size() + 1));
  return number && *number > 0 ? number : std::nullopt;
}

bool fits(const fx::Graph& graph, const fx::Output& output, const TensorMeta& wanted, const SizeBindings& sizes) {
  if (!output.value.is(fx::Expression::Kind::value)) return false;
  const auto index = graph.valueType(output.value.valueIndex());
  if (index == fx::noIndex) return false;
  const auto& type = graph.types[index];
  if (type.kind != fx::Type::Kind::tensor || type.dtype != wanted.dtype || type.sizes.size() != wanted.sizes.size())
    return false;
  for (std::size_t d = 0; d < type.sizes.size(); ++d)
    if (evaluateSize(type.sizes[d], sizes) != wanted.sizes[d]) return false;
  return true;
}

/// A part of what a call gives is called "getitem", whatever variable it was assigned to: "a, b = f(x)".
bool isPart(const fx::Graph& graph, const fx::Output& output) {
  const auto value = output.value.valueIndex();
  return value >= graph.inputs.size() && graph.nodes[value - graph.inputs.size()].call.is(fx::Expression::Kind::item);
}

/// Which result of Dynamo's graph the local variable is: the one that is called like it, else the only part of its
/// type.
std::optional<std::size_t> resultOf(const fx::Graph& dynamo, std::string_view local, const TensorMeta& type,
                                    const SizeBindings& sizes) {
  std::optional<std::size_t> found, unnamed;
  int best = -1, alike = 0;
  for (std::size_t i = 0; i < dynamo.outputs.size(); ++i) {
    if (!fits(dynamo, dynamo.outputs[i], type, sizes)) continue;
    if (local.starts_with(stack) || isPart(dynamo, dynamo.outputs[i])) {
      unnamed = i;
      ++alike;
    }
    if (local.starts_with(stack)) continue;  // it has no name: it is the only result of its type or none
    const auto like = likeness(dynamo.valueName(dynamo.outputs[i].value.valueIndex()), local);
    if (!like || *like < best) continue;
    best = *like;
    found = i;
  }
  if (found) return found;
  return alike == 1 ? unnamed : std::nullopt;
}

/// Where that result is among the forward's outputs, which may begin with what the graph wrote to its inputs.
std::optional<std::size_t> positionOf(const JobGraphs& graphs, std::size_t result, std::size_t results) {
  for (std::size_t i = 0; i < graphs.results; ++i) {
    const auto& descriptor = graphs.forward.outputs[i].descriptor;
    if (descriptor.kind() == "PlainAOTOutput" && descriptor.plainIndex() == static_cast<std::int64_t>(result)) return i;
  }
  const bool hasDescriptors = graphs.results > 0 && !graphs.forward.outputs[0].descriptor.text.empty();
  return hasDescriptors || graphs.results != results ? std::nullopt : std::optional(result);
}

const jobs::Attempt* attemptOf(const jobs::Compile& compile) {
  for (auto attempt = compile.attempts.rbegin(); attempt != compile.attempts.rend(); ++attempt)
    if (attempt->find(jobs::GraphKind::dynamo) != nullptr &&
        (attempt->find(jobs::GraphKind::forward) != nullptr || attempt->find(jobs::GraphKind::inference) != nullptr))
      return &*attempt;
  return nullptr;
}

struct EarlierResult {
  std::string compile;  ///< "1/0"
  TensorData value;
};

/// Whether it is a value that lay on the interpreter's stack at a graph break ("___stack0"): a result of code that ran
/// between two graphs, or of the graph before.
bool isBetweenGraphs(const jobs::InputSource& source) {
  return !source.path.empty() && source.path.front().starts_with(stack);  // "___stack0", or a part of it: "___stack0.0"
}

/// Where a function was compiled in several graphs (a graph break), a later graph takes what an earlier one gave as a
/// local variable: "h". Runs the forward graph of the compile that gave it, on the request's weights and batch, and on
/// what still earlier ones gave. nullopt where no earlier graph of that function gave a value of this name and type.
/// Throws Error as jobInputs() for inputs of the earlier compile.
std::optional<EarlierResult> earlierResult(const jobs::JobLog& log, const jobs::GraphChoice& choice,
                                           const jobs::InputSource& source, const TensorMeta& type,
                                           const SecondOpinionRequest& request, const Progress& progress) {
  if (!choice.compile->function.starts_with(resumed) || source.path.size() != 1) return std::nullopt;
  const auto& compiles = choice.process->compiles;
  const auto own = static_cast<std::size_t>(choice.compile - compiles.data());
  for (auto k = own; k-- > 0;) {
    const auto& compile = compiles[k];
    if (compile.file != choice.compile->file || originalOf(compile.function) != originalOf(choice.compile->function))
      continue;
    const auto* attempt = attemptOf(compile);
    if (attempt == nullptr) continue;
    const auto graphs = readComputedGraphs(log, *attempt);
    const auto& record = attempt->find(jobs::GraphKind::dynamo)->payload;
    const auto dynamo = fx::readGraph(jobs::payloadText(log, record), jobs::placeOf(log, record));
    const auto result = resultOf(dynamo, source.path.front(), type, graphs.sizes);
    const auto position = result ? positionOf(graphs, *result, dynamo.outputs.size()) : std::nullopt;
    if (!position) continue;
    const auto inputs = jobInputs(log, {choice.process, &compile, attempt}, graphs, request, progress);
    jobs::ListingOptions options;
    options.sizes = graphs.sizes;
    options.runnable = true;
    options.returnsAll = false;
    options.outputs = {*position};
    DerivationRequest derivation{.inputs = inputs.given, .seed = request.seed};
    derivation.gradInputs.emplace();
    const auto model = openGraph(graphs.forward, graphs.forwardPlace, options, derivation, progress);
    auto outputs = runJoint(*model.analysis).outputs;
    if (outputs.empty() || !outputs.front()) continue;
    return EarlierResult{jobs::nameOf(compile), *outputs.front()};
  }
  return std::nullopt;
}

class Binder {
 public:
  Binder(const jobs::JobLog& log, const jobs::GraphChoice& choice, const JobGraphs& graphs,
         const SecondOpinionRequest& request, const Progress& progress)
      : log_(log),
        choice_(choice),
        graphs_(graphs),
        request_(request),
        progress_(progress),
        files_(request.weights, request.batch) {}

  JobInputs bind() {
    const bool drawsAll = request_.weights.empty() && request_.batch.empty();
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < graphs_.forward.inputs.size(); ++i) {
      const auto& input = graphs_.forward.inputs[i];
      const auto* type = input.type == fx::noIndex ? nullptr : &graphs_.forward.types[input.type];
      if (type == nullptr || type->kind != fx::Type::Kind::tensor || input.dropped) continue;
      ++inputs_.drawn;
      if (!drawsAll && !bindByName(i, *type)) open.push_back(i);
    }
    for (const auto i : open) bindOtherwise(i);
    refuseMissing();
    return std::move(inputs_);
  }

 private:
  const fx::Type& typeOf(std::size_t i) const { return graphs_.forward.types[graphs_.forward.inputs[i].type]; }

  void give(std::size_t i, const TensorData& tensor) {
    inputs_.given.emplace(graphs_.forward.inputs[i].name, tensor);
    --inputs_.drawn;
  }

  bool bindByName(std::size_t i, const fx::Type& type) {
    const auto& source = graphs_.sources[i];
    const auto* found = source ? files_.find(*source) : nullptr;
    if (found == nullptr) return false;
    const auto sizes = sizesOf(type, graphs_.sizes);
    if (!sizes || *sizes == found->meta.sizes) {
      give(i, *found);
    } else {
      missing_.push_back(fmt::format("{} {}[{}] (given as {}[{}])", programNameOf(graphs_, i), shortName(type.dtype),
                                     fmt::join(*sizes, ", "), shortName(found->meta.dtype),
                                     fmt::join(found->meta.sizes, ", ")));
    }
    return true;
  }

  /// What no file has a name for.
  void bindOtherwise(std::size_t i) {
    const auto& source = graphs_.sources[i];
    const auto& type = typeOf(i);
    const auto name = programNameOf(graphs_, i);
    const auto text = fmt::format("{} {}", name, typeText(type.dtype, type.sizes));
    const auto sizes = sizesOf(type, graphs_.sizes);
    if (source && sizes) {
      TensorMeta meta{.dtype = type.dtype, .sizes = *sizes};
      std::string of;
      const auto* found = isBetweenGraphs(*source) ? nullptr : files_.findByType(*source, meta, of);
      if (found != nullptr) {
        inputs_.notes.push_back(fmt::format("{} is taken to be {}, the only one of this type in the batch", text, of));
        return give(i, *found);
      }
      if (const auto earlier = earlierResult(log_, choice_, *source, meta, request_, progress_)) {
        inputs_.notes.push_back(fmt::format("{} is what compile {} gives", text, earlier->compile));
        return give(i, earlier->value);
      }
      if (isBetweenGraphs(*source)) {
        inputs_.notes.push_back(
            text + " is drawn: the program computed it between its compiled functions, and a log does not hold it");
        inputs_.drawsBetween = true;
        return;
      }
    }
    missing_.push_back(text);
    if (source && source->kind != jobs::InputSource::Kind::input) missingWeights_.push_back(name);
  }

  void refuseMissing() {
    if (missing_.empty()) return;
    if (request_.useWhatBinds) {
      for (const auto& text : missing_) inputs_.notes.push_back(text + " is drawn");
      return;
    }
    constexpr std::size_t shown = 4;
    auto holders = files_.holdersOf(missingWeights_);
    std::string way;
    if (!holders.empty()) {
      const auto first = holders.front();
      const bool isMore = holders.size() > shown;
      holders.resize(std::min(holders.size(), shown));
      way = fmt::format("; the weights have {} below {}{}: {} {} takes those of one",
                        missingWeights_.size() == 1 ? missingWeights_.front() : "them", fmt::join(holders, ", "),
                        isMore ? " and more" : "", nameOf(UserChoice::weightsUnder), first);
    }
    throw Error(ErrorCode::badUse,
                fmt::format("not given by the weights or the batch: {}{}; {} draws them", fmt::join(missing_, ", "),
                            way, nameOf(UserChoice::partialWeights)),
                "inputs");
  }

  const jobs::JobLog& log_;
  const jobs::GraphChoice& choice_;
  const JobGraphs& graphs_;
  const SecondOpinionRequest& request_;
  const Progress& progress_;
  jobs::GivenTensors files_;
  JobInputs inputs_;
  std::vector<std::string> missing_, missingWeights_;
};

}  // namespace

std::string programNameOf(const JobGraphs& graphs, std::size_t input) {
  const auto& source = graphs.sources[input];
  return source ? jobs::plainName(source->name) : graphs.forward.inputs[input].name;
}

JobInputs jobInputs(const jobs::JobLog& log, const jobs::GraphChoice& choice, const JobGraphs& graphs,
                    const SecondOpinionRequest& request, const Progress& progress) {
  return Binder(log, choice, graphs, request, progress).bind();
}

}  // namespace retrograd
