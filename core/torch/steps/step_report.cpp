#include "core/torch/steps/step_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/enum_array.h"
#include "core/formats/recording/recording.h"
#include "core/torch/steps/against.h"

namespace retrograd {
namespace {

using Kind = GradientCut::Kind;

constexpr EnumArray<Kind, std::string_view, 7> kindNames{"built-in op", "function", "hook",    "detach",
                                                         "no_grad",     "in place", "saved by"};
constexpr EnumArray<Kind, const char*, 7> cutKinds{"cut-op",      "cut-function", "cut-hook", "cut-detach",
                                                   "cut-no-grad", "cut-in-place", "cut-saved"};

std::string sentenceOf(const GradientCut& cut) {
  std::string text = cut.kind == Kind::builtin ? cut.name
                     : cut.kind == Kind::function || cut.kind == Kind::hook || cut.kind == Kind::saved
                         ? fmt::format("{} `{}`", kindNames[cut.kind], cut.name)
                         : fmt::format("{} ({})", kindNames[cut.kind], cut.name);
  text += ": ";
  if (cut.factor && *cut.factor == 0) text += "no gradient goes through";
  else if (cut.factor)
    text += std::abs(*cut.factor - 1) < 0.01 ? fmt::format("{:.7g} times the derivative", *cut.factor)
                                             : fmt::format("{:.3g} times the derivative", *cut.factor);
  else text += cut.off;
  return cut.because.empty() ? text : text + "; " + cut.because;
}

std::string remedyOf(const GradientCut& cut) {
  switch (cut.kind) {
    case Kind::builtin:
      return cut.because.empty() ? "see what wrote the memory that its backward reads" : "write into a copy instead";
    case Kind::function: return "correct its backward; nothing if it is meant, as in a straight-through estimator";
    case Kind::hook: return "take the hook away; nothing if it is meant";
    case Kind::detach: return "take the detach away, if the parameters behind it are to learn through it";
    case Kind::noGrad: return "move it out of no_grad, if the parameters behind it are to learn through it";
    case Kind::saved:
      return "save inputs and outputs with save_for_backward, and compute what its backward needs from these there";
    case Kind::inPlace:
      return "write with an op that autograd sees, if the parameters behind it are to learn through it";
  }
  return {};
}

/// Why a cut is surely a fault; empty: it need not be one.
std::string sureFault(const GradientCut& cut, const StepRecording& recording) {
  if (cut.kind == Kind::builtin) return "its gradient is not its derivative";
  if (cut.nonFinite) return "the gradient is NaN or infinite where the derivative is finite";
  if (!cut.factor || *cut.factor != 0) return {};
  std::vector<std::string> dead;
  for (const auto& parameter : cut.parameters)
    if (std::ranges::find(recording.withoutGradient, parameter) != recording.withoutGradient.end())
      dead.push_back(parameter);
  if (dead.empty()) return {};
  return fmt::format("it leaves {}, which an optimizer was given, without a gradient", namesText(dead));
}

Measure measureOf(const GradientCut& cut) {
  Measure measure{.deviation = cut.deviation, .scale = cut.scale, .factor = cut.factor};
  if (cut.deviation == 0) measure.failure = "is not the derivative";
  return measure;
}

}  // namespace

Claim claimOf(const GradientCut& cut, const StepRecording& recording) {
  Claim claim{.by = Producer::derivative,
              .severity = Severity::suspicion,
              .kind = cutKinds[cut.kind],
              .subject = cut.name,
              .sentence = sentenceOf(cut),
              .remedy = remedyOf(cut),
              .line = cut.line,
              .measure = measureOf(cut),
              .parameters = cut.parameters,
              .op = cut.at,
              .also = {cut.op},
              .command = "source"};
  if (const auto fault = sureFault(cut, recording); !fault.empty()) {
    claim.severity = Severity::fault;
    claim.sentence += " (" + fault + ")";
  }
  return claim;
}

namespace {

/// Of an op that is to blame for an error; null: the op is a witness.
const char* raisedKind(std::string_view did) {
  if (did == "overwrote") return "raised-overwritten";
  if (did == "freed") return "raised-second-backward";
  if (did == "cut") return "raised-no-graph";
  if (did == "recomputed") return "raised-recomputation";
  return did == "used" ? "raised-used-twice" : nullptr;
}

}  // namespace

Claim claimOfError(const Document& document, const StepRecording& recording) {
  const auto& error = recording.raised;
  auto message = recording.error.substr(0, recording.error.find('\n'));
  for (const auto* end : {". Hint:", " (or directly", ". Saved"}) message = message.substr(0, message.find(end));
  Claim claim{.by = Producer::books, .kind = "raised", .sentence = "the step raised " + message, .line = error.line};
  if (!error.answer.empty()) claim.sentence += "; " + error.answer;
  for (const auto& [did, number] : error.ops) {
    const auto named = std::ranges::find(recording.ops, number, &StepOp::number);
    if (number < 0 || named == recording.ops.end()) continue;
    const BoundSymbolId op(named - recording.ops.begin());
    claim.also.push_back(op);
    claim.command = "source";
    const auto* kind = raisedKind(did);
    if (!kind) continue;
    claim.kind = kind;
    claim.op = op;
    if (did != "freed") claim.line = recordedLine(document, op);
  }
  return claim;
}

namespace {

/// Collects the claims of one step.
class StepReport {
 public:
  StepReport(const JudgedStep& judged, const JudgedStep* good)
      : judged_(judged),
        analysis_(*judged.analysis),
        document_(*judged.analysis->document),
        recording_(*judged.analysis->file.recording),
        step_(judged.step),
        good_(good) {}

