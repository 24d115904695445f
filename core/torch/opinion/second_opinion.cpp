#include "core/torch/opinion/second_opinion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/user_choice.h"
#include "core/formats/jobs/dynamo_constants.h"
#include "core/formats/jobs/line_links.h"
#include "core/formats/jobs/shared_draws.h"
#include "core/torch/judging/compare.h"
#include "core/torch/judging/health.h"
#include "core/torch/judging/named_results.h"
#include "core/torch/opinion/derived_forward.h"
#include "core/torch/opinion/gradient_comparison.h"
#include "core/torch/opinion/job_inputs.h"
#include "core/torch/opinion/job_run.h"
#include "core/torch/opinion/opaque_ops.h"
#include "core/torch/opinion/reference_opinion.h"
#include "core/torch/opinion/suspect.h"
#include "core/torch/opinion/witnessed.h"
#include "core/torch/tracing/op_table.h"

namespace retrograd {
namespace {

using Kind = fx::Expression::Kind;

bool hasBoth(const jobs::Attempt& attempt) {
  return attempt.find(jobs::GraphKind::forward) != nullptr && attempt.find(jobs::GraphKind::backward) != nullptr;
}

bool canBeCompared(const jobs::Compile& compile) { return std::ranges::any_of(compile.attempts, hasBoth); }

/// The compile that was asked for, else the first with a forward and a backward graph. Throws Error(badUse) where there
/// is no such compile.
jobs::GraphChoice opinionChoice(const jobs::JobLog& log, const SecondOpinionRequest& request) {
  if (!request.compile.empty()) return jobs::chooseCompile(log, request.compile, request.rank);
  for (const auto& process : log.processes) {
    if (request.rank && process.rank != request.rank) continue;
    for (const auto& compile : process.compiles)
      for (auto attempt = compile.attempts.rbegin(); attempt != compile.attempts.rend(); ++attempt)
        if (hasBoth(*attempt)) return {&process, &compile, &*attempt};
  }
  return jobs::chooseCompile(log, {}, request.rank);
}

/// Why a compile cannot be compared at all: it lacks a graph. Empty where it can.
std::string whyNotCompared(const jobs::Attempt& attempt) {
  if (hasBoth(attempt)) return {};
  if (attempt.find(jobs::GraphKind::inference))
    return "there is no gradient to compare: it was compiled for inference, and the log has its inference graph alone";
  if (attempt.find(jobs::GraphKind::forward) || attempt.find(jobs::GraphKind::joint)) {
    const auto missing = attempt.find(jobs::GraphKind::forward) ? "backward" : "forward and no backward";
    return fmt::format("there is no gradient to compare: the log has no {} graph of this compile", missing);
  }
  return "there is no gradient to compare: the log has only Dynamo's graph of this compile";
}

/// The compiles that nobody asked for by name and that are therefore not looked at; empty where there are none.
std::string leftOutCompiles(const jobs::JobLog& log, const jobs::GraphChoice& choice) {
  std::vector<std::string> names;
  for (const auto& compile : choice.process->compiles)
    if (&compile != choice.compile && canBeCompared(compile)) names.push_back(jobs::nameOf(compile));
  std::vector<std::int64_t> ranks;
  bool isElsewhere = false;
  for (const auto& process : log.processes) {
    if (&process == choice.process || std::ranges::none_of(process.compiles, canBeCompared)) continue;
    isElsewhere = true;
    if (process.rank && process.rank != choice.process->rank) ranks.push_back(*process.rank);
  }
  std::vector<std::string> ways;
  if (!names.empty()) ways.push_back(fmt::format("{} {}", nameOf(UserChoice::compile), fmt::join(names, ", ")));
  if (!ranks.empty()) ways.push_back(fmt::format("{} {}", nameOf(UserChoice::rank), fmt::join(ranks, ", ")));
  if (isElsewhere && ranks.empty()) ways.emplace_back("the other logs of the folder");
  return ways.empty() ? "" : fmt::format("this is the first compile alone; there are more: {}", fmt::join(ways, "; "));
}
constexpr double otherCotangent = 0.5;  // a power of two: what is right scales by it bit for bit

TensorMap constantsOf(const JobGraphs& graphs) {
  return graphs.dynamo ? jobs::constantsOfDynamo(graphs.joint ? *graphs.joint : graphs.forward, *graphs.dynamo)
                       : TensorMap();
}

/// The sentence of the first note among the claims.
std::string firstNote(const Report& report) {
  const auto found = std::ranges::find(report.claims, Severity::note, &Claim::severity);
  return found == report.claims.end() ? std::string() : found->sentence;
}

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
        derived_(graphs_, request.seed, request.cotangent, constantsOf(graphs_), request.filled, progress),
        job_(graphs_, derived_, request.seed, request.filled, progress) {}

