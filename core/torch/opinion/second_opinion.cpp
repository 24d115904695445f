#include "core/torch/opinion/second_opinion.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/out_of_memory.h"
#include "core/base/user_choice.h"
#include "core/formats/fx/lower_prims.h"
#include "core/formats/jobs/line_links.h"
#include "core/formats/jobs/shared_draws.h"
#include "core/torch/analysis/joint_run.h"
#include "core/torch/checking/compare.h"
#include "core/torch/checking/named_results.h"
#include "core/torch/opinion/derived_forward.h"
#include "core/torch/opinion/job_inputs.h"
#include "core/torch/opinion/reference_opinion.h"
#include "core/torch/opinion/suspect.h"
#include "core/torch/tracing/op_table.h"

namespace retrograd {
namespace {

using Kind = fx::Expression::Kind;
using Verdict = SecondOpinion::Verdict;

/// One compile under comparison.
class Opinion {
 public:
  Opinion(const jobs::JobLog& log, const jobs::GraphChoice& choice, const SecondOpinionRequest& request,
          const Progress& progress)
      : log_(log),
        choice_(choice),
        graphs_(readJobGraphs(log, *choice.attempt, lookupSymbol)),
        request_(request),
        progress_(progress),
        derived_(graphs_, request.seed, progress) {
    opinion_.showsCuts = derived_.forward().isKnown;
  }

  SecondOpinion form() {
    try {
      if (graphs_.differentiated.empty()) throw NotPossible{"the backward has no tangents"};
      if (const auto opaque = opaqueOps(); !opaque.empty())
        throw NotPossible{fmt::format("ops that cannot run here: {}", fmt::join(opaque, ", "))};
      if (graphs_.backward.outputs.size() != primalsOf(graphs_.forward)) {
        throw NotPossible{
            fmt::format("the backward gives {} values for {} inputs of the forward: tensor subclasses and tokens "
                        "cannot be compared yet",
                        graphs_.backward.outputs.size(), primalsOf(graphs_.forward))};
      }
      deriveForward();
      runForward();
      derived_.settleDoubts();
      judgeOwnDraws();
      if (runBackward()) compareAll();
      if (request_.reference) compareReference();
    } catch (const NotPossible& e) {
      opinion_.reason = e.reason;
    }
    conclude();
    return std::move(opinion_);
  }

 private:
  /// Ops of forward and backward that LibTorch does not have, without those of prims that are said in aten.
  std::set<std::string> opaqueOps() const {
    constexpr std::string_view prefix = "torch.ops.";
    std::set<std::string> opaque;
    for (const auto* graph : {&graphs_.forward, &graphs_.backward}) {
      for (const auto& node : graph->nodes) {
        if (!node.call.is(Kind::call) || !node.call.items[0].is(Kind::path) ||
            !node.call.items[0].text.starts_with(prefix))
          continue;
        const auto name = std::string_view(node.call.items[0].text).substr(prefix.size());
        if (!fx::isLoweredPrim(name) && !lookupSymbol(name)) opaque.emplace(name);
      }
    }
    return opaque;
  }

  // What flows in.

  bool drawsAll() const { return request_.weights.empty() && request_.batch.empty(); }

  TensorMap inputs() {
    auto inputs = jobInputs(log_, choice_, graphs_, request_, progress_);
    opinion_.drawn = inputs.drawn;
    drawsBetween_ = inputs.drawsBetween;
    for (auto& note : inputs.notes) opinion_.notes.push_back(std::move(note));
    return std::move(inputs.given);
  }

  // The three runs.

  void deriveForward() {
    try {
      derived_.derive(inputs());
    } catch (const Error& e) {
      refuseUnrun(e);
    }
    for (const auto& note : derived_.model().listing.notes) opinion_.notes.push_back(note);
    opinion_.drawn += derived_.model().listing.constants.size();
    if (!derived_.model().listing.constants.empty() && !drawsAll() && !request_.useWhatBinds) {
      throw NotPossible{"the forward reads constants of the compiled program, and a log has no data for them; " +
                        nameOf(UserChoice::partialWeights) + " draws them"};
    }
  }

  /// Rethrows the present error, as a reason where it is the forward that does not run.
  void refuseUnrun(const Error& e) const {
    if (e.code() != ErrorCode::execution) throw;
    throw NotPossible{fmt::format("the forward does not run on {}: {}",
                                  opinion_.drawn > 0 ? "values that are drawn" : "these values", e.what())};
  }