  Report make() {
    report_.subject = recording_.path;
    raised();
    cuts();
    badUpdate();
    health();
    for (const auto& claim : step_.books) add(claim);
    hashes();
    coverage();
    if (good_) against();
    return std::move(report_);
  }

 private:
  void against() {
    const auto right = StepReport(*good_, nullptr).make().claims;
    for (auto& claim : differencesFrom(judged_, report_.claims, *good_, right)) add(std::move(claim));
  }

  void add(Claim claim) { report_.claims.push_back(std::move(claim)); }

  std::string placeOf(BoundSymbolId op) const {
    return fmt::format("op {} (#{}), {}", recording_.op(op).number, op.index, document_.symbol(op).name);
  }

  void raised() {
    if (!recording_.error.empty()) add(claimOfError(document_, recording_));
  }

  void cuts() {
    for (const auto& claim : step_.replay.unhealthy)
      if (claim.by == Producer::replay) add(claim);
    for (const auto& claim : step_.opinion.claims) add(claim);
    for (const auto& cut : step_.opinion.cuts) {
      auto claim = claimOf(cut, recording_);
      if (const auto forward = analysis_.links.forwardOf(document_, cut.op)) claim.also.push_back(forward);
      add(std::move(claim));
    }
  }

  void badUpdate() {
    for (const auto& update : step_.updates.steps)
      if (update.wasSkipped)
        add({.by = Producer::health,
             .severity = Severity::note,
             .kind = "update-skipped",
             .sentence = titleOf(step_.updates, update) + ": " + whySkipped(update)});
    const auto& bad = step_.updates.firstBad;
    if (!bad) return;
    const auto& update = step_.updates.steps[bad->step];
    const auto& parameter = update.parameters[bad->parameter].parameter;
    Claim claim{.by = Producer::health,
                .kind = "update-not-finite",
                .subject = parameter,
                .sentence = fmt::format("the update of {} in {} is not finite: {}", parameter,
                                        titleOf(step_.updates, update), bad->why),
                .line = bad->line,
                .op = bad->op};
    if (bad->op) {
      claim.sentence += ", made by " + document_.symbol(bad->op).name;
      claim.command = "source";
    }
    add(std::move(claim));
  }

  void health() {
    bool isFirst = true;
    for (auto claim : step_.replay.unhealthy) {
      if (claim.by == Producer::replay) continue;  // said before
      if (claim.severity == Severity::fault && isFirst && step_.root) {
        claim.op = step_.root;
        claim.line = recordedLine(document_, step_.root);
        claim.sentence += "; made by " + placeOf(step_.root);
      }
      isFirst &= claim.severity != Severity::fault;
      add(std::move(claim));
    }
    if (step_.replay.afterUninitialized > 0)
      add({.by = Producer::replay,
           .severity = Severity::note,
           .kind = "unwritten-memory",
           .sentence = fmt::format("{} results read memory that nobody had written; what is in it is chance",
                                   step_.replay.afterUninitialized)});
  }