  SecondOpinion form() {
    try {
      if (graphs_.differentiated.empty()) throw NotPossible{"the backward has no tangents"};
      if (graphs_.backward.outputs.size() != primalsOf(graphs_.forward)) {
        throw NotPossible{
            fmt::format("the backward gives {} values for {} inputs of the forward: tensor subclasses and tokens "
                        "cannot be compared yet",
                        graphs_.backward.outputs.size(), primalsOf(graphs_.forward))};
      }
      judgeOpaqueCalls();
      deriveForward();
      job_.runForward();
      derived_.settleDoubts();
      judgeOwnDraws();
      if (runBackward()) compareAll();
      if (request_.reference)
        compareWithReference(*request_.reference,
                             {graphs_, derived_, job_, request_.weights, drawsBetween_, unfilled()}, opinion_);
    } catch (const NotPossible& e) {
      notJudged(e.reason);
    }
    conclude();
    return std::move(opinion_);
  }

 private:
  // What is opaque.

  void judgeOpaqueCalls() {
    opaque_ = opaqueOps(graphs_);
    requireResults(opaque_, request_.filled);
    if (opaque_.calls.empty()) return;
    note(fmt::format("not run, because LibTorch does not have it: {}. {} took its place in all graphs alike",
                     shortList(opaque_.calls),
                     request_.filled.empty() ? "An arbitrary function of what it reads" : "What was filled in"));
  }

  /// The results of opaque ops that nobody gave.
  std::vector<std::string> unfilled() const {
    std::vector<std::string> names;
    for (const auto& name : opaque_.results)
      if (!request_.filled.contains(name)) names.push_back(name);
    return names;
  }

  // What flows in.

  bool drawsAll() const { return request_.weights.empty() && request_.batch.empty(); }

  TensorMap inputs() {
    auto inputs = jobInputs(log_, choice_, graphs_, request_, progress_);
    opinion_.drawn = inputs.drawn;
    drawsBetween_ = inputs.drawsBetween;
    for (auto& one : inputs.notes) note(std::move(one));
    return std::move(inputs.given);
  }

  // The three runs.

