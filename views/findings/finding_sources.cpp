#include "views/findings/finding_sources.h"

#include <fmt/format.h>

#include "core/derivation/gradient_of.h"
#include "core/questions/finding.h"
#include "core/stepping/bad_places.h"
#include "core/trace/source.h"
#include "views/models/nan_model.h"

namespace retrograd::views {
namespace {

const QString ofRun = QStringLiteral("run"), ofWalk = QStringLiteral("walk"), ofGradients = QStringLiteral("gradients"),
              ofLayers = QStringLiteral("layers");
const QString checkCommand = QStringLiteral("check-run");
constexpr int pause = 200;            // ms
constexpr double longestUnasked = 5;  ///< seconds of a run that nobody asked for

/// Of a run in which nothing bad was seen so far.
Report runReport(const OpenDocument& open, const RunNumbers& numbers) {
  Report report;
  if (!open.analysis->derived()) report.notJudged.push_back({"the backward", "none could be derived: see Problems"});
  else if (!open.noRunReason.isEmpty()) report.notJudged.push_back({"the run", open.noRunReason.toStdString()});
  else if (numbers.known() == 0) report.notJudged.push_back({"the run", "it was not looked at yet"});
  else if (numbers.known() < numbers.size())
    report.notJudged.push_back({"the run", fmt::format("{} of {} ops ran so far", numbers.known(), numbers.size())});
  else report.judged = numbers.size();
  report.due = report.judged;
  report.unit = "op whose results are finite";
  return report;
}

}  // namespace

FindingSources::FindingSources(ViewContext context, QObject* parent)
    : QObject(parent), context_(context), board_(FindingBoard::of(*context.controller)) {
  soon_.setSingleShot(true);
  soon_.setInterval(pause);
  connect(&soon_, &QTimer::timeout, this, [this] {
    lookAtRun();
    lookAtLayers();
    lookAtStep();
  });
  auto& numbers = context_.controller->ahead().numbers();
  connect(&numbers, &RunNumbers::changed, &soon_, qOverload<>(&QTimer::start));
  connect(&numbers, &RunNumbers::badOpsChanged, this, &FindingSources::lookAtRun);
  connect(context_.execution, &ExecutionState::changed, this, &FindingSources::lookAtRun);
  connect(context_.controller, &DocumentController::documentChanged, this, &FindingSources::lookAtGradients);
  connect(context_.controller, &DocumentController::documentAboutToChange, this, [this] {
    gradients_.cancel();
    layers_.cancel();
  });
}

void FindingSources::lookAtRun() {
  const auto& open = context_.controller->document();
  const auto& numbers = context_.controller->ahead().numbers();
  const auto& stopped = context_.execution->now().bad;
  const auto first = numbers.firstBad();
  const auto op = first ? first : stopped.empty() ? BoundSymbolId() : *stopped.begin();
  if (!open || (op && (board_.has(ofWalk) || checked_ == open->analysis))) return board_.set(ofRun, {});
  if (!op) return board_.setReport(ofRun, runReport(*open, numbers), checkCommand);
  const auto& document = *open->analysis->document;
  Claim claim{.by = Producer::health,
              .kind = "not-finite",
              .sentence = "NaN or Inf is first made by " + placeOfOp(document, op),
              .op = op,
              .command = "walk-to-root"};
  for (auto value : document.outputs(op))
    if (const auto* s = value ? numbers.statistics(value) : nullptr; s && s->nan + s->inf > 0 && !claim.value) {
      claim.value = value;
      claim.sentence += ": " + badCounts(*s);
    }
  board_.set(ofRun, {claim});
  if (numbers.known() == numbers.size()) findRoot();
}

/// How the first NaN came about, before anyone asks: where a run takes a moment.
void FindingSources::findRoot() {
  const auto document = context_.controller->document();
  if (walked_ == document->analysis || document->analysis->file.recording || document->seconds > longestUnasked) return;
  walked_ = document->analysis;
  const auto walk = [this](const QuestionContext& context, const Progress& progress) -> Worker::Deliver {
    const auto way = walkNan(context, {}, progress);
    auto claims = claimsOf(*context.document.analysis, way);
    const auto element = elementAtRoot(context, way, progress);
    if (!claims.empty() && !element.isEmpty()) claims.front().sentence += "; " + element.toStdString();
    for (auto& claim : claims) claim.command = "walk-to-root";
    return [this, claims = std::move(claims)] {
      if (board_.has(ofWalk)) return;  // a person asked, and knows more
      board_.set(ofWalk, claims);
      lookAtRun();
    };
  };
  context_.controller->questions().ask(this, ofWalk, tr("Looking for the root of the NaN"), walk);
}

void FindingSources::lookAtGradients() {
  const auto document = context_.controller->document();
  if (!document) return;
  lookAtRun();
  if (document->analysis->file.recording) {
    Report due;
    due.notJudged.push_back({"the step", "it was not compared with its derivatives"});
    board_.setReport(ofStep(), due, checkCommand);
  }
  gradients_.start([this, document](const Progress& progress) -> PoolJob::Deliver {
    const auto& analysis = *document->analysis;
    Report report;
    report.claims = missingGradients(analysis, 20, progress);
    if (analysis.derived() && !analysis.file.recording) {
      const auto gradients = gradientsOfInputs(analysis);
      const auto& inputs = analysis.computation().inputs;
      for (std::size_t i = 0; i < std::min(inputs.size(), gradients.size()); ++i)
        report.judged += inputs[i].kind == InputKind::parameter && gradients[i].valid();
      report.due = report.judged;
      report.unit = "parameter with a gradient";
    }
    return [this, report = std::move(report)] { board_.setReport(ofGradients, report); };
  });
}

void FindingSources::lookAtLayers() {
  const auto document = context_.controller->document();
  const auto& numbers = context_.controller->ahead().numbers();
  if (!document || numbers.size() == 0 || numbers.known() < numbers.size() || layers_.busy()) return;
  const auto norms = std::make_shared<std::map<ValueId, double>>();
  for (auto gradient : document->analysis->joint.outputs)
    if (const auto* s = gradient ? numbers.statistics(gradient) : nullptr; s && s->nan + s->inf == 0)
      (*norms)[gradient] = s->norm;
  layers_.start([this, document, norms](const Progress&) -> PoolJob::Deliver {
    const auto normOf = [&](ValueId gradient) -> std::optional<double> {
      const auto found = norms->find(gradient);
      return found == norms->end() ? std::nullopt : std::optional(found->second);
    };
    return [this, found = layersThatDiffer(*document->analysis, normOf)] { board_.set(ofLayers, found); };
  });
}

/// After the run, whose numbers a person waits for.
void FindingSources::lookAtStep() {
  const auto document = context_.controller->document();
  const auto& numbers = context_.controller->ahead().numbers();
  if (!document || !document->analysis->file.recording || judged_ == document->analysis) return;
  if (numbers.size() == 0 || numbers.known() < numbers.size()) return;
  judged_ = document->analysis;
  const auto judge = [this](const QuestionContext& context, const Progress& progress) -> Worker::Deliver {
    const auto report = context.engine.judgeStep(context.document.analysis, progress);
    return [this, report] {
      checked_ = judged_;
      board_.setReport(ofStep(), report);
      lookAtRun();
    };
  };
  context_.controller->questions().ask(this, ofStep(), tr("Second opinion on the step"), judge);
}

std::vector<Claim> findingsOf(const GradientCheck& check, const std::string& range, BoundSymbolId first) {
  std::vector<Claim> claims;
  const auto add = [&](Severity severity, const char* kind, std::string sentence) {
    claims.push_back({.by = Producer::derivative,
                      .severity = severity,
                      .kind = kind,
                      .sentence = std::move(sentence),
                      .op = first,
                      .command = "checks"});
  };
  using Verdict = GradientCheckRow::Verdict;
  for (const auto& row : check.rows) {
    if (row.verdict == Verdict::wrong)
      add(Severity::fault, "gradient-wrong",
          fmt::format("the gradient of {} is wrong: {}finite differences {:.3g}, LibTorch {:.3g}", row.input,
                      row.note.empty() ? "" : row.note + ", ", row.finiteDifferences, row.libTorch));
    else if (row.verdict != Verdict::right)
      add(Severity::note, "gradient-at-kink",
          fmt::format("of the gradient of {} nothing can be said there: {}", row.input, row.note));
  }
  for (const auto& lost : check.lostBackwards)
    add(Severity::suspicion, "backward-lost",
        fmt::format("the file lacks the backward that PyTorch runs for {}", lost));
  if (claims.empty() && check.passed && !check.rows.empty())
    add(Severity::note, "gradient-right", fmt::format("the gradient of {} is right", range));
  return claims;
}

std::vector<Claim> findingsOf(const Document& document, const RunComparison& comparison, const std::string& other) {
  Claim claim{.by = Producer::run, .severity = Severity::note, .kind = "runs-agree"};
  if (comparison.firstDivergence) {
    const auto& row = comparison.rows[*comparison.firstDivergence];
    claim.severity = Severity::suspicion;
    claim.kind = "runs-differ";
    claim.sentence =
        fmt::format("differs from {} first at {}: ", other, document.displayName(row.valueA)) +
        (row.note.empty() ? fmt::format("relative {:.3g}, norms {:.3g} and {:.3g}", row.relative, row.normA, row.normB)
                          : row.note);
    claim.op = row.opA;
    claim.value = row.valueA;
  } else {
    claim.sentence = fmt::format("agrees with {} in {} values: largest relative difference {:.3g}", other,
                                 comparison.rows.size(), comparison.largest);
  }
  return {claim};
}

}  // namespace retrograd::views