  void hashes() {
    const auto& replay = step_.replay;
    const bool isComparable = replay.notComparable.empty();
    for (const auto& one : replay.first) {
      if (!isComparable) break;
      Claim claim{.by = Producer::replay,
                  .kind = "hash-differs",
                  .sentence = placeOf(one.op) + " is not as recorded",
                  .line = recordedLine(document_, one.op),
                  .op = one.op,
                  .value = one.value};
      if (!one.cause.empty()) claim.sentence += ", the first one; " + one.cause;
      add(std::move(claim));
    }
    if (isComparable && replay.differing > replay.first.size())
      report_.notes.push_back(
          fmt::format("{} more results are not as recorded", replay.differing - replay.first.size()));
    std::string why;
    for (const auto& [reason, n] : replay.notCompared)
      why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", n, reason);
    report_.notes.push_back(fmt::format("{} hashes of {} ops compared, {} differ{}", replay.compared, replay.ran,
                                        replay.differing, why.empty() ? "" : "; not compared: " + why));
    for (const auto& line : replay.notComparable) report_.notes.push_back("hashes may differ, because " + line);
    if (!replay.stopped.empty()) {
      auto reason = replay.stopped;
      if (replay.stoppedAt) reason += fmt::format("; {} could not run", placeOf(replay.stoppedAt));
      report_.notJudged.push_back(
          {fmt::format("{} of {} ops", replay.ops - replay.ran - replay.notRun.size(), replay.ops), std::move(reason)});
    }
    if (!recording_.damage.empty())
      report_.notJudged.push_back({"", "the recording is damaged or cut off: " + recording_.damage});
    if (replay.differing > 0 && !isComparable && step_.opinion.compared == 0)
      report_.notJudged.push_back({"", "hashes are not comparable, because " + replay.notComparable.front()});
  }

  /// The parameters whose gradients an optimizer or a scaler read; without an update those that got one.
  std::set<std::string> due() const {
    std::set<std::string> names, made;
    std::set<std::int32_t> read;
    for (const auto op : analysis_.joint.ops) {
      const auto& recorded = recording_.op(op);
      if (recorded.accumulates) made.emplace(document_.text(recorded.accumulates));
      if (recorded.phase != Phase::optimizer) continue;
      for (const auto operand : document_.operands(op))
        if (operand && document_.isTensor(operand)) read.insert(document_.value(operand).storage.index);
    }
    for (const auto& name : recording_.names)
      if (name.role == "gradient" && read.contains(name.storage.index)) names.insert(name.name);
    return names.empty() ? made : names;
  }

  void coverage() {
    const auto& opinion = step_.opinion;
    const auto names = due();
    report_.unit = "gradient that an optimizer read";
    report_.due = names.size();
    std::map<std::string, std::vector<std::string>> missing;  // parameters by reason
    for (const auto& name : names) {
      if (const auto found = opinion.notJudged.find(name); found != opinion.notJudged.end())
        missing[found->second].push_back(name);
      else if (opinion.judged.contains(name)) ++report_.judged;
      else missing["no backward of the recording made it"].push_back(name);
    }
    if (!step_.replay.stopped.empty()) return;  // which is the reason
    for (const auto& [reason, of] : missing) report_.notJudged.push_back({"gradient of " + namesText(of), reason});
  }

  const JudgedStep& judged_;
  const Analysis& analysis_;
  const Document& document_;
  const StepRecording& recording_;
  const ReplayedStep& step_;
  const JudgedStep* good_;
  Report report_;
};

}  // namespace

JudgedStep runStep(const std::shared_ptr<const Analysis>& analysis, const Progress& progress) {
  return {analysis, replayWithOpinion(analysis, progress)};
}

Report reportOf(const JudgedStep& judged, const JudgedStep* good) { return StepReport(judged, good).make(); }

}  // namespace retrograd