  void deriveForward() {
    const auto known = derived_.constants();
    try {
      derived_.derive(inputs());
    } catch (const Error& e) {
      refuseUnrun(e);
    }
    const auto& listing = derived_.model().listing;
    std::size_t drawn = 0;
    std::vector<std::string> given;
    for (const auto& [name, attribute] : listing.constants)
      known.contains(attribute) ? given.push_back(name + " is a constant of the compiled program") : void(++drawn);
    for (const auto& one : listing.notes)
      if (std::ranges::none_of(given, [&](const auto& text) { return one.starts_with(text); })) note(one);
    for (const auto& op : derived_.underived())
      note(
          fmt::format("{} has no derivative here: gradients through it are compared with those of "
                      "the joint graph of the same compile",
                      op));
    opinion_.drawn += drawn;
    if (drawn > 0 && !drawsAll() && !request_.useWhatBinds) {
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

  /// A draw of the backward that is not one of the forward: the gradients are those of other random numbers. A draw
  /// that the joint graph has in its backward is the program's own.
  void judgeOwnDraws() {
    if (graphs_.ownDraws.empty() || !graphs_.joint) return;
    const auto& joint = *graphs_.joint;
    if (drawsOf(joint, joint.nodes.size(), lookupSymbol).size() >
        drawsOf(joint, jobs::backwardBorder(joint), lookupSymbol).size())
      throw NotPossible{"the backward draws random numbers of its own: " + ownDrawText()};
  }

  std::string ownDrawText() const {
    const auto& node = graphs_.backward.nodes[graphs_.ownDraws.front()];
    return fmt::format("{} (line {} of the backward graph{})", node.name, node.line, sourceIn(graphs_.backward, node));
  }

  /// The draws of the backward's own, which explain what differs.
  void nameOwnDraws() {
    for (const auto node : graphs_.ownDraws)
      addFault("own-draw",
               "draws random numbers of its own: nothing in the graphs ties them to those that the forward drew", node);
  }

  static std::string sourceIn(const fx::Graph& graph, const fx::Node& node) {
    const auto source = sourceText(graph, node);
    return source.empty() ? "" : ", " + source;
  }

  /// False where the backward does not run, which is a finding.
  bool runBackward() {
    const auto why = job_.runBackward();
    if (why.empty()) return true;
    // A size that nobody knows (it depends on data) may be why: then that is not a finding.
    if (derived_.model().listing.assumedSizes)
      throw NotPossible{"the job's backward does not run with sizes that the log does not say: " + why};
    nameOwnDraws();
    addFault("does-not-run", "the job's backward does not run: " + why, {});
    return false;
  }

  // What they gave.

  void compareAll() {
    Judge judge(derived_.model().analysis, {}, {.movesHalves = false, .rounds = Noise::HalfOps::backward});
    std::vector<std::size_t> wrong, right;
    std::vector<std::pair<std::size_t, Claim>> found;
    GradientComparison gradients(graphs_, derived_, job_, judge, opinion_, witnessed_);
    for (std::size_t i = 0; i < graphs_.backward.outputs.size(); ++i) {
      auto claim = gradients.compare(i);
      (claim && !claim->good() ? wrong : right).push_back(i);
      if (claim) found.emplace_back(i, std::move(*claim));
    }
    auto& report = opinion_.report;
    report.judged = found.size();
    report.due = graphs_.backward.outputs.size() - gradients.none();
    notFinite_ = gradients.notFinite();
    if (gradients.none() > 0) note(fmt::format("{} of the gradients are None in both", gradients.none()));
    report.details["none"] = static_cast<double>(gradients.none());
    compareTypes();
    compareResults(judge);
    witnessed_.settle(derived_.forward(), graphs_.backward.outputs.size(), report);
    if (wrong.empty() && !graphs_.ownDraws.empty())
      notJudged("the backward draws random numbers of its own, though no gradient depends on them with these values: " +
                ownDrawText());
    if (!wrong.empty() && !lacksWitness()) nameOwnDraws();
    const auto suspect = wrong.empty() ? std::nullopt : suspectOf(graphs_, wrong, right);
    const bool isUnknown = !wrong.empty() && lacksWitness();
    for (auto& [output, claim] : found) addGradient(output, std::move(claim), suspect, isUnknown);
    if (isUnknown)
      notJudged(fmt::format(
          "the program runs ops that autograd did not record, and the log has no joint graph with the same draws to "
          "tell which: {} of {} gradients differ ({})",
          wrong.size(), graphs_.backward.outputs.size(), firstNote(report)));
  }

  /// `isUnknown`: nothing says whether it is wrong.
  void addGradient(std::size_t output, Claim claim, std::optional<std::size_t> suspect, bool isUnknown) {
    if (claim.good()) return add(std::move(claim), {});
    BackwardPlace place;
    if (isUnknown) claim.severity = Severity::note;
    else place = nameOp(claim, suspect ? suspect : producerOf(graphs_, output));
    place.gradientOf = graphs_.forward.inputs[output].name;
    if (const auto& source = graphs_.sources[output]) place.input = jobs::plainName(source->name);
    add(std::move(claim), std::move(place));
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
      const auto* derived = findTensor(derived_.results(), name);
      const auto position = graphs_.differentiated[k];
      const auto* result = job_.result(position);
      if (derived == nullptr || result == nullptr) continue;
      add(claimOf(Producer::jointGraph, fmt::format("output {} of the forward graph", position),
                  judge.compare(name, *result, *derived)),
          {});
    }
  }

  /// What the text declares, against what the ops give.
  void compareTypes() {
    const auto& document = *job_.backward().analysis->document;
    std::map<std::string, ValueId> values;
    for (const auto op : job_.backward().analysis->computation().trace.ops) {
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
      const auto& meta = document.meta(value->second);
      if (meta.dtype != type.dtype) {
        addFault(
            "other-type",
            fmt::format("{} is {}, and the graph says {}", node.name, shortName(meta.dtype), shortName(type.dtype)), n);
      }
    }
  }

  /// Few elements cost little, and a mask often drops all of them that a fault moves.
  std::size_t looksWorth() const {
    constexpr std::size_t ofFew = 5;
    const auto& analysis = *derived_.model().analysis;
    if (drawsRandomNumbers(analysis)) return countElements(analysis) < fewElements ? ofFew : 1;
    if (derived_.isOfLoss()) return job_.scalesBy(otherCotangent) ? 0 : 1;
    return countElements(analysis) < fewElements ? 1
                                                 : 0;  // where a 0 flows in, a fault of that element alone is hidden
  }

  void note(std::string text) { opinion_.report.notes.push_back(std::move(text)); }
  void notJudged(std::string why) { opinion_.report.notJudged.push_back({{}, std::move(why)}); }

  void add(Claim claim, BackwardPlace place) {
    opinion_.report.claims.push_back(std::move(claim));
    opinion_.places.push_back(std::move(place));
  }

  void addFault(const char* kind, std::string sentence, std::optional<std::size_t> node) {
    Claim claim{.by = Producer::derivative, .kind = kind, .sentence = std::move(sentence)};
    auto place = nameOp(claim, node);
    add(std::move(claim), std::move(place));
  }

  /// Says which op of the job's backward a claim comes from.
  BackwardPlace nameOp(Claim& claim, std::optional<std::size_t> node) const {
    BackwardPlace place;
    if (!node) return place;
    const auto& at = graphs_.backward.nodes[*node];
    if (at.call.is(Kind::call)) place.target = at.call.items[0].text;
    claim.sentence += fmt::format("; from {} ({}), line {} of the backward graph", at.name,
                                  place.target.empty() ? "an item" : place.target, at.line);
    claim.line = sourceText(graphs_.backward, at);
    if (at.source != fx::noIndex) {
      place.file = graphs_.backward.sources[at.source].file;
      place.sourceLine = graphs_.backward.sources[at.source].line;
    }
    place.line = at.line;
    return place;
  }

  /// The losses, and where the NaN and infinities of losses and gradients come from.
  void examineHealth() {
    auto claims = std::move(notFinite_);
    for (const auto position : graphs_.differentiated)
      if (const auto* result = job_.result(position); result != nullptr && result->meta.elements() == 1)
        if (auto bad = notFinite(fmt::format("output {}", position), *result)) claims.push_back(std::move(*bad));
    if (claims.empty()) return;
    auto roots = rootsOfNonFinite(*derived_.model().analysis, progress_);
    claims.insert(claims.begin(), roots.begin(), roots.end());
    for (auto& claim : claims) {
      if (drawsAll()) claim.severity = Severity::note;
      opinion_.report.claims.push_back(std::move(claim));
    }
    if (drawsAll())
      notJudged(
          "values that were drawn became NaN or infinite, which says nothing of the job and may hide what "
          "differs; its weights and batch do");
  }

  void conclude() {
    auto& report = opinion_.report;
    if (opinion_.parting == SecondOpinion::Parting::derived && graphs_.ownDraws.empty()) {
      for (auto& claim : report.claims) claim.severity = std::min(claim.severity, Severity::note);
      notJudged(
          "the job's own loss and gradients equal the reference, and the derived ones do not: the graphs do not show "
          "what autograd recorded");
    }
    if (report.judged == 0 && report.notJudged.empty()) notJudged("no gradient could be compared");
    const auto verdict = decide(report).verdict;
    opinion_.agrees = verdict == Verdict::pass;
    if (opinion_.agrees) opinion_.looks = looksWorth();
    if (opinion_.agrees) examineHealth();
    report.details["drawn"] = static_cast<double>(opinion_.drawn);
    if (drawsAll() && opinion_.drawn > 0)  // otherwise each is named above
      note(fmt::format("{} drawn from the descriptors in the log; the job's weights and batch compare what happened",
                       opinion_.drawn == 1 ? "1 input was" : fmt::format("{} inputs were", opinion_.drawn)));
    if (verdict == Verdict::fail && !derived_.forward().isKnown)
      note(
          "the difference may be right if the model has a backward of its own (autograd.Function) or a region under "
          "no_grad: the log has no Dynamo graph, which shows them");
  }

  const jobs::JobLog& log_;
  const jobs::GraphChoice& choice_;
  JobGraphs graphs_;
  const SecondOpinionRequest& request_;
  const Progress& progress_;
  SecondOpinion opinion_;
  bool drawsBetween_ = false;  ///< an input of the forward comes from eager code and is drawn
  DerivedForward derived_;
  JobRun job_;
  Witnessed witnessed_;
  std::vector<Claim> notFinite_;  ///< in gradients that agree
  OpaqueOps opaque_;
};

/// Looks again, as often as it is worth: one set of draws, or a cotangent of 1, may hide a difference.
SecondOpinion lookAgain(SecondOpinion first, const jobs::JobLog& log, const jobs::GraphChoice& choice,
                        const SecondOpinionRequest& request, const Progress& progress) {
  constexpr std::uint64_t apart = 1'000'003;  // seeds that follow one another often begin with like draws
  for (std::size_t look = 1; look <= first.looks; ++look) {
    auto other = request;
    other.seed += look * apart;
    other.cotangent = otherCotangent;
    other.reference.reset();
    auto found = Opinion(log, choice, other, progress).form();
    if (found.agrees || decide(found.report).verdict != Verdict::fail) continue;
    found.report.notes.push_back(
        fmt::format("with seed {} and the cotangent 1 they agree, by chance: these are the gradients of "
                    "seed {} and the cotangent {}",
                    request.seed, other.seed, other.cotangent));
    return found;
  }
  return first;
}

SecondOpinion opinionOn(const jobs::JobLog& log, const jobs::GraphChoice& choice, const SecondOpinionRequest& request,
                        const Progress& progress) {
  if (request.filled.empty())
    return lookAgain(Opinion(log, choice, request, progress).form(), log, choice, request, progress);
  // What is filled in says nothing of what the opaque ops read: that is compared first, with stand-ins.
  auto plain = request;
  plain.filled.clear();
  plain.reference.reset();
  const auto opinion = lookAgain(Opinion(log, choice, plain, progress).form(), log, choice, plain, progress);
  auto filled = Opinion(log, choice, request, progress).form();
  return opinion.agrees ? filled : opinion;
}

}  // namespace

SecondOpinion secondOpinion(const jobs::JobLog& log, const SecondOpinionRequest& request, const Progress& progress) {
  const auto choice = opinionChoice(log, request);
  SecondOpinion opinion;
  if (auto why = whyNotCompared(*choice.attempt); !why.empty()) {
    opinion.report.notJudged.push_back({{}, std::move(why)});
  } else {
    opinion = opinionOn(log, choice, request, progress);
    const bool isGenerated = choice.attempt->find(jobs::GraphKind::runnable) != nullptr ||
                             choice.attempt->find(jobs::GraphKind::postGrad) != nullptr;
    if (opinion.agrees && isGenerated)
      opinion.report.notes.emplace_back(
          "graphs are compared; the kernels that Inductor generated from them were not looked at");
    if (request.compile.empty())
      if (auto others = leftOutCompiles(log, choice); !others.empty())
        opinion.report.notes.push_back(std::move(others));
  }
  opinion.compile = jobs::nameOf(*choice.compile);
  opinion.report.unit = "gradient";
  opinion.report.notes.insert(
      opinion.report.notes.begin(),
      fmt::format("compile {}: the job's backward against the one derived from its forward", opinion.compile));
  return opinion;
}

}  // namespace retrograd