  /// The forward once more with all that it saves, from the same seed: the same draws.
  void runForward() {
    jobs::ListingOptions options;
    options.sizes = graphs_.sizes;
    options.runnable = true;
    DerivationRequest request;
    request.seed = request_.seed;
    request.inputs = derived_.model().analysis->request.inputs;
    request.gradInputs.emplace();
    request.exactCotangents = true;
    const auto model = openGraph(graphs_.forward, graphs_.forwardPlace, options, request, progress_);
    forwardRun_ = runJoint(*model.analysis).outputs;
  }

  /// A draw of the backward that is not one of the forward: the gradients are those of other random numbers. A draw
  /// that the joint graph has in its backward is the program's own.
  void judgeOwnDraws() {
    if (graphs_.ownDraws.empty()) return;
    const auto* joint = graphs_.joint ? &*graphs_.joint : nullptr;
    const auto border = joint != nullptr ? jobs::backwardBorder(*joint) : 0;
    if (joint != nullptr &&
        drawsOf(*joint, joint->nodes.size(), lookupSymbol).size() > drawsOf(*joint, border, lookupSymbol).size()) {
      const auto& node = graphs_.backward.nodes[graphs_.ownDraws.front()];
      throw NotPossible{
          fmt::format("the backward draws random numbers of its own: {} (line {} of the backward graph{})", node.name,
                      node.line, sourceIn(graphs_.backward, node))};
    }
    for (const auto node : graphs_.ownDraws)
      addFinding("", "draws random numbers of its own: nothing in the graphs ties them to those that the forward drew",
                 node);
  }

  static std::string sourceIn(const fx::Graph& graph, const fx::Node& node) {
    const auto source = sourceText(graph, node);
    return source.empty() ? "" : ", " + source;
  }

  /// False where the backward does not run, which is a finding.
  bool runBackward() {
    jobs::ListingOptions options;
    options.sizes = graphs_.sizes;
    options.runnable = true;
    DerivationRequest request;
    request.seed = request_.seed + 1;  // what it draws itself is nothing that the forward drew
    request.gradInputs.emplace();
    request.exactCotangents = true;
    for (std::size_t k = 0; k < graphs_.tangents.size(); ++k) {
      const auto cotangent = derived_.model().analysis->request.cotangents.find(std::to_string(k));
      if (cotangent == derived_.model().analysis->request.cotangents.end())
        throw NotPossible{"an output that has a tangent takes no cotangent"};
      request.inputs.emplace(graphs_.backward.inputs[graphs_.tangents[k]].name, cotangent->second);
    }
    for (std::size_t i = 0; i < graphs_.savedFrom.size(); ++i) {
      if (!graphs_.savedFrom[i]) continue;
      const auto position = *graphs_.savedFrom[i];
      if (position < forwardRun_.size() && forwardRun_[position])
        request.inputs.emplace(graphs_.backward.inputs[i].name, *forwardRun_[position]);
    }
    for (const auto& [node, position] : graphs_.shared)
      if (position < forwardRun_.size() && forwardRun_[position])
        request.inputs.emplace(graphs_.backward.nodes[node].name, *forwardRun_[position]);
    for (const auto& [name, tensor] : request.inputs)
      options.given.emplace(name, tensor.meta);  // types in a log are those of fake tensors
    try {
      auto listing = jobs::listingOf(graphs_.backward, lookupSymbol, options);
      shareConstants(listing, request.inputs);
      std::erase_if(request.inputs, [&](const auto& input) {
        return std::find(listing.inputs.begin(), listing.inputs.end(), input.first) == listing.inputs.end();
      });
      imported_ = openGraph(graphs_.backward, graphs_.backwardPlace, options, request, progress_);
      importedRun_ = runJoint(*imported_.analysis).outputs;
      return true;
    } catch (const Error& e) {
      if (e.code() == ErrorCode::cancelled || e.code() == ErrorCode::unknownOp || e.code() == ErrorCode::io) throw;
      refuseAssumed(e.what());
      opinion_.findings.push_back({"all", "the job's backward does not run: " + std::string(e.what()), {}, {}, 0});
      return false;
    } catch (const NotPossible& e) {  // every op is there, so it is the graph that does not hold together
      refuseAssumed(e.reason);
      opinion_.findings.push_back({"all", "the job's backward does not run: " + e.reason, {}, {}, 0});
      return false;
    }
  }

  /// Constants of the compiled program have the same name in both graphs, and here the same drawn value.
  void shareConstants(const jobs::Listing& backward, TensorMap& inputs) const {
    for (const auto& [name, attribute] : backward.constants) {
      for (const auto& [ours, same] : derived_.model().listing.constants) {
        const auto value = derived_.model().analysis->request.inputs.find(ours);
        if (same == attribute && value != derived_.model().analysis->request.inputs.end())
          inputs.emplace(name, value->second);
      }
    }
  }

  /// A size that nobody knows (it depends on data) may be why the backward does not run: then that is not a finding.
  void refuseAssumed(const std::string& reason) const {
    if (derived_.model().listing.assumedSizes)
      throw NotPossible{"the job's backward does not run with sizes that the log does not say: " + reason};
  }

  // What they gave.

  void compareAll() {
    Judge judge(derived_.model().analysis, {}, {.movesHalves = false, .rounds = Noise::HalfOps::backward});
    std::vector<std::size_t> wrong, right;
    std::vector<std::pair<std::size_t, std::string>> found;
    for (std::size_t i = 0; i < graphs_.backward.outputs.size(); ++i) {
      const auto text = compareOne(judge, i);
      if (text.empty() || isExplained(judge, i, text)) {
        right.push_back(i);
      } else {
        wrong.push_back(i);
        found.emplace_back(i, text);
      }
    }
    compareTypes();
    compareResults(judge);
    settleExplained();
    if (found.empty()) return;
    if (lacksWitness()) {
      const auto& [output, text] = found.front();
      opinion_.reason = fmt::format(
          "the program runs ops that autograd did not record, and the log has no joint graph with the same draws to "
          "tell "
          "which: {} of {} gradients differ ({}: {})",
          found.size(), graphs_.backward.outputs.size(), inputLabel(graphs_, output), text);
      return;
    }
    const auto suspect = suspectOf(graphs_, wrong, right);
    for (const auto& [output, text] : found) {
      addFinding(inputLabel(graphs_, output), text, suspect ? suspect : producerOf(graphs_, output));
      if (const auto& source = graphs_.sources[output]) opinion_.findings.back().input = jobs::plainName(source->name);
    }
  }

  /// What is wrong with a gradient; empty where nothing is.
  std::string compareOne(Judge& judge, std::size_t i) {
    const auto& name = graphs_.forward.inputs[i].name;
    const auto* derived = derived_.gradient(i);
    const auto* imported = importedGradient(i);
    if (derived == nullptr && imported == nullptr) {
      ++opinion_.none;
      return {};
    }
    if (imported == nullptr) return "is None, and ours is not";
    if (derived == nullptr)
      return isDifferentiated(graphs_, i) ? "is a tensor, and ours is None"
                                          : "is a tensor, and its input requires no gradient";
    auto verdict = judge.compare(derived_.gradientName(i), *imported, *derived);
    verdict.name = inputLabel(graphs_, i);
    ++opinion_.compared;
    opinion_.gradients.push_back(verdict);
    opinion_.imported.emplace(name, *imported);
    if (countNonFinite(*derived).nan > 0 && verdict.good()) opinion_.notes.push_back(verdict.name + " has NaN in both");
    if (verdict.good()) return {};
    if (!verdict.failure.empty()) return verdict.failure;
    return fmt::format("off by {:.3g}, tolerance {:.3g}, largest element {:.3g}", verdict.deviation, verdict.tolerance,
                       verdict.scale);
  }

  const TensorData* importedGradient(std::size_t i) const {
    const bool isNone = graphs_.backward.outputs[i].value.is(Kind::none);
    return !isNone && i < importedRun_.size() && importedRun_[i] ? &*importedRun_[i] : nullptr;
  }

  /// Whether the job's gradient is that of the joint graph, where it is known that the derived one may be another.
  bool isExplained(Judge& judge, std::size_t i, const std::string& text) {
    if ((derived_.forward().isKnown && !derived_.forward().cuts.matter()) || derived_.joint() == nullptr) return false;
    const auto* imported = importedGradient(i);
    if (!derived_.isAsJoint(judge, i, imported)) return false;
    explained_.push_back(fmt::format("{}: {}", inputLabel(graphs_, i), text));
    if (imported != nullptr) {
      auto verdict = judge.compare(derived_.gradientName(i), *imported, *derived_.joint()->at(i));
      verdict.name = inputLabel(graphs_, i);
      if (!opinion_.gradients.empty() && opinion_.gradients.back().name == verdict.name) opinion_.gradients.pop_back();
      opinion_.gradients.push_back(std::move(verdict));
    }
    return true;
  }

  /// What the gradients that only the joint graph explains mean for the verdict.
  void settleExplained() {
    if (explained_.empty()) return;
    const auto& cuts = derived_.forward().cuts;
    if (!cuts.ownBackwards.empty() && cuts.doubts.empty()) {
      opinion_.notes.push_back(
          fmt::format("the program has a backward of its own (autograd.Function or a hook) at {}; gradients through it "
                      "are compared with those of the joint graph of the same compile. Derived from the ops of the "
                      "forward they would differ: {}",
                      shortList(cuts.ownBackwards), shortList(explained_)));
      return;
    }
    std::vector<std::string> doubts;
    for (const auto& doubt : cuts.doubts) doubts.push_back(doubt.text);
    opinion_.reason = fmt::format(
        "it is not known where autograd was cut{}: the job's gradients are those of the joint graph of the same "
        "compile, "
        "and those derived from its forward are not ({})",
        !derived_.forward().isKnown ? " (the log has no Dynamo graph)"
        : doubts.empty()            ? ""
                                    : " (" + shortList(doubts) + ")",
        shortList(explained_));
  }

  /// Whether nothing says that the gradients were cut as in the program.
  bool lacksWitness() {
    const auto& forward = derived_.forward();
    return (forward.cuts.matter() || !forward.isKnown) && graphs_.ownDraws.empty() && derived_.joint() == nullptr;
  }

  /// The forward graph against the joint graph, where that is what the backward is derived from.
  void compareResults(Judge& judge) {
    if (!derived_.forward().ofJoint) return;
    for (std::size_t k = 0; k < graphs_.differentiated.size(); ++k) {
      const auto name = fmt::format("out.{}", k);
      const auto derived = derived_.results().find(name);
      const auto position = graphs_.differentiated[k];
      if (derived == derived_.results().end() || position >= forwardRun_.size() || !forwardRun_[position]) continue;
      const auto verdict = judge.compare(name, *forwardRun_[position], derived->second);
      if (!verdict.good())
        addFinding("",
                   fmt::format("output {} of the forward graph is off by {:.3g} from the joint graph's, tolerance "
                               "{:.3g}",
                               position, verdict.deviation, verdict.tolerance),
                   {});
    }
  }

  /// What the text declares, against what the ops give.
  void compareTypes() {
    const auto& document = *imported_.analysis->document;
    std::map<std::string, ValueId> values;
    for (const auto op : imported_.analysis->computation().trace.ops) {
      for (const auto output : document.outputs(op)) {
        if (output) values.emplace(document.displayName(output), output);
      }
    }
    for (std::size_t n = 0; n < graphs_.backward.nodes.size(); ++n) {
      const auto& node = graphs_.backward.nodes[n];
      if (node.type == fx::noIndex || graphs_.backward.types[node.type].kind != fx::Type::Kind::tensor) continue;
      const auto value = values.find(node.name);
      if (value == values.end() || !document.isTensor(value->second)) continue;
      const auto& type = graphs_.backward.types[node.type];
      const auto& meta = document.meta(document.value(value->second).meta);
      if (meta.dtype != type.dtype) {
        addFinding(
            "", fmt::format("{} is {}, and the graph says {}", node.name, shortName(meta.dtype), shortName(type.dtype)),
            n);
      }
    }
  }

  void addFinding(const std::string& gradient, const std::string& what, std::optional<std::size_t> node) {
    BackwardFinding finding{gradient, what, {}, {}, 0};
    if (node) {
      const auto& at = graphs_.backward.nodes[*node];
      if (at.call.is(Kind::call)) finding.target = at.call.items[0].text;
      finding.op = fmt::format("{} ({})", at.name, finding.target.empty() ? "an item" : finding.target);
      if (at.source != fx::noIndex) {
        finding.file = graphs_.backward.sources[at.source].file;
        finding.sourceLine = graphs_.backward.sources[at.source].line;
      }
      finding.source = sourceText(graphs_.backward, at);
      finding.line = at.line;
    }
    opinion_.findings.push_back(std::move(finding));
  }

  void compareReference() {
    const bool isLoss = graphs_.differentiated.size() == 1 && derived_.results().contains("out.0") &&
                        derived_.results().at("out.0").meta.sizes.empty();
    if (drawsBetween_ || !isLoss) {  // the reference is the whole program's, and this is a part of it
      opinion_.notes.push_back(std::string("the reference is not compared: ") +
                               (drawsBetween_
                                    ? "the loss comes from a value that is drawn, because the program computed "
                                      "it between its compiled functions"
                                    : "this part of the model does not end in the loss"));
      return;
    }
    if (drawsRandomNumbers(*derived_.model().analysis))
      return leaveReference("the forward draws random numbers (dropout), and the job drew others");
    std::map<std::string, std::size_t> inputs;
    for (std::size_t i = 0; i < graphs_.sources.size(); ++i)
      if (graphs_.sources[i]) inputs[jobs::plainName(graphs_.sources[i]->name)] = i;
    std::vector<Compared> compared;
    std::vector<std::string> unknown;
    for (const auto& [name, expected] : *request_.reference) {
      if (name == "loss") {
        const auto position = graphs_.differentiated.front();
        const bool isThere = position < forwardRun_.size() && forwardRun_[position];
        compared.push_back(
            {name, "out.0", isThere ? &*forwardRun_[position] : nullptr, &derived_.results().at("out.0")});
      }
      if (!name.starts_with("grad.")) continue;
      const auto input = inputs.find(jobs::plainName(name.substr(5)));
      if (input == inputs.end()) {
        unknown.push_back(name);
        continue;
      }
      compared.push_back({name, derived_.gradientName(input->second), importedGradient(input->second),
                          derived_.gradient(input->second)});
    }
    if (!unknown.empty() && opinion_.reason.empty())
      opinion_.reason = "the reference has gradients of what this compile does not take: " + shortList(unknown);
    if (compared.empty()) return leaveReference("it has neither a loss nor a gradient of an input of this compile");
    auto judge = derived_.judge();
    const bool tf32 = convolvesInTf32(graphs_.forward);
    if (tf32)
      opinion_.notes.emplace_back(
          "the job ran float32 convolutions on a GPU, which rounds their operands to TF32 by default: the reference is "
          "compared with that tolerance");
    compareWithReference(*request_.reference, compared, judge, tf32, opinion_);
  }

  /// A reference that is given and not compared makes no verdict possible.
  void leaveReference(const std::string& why) {
    if (opinion_.reason.empty()) opinion_.reason = "the reference is not compared: " + why;
  }

  void conclude() {
    const bool isOff = std::any_of(opinion_.jobReferenced.begin(), opinion_.jobReferenced.end(),
                                   [](const auto& verdict) { return !verdict.good(); });
    if (opinion_.parting == SecondOpinion::Parting::derived && graphs_.ownDraws.empty()) {
      opinion_.reason =
          "the job's own loss and gradients equal the reference, and the derived ones do not: the graphs "
          "do not show what autograd recorded";
    } else if (!opinion_.findings.empty() || isOff) {
      opinion_.verdict = Verdict::differs;
      if (!opinion_.reason.empty()) opinion_.notes.push_back(std::exchange(opinion_.reason, {}));
    } else if (opinion_.reason.empty() && opinion_.compared > 0) {
      opinion_.verdict = Verdict::agrees;
    } else if (opinion_.reason.empty()) {
      opinion_.reason = "no gradient could be compared";
    }
  }

  const jobs::JobLog& log_;
  const jobs::GraphChoice& choice_;
  JobGraphs graphs_;
  const SecondOpinionRequest& request_;
  const Progress& progress_;
  SecondOpinion opinion_;
  bool drawsBetween_ = false;  ///< an input of the forward comes from eager code and is drawn
  DerivedForward derived_;
  GraphModel imported_;
  std::vector<std::string> explained_;  ///< gradients of the job that are the joint graph's, and not the derived ones
  std::vector<std::optional<TensorData>> forwardRun_, importedRun_;
};

bool hasBoth(const jobs::Attempt& attempt) {
  return attempt.find(jobs::GraphKind::forward) != nullptr && attempt.find(jobs::GraphKind::backward) != nullptr;
}

/// The compile that was asked for, else the first with both graphs.
jobs::GraphChoice choiceOf(const jobs::JobLog& log, const SecondOpinionRequest& request) {
  if (!request.compile.empty()) return jobs::chooseCompile(log, request.compile, request.rank);
  for (const auto& process : log.processes) {
    if (request.rank && process.rank != request.rank) continue;
    for (const auto& compile : process.compiles)
      for (auto attempt = compile.attempts.rbegin(); attempt != compile.attempts.rend(); ++attempt)
        if (hasBoth(*attempt)) return {&process, &compile, &*attempt};
  }
  return jobs::chooseCompile(log, {}, request.rank);
}

/// Why a compile that lacks a graph cannot be compared.
std::string whyNotCompared(const jobs::Attempt& attempt) {
  if (attempt.find(jobs::GraphKind::inference))
    return "there is no gradient to compare: it was compiled for inference, and the log has its inference graph alone";
  if (attempt.find(jobs::GraphKind::forward) || attempt.find(jobs::GraphKind::joint)) {
    const auto missing = attempt.find(jobs::GraphKind::forward) ? "backward" : "forward and no backward";
    return fmt::format("there is no gradient to compare: the log has no {} graph of this compile", missing);
  }
  return "there is no gradient to compare: the log has only Dynamo's graph of this compile";
}

/// Whether values of tensor subclasses flow into or out of the graphs, which have them part by part.
bool hasSubclasses(const jobs::JobLog& log, const jobs::Attempt& attempt) {
  const auto names = [&](jobs::GraphKind kind) {
    return jobs::payloadText(log, attempt.find(kind)->payload).find("SubclassGetAttrAOT") != std::string::npos;
  };
  return names(jobs::GraphKind::forward) || names(jobs::GraphKind::backward);
}

bool canBeCompared(const jobs::Compile& compile) {
  return std::any_of(compile.attempts.begin(), compile.attempts.end(), hasBoth);
}

/// The compiles that nobody asked for by name and that are therefore not looked at; empty where there are none.
std::string leftOut(const jobs::JobLog& log, const jobs::GraphChoice& choice) {
  std::vector<std::string> names;
  for (const auto& compile : choice.process->compiles)
    if (&compile != choice.compile && canBeCompared(compile)) names.push_back(jobs::nameOf(compile));
  std::vector<std::int64_t> ranks;
  bool isElsewhere = false;
  for (const auto& process : log.processes) {
    if (&process == choice.process || std::none_of(process.compiles.begin(), process.compiles.end(), canBeCompared))
      continue;
    isElsewhere = true;
    if (process.rank && process.rank != choice.process->rank) ranks.push_back(*process.rank);
  }
  std::vector<std::string> ways;
  if (!names.empty()) ways.push_back(fmt::format("{} {}", nameOf(UserChoice::compile), fmt::join(names, ", ")));
  if (!ranks.empty()) ways.push_back(fmt::format("{} {}", nameOf(UserChoice::rank), fmt::join(ranks, ", ")));
  if (isElsewhere && ranks.empty()) ways.emplace_back("the other logs of the folder");
  return ways.empty() ? "" : fmt::format("this is the first compile alone; there are more: {}", fmt::join(ways, "; "));
}

}  // namespace

SecondOpinion secondOpinion(const jobs::JobLog& log, const SecondOpinionRequest& request, const Progress& progress) {
  const auto choice = choiceOf(log, request);
  SecondOpinion opinion;
  const auto name = jobs::nameOf(*choice.compile);
  if (!hasBoth(*choice.attempt)) {
    opinion.compile = name;
    opinion.reason = whyNotCompared(*choice.attempt);
    return opinion;
  }
  if (hasSubclasses(log, *choice.attempt)) {
    opinion.compile = name;
    opinion.reason = "tensor subclasses (DTensor, jagged tensors) cannot be compared yet";
    return opinion;
  }
  opinion = Opinion(log, choice, request, progress).form();
  opinion.compile = name;
  const bool isGenerated = choice.attempt->find(jobs::GraphKind::runnable) != nullptr ||
                           choice.attempt->find(jobs::GraphKind::postGrad) != nullptr;
  if (opinion.verdict == Verdict::agrees && isGenerated)
    opinion.notes.emplace_back("graphs are compared; the kernels that Inductor generated from them were not looked at");
  if (request.compile.empty())
    if (auto others = leftOut(log, choice); !others.empty()) opinion.notes.push_back(std::move(others));
  return opinion;
}

}  // namespace retrograd
