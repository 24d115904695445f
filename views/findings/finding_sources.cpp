#include "views/findings/finding_sources.h"

#include <fmt/format.h>

namespace retrograd::views {
namespace {

const QString ofRun = QStringLiteral("run"), ofWalk = QStringLiteral("walk"), ofGradients = QStringLiteral("gradients"),
              ofLayers = QStringLiteral("layers"), ofStep = QStringLiteral("step");
constexpr int pause = 200;  // ms

/// "3 NaN, 1 Inf of 8".
std::string countsOf(const TensorStatistics& statistics) {
  std::string text;
  if (statistics.nan) text += fmt::format("{} NaN", statistics.nan);
  if (statistics.inf) text += fmt::format("{}{} Inf", text.empty() ? "" : ", ", statistics.inf);
  return fmt::format("{} of {}", text.empty() ? "0" : text, statistics.elements);
}

std::string callOf(const Document& document, BoundSymbolId op) {
  return fmt::format("#{} {}", op.index, document.symbol(op).name);
}

Finding rootFinding(const Document& document, BoundSymbolId op, ValueId value, const TensorStatistics& statistics,
                    const std::string& explanation) {
  Finding finding;
  finding.severity = Finding::Severity::error;
  const char* what = statistics.nan ? "NaN" : "Inf";
  finding.title = op ? fmt::format("{} begins at {}", what, callOf(document, op))
                     : fmt::format("{} comes in with {}", what, document.displayName(value));
  finding.numbers = countsOf(statistics);
  if (!explanation.empty()) finding.numbers += ": " + explanation;
  finding.op = op;
  finding.value = value;
  if (op) finding.command = "source";
  return finding;
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
  if (!open || !op || board_.has(ofWalk)) return board_.set(ofRun, {});
  const auto& document = *open->analysis->document;
  Finding finding;
  finding.severity = Finding::Severity::error;
  finding.title = fmt::format("NaN or Inf first made by {}", callOf(document, op));
  finding.op = op;
  for (auto value : document.outputs(op))
    if (const auto* s = value ? numbers.statistics(value) : nullptr; s && s->nan + s->inf > 0 && !finding.value) {
      finding.value = value;
      finding.numbers = countsOf(*s);
    }
  finding.command = "walk-to-root";
  board_.set(ofRun, {finding});
}

void FindingSources::lookAtGradients() {
  const auto document = context_.controller->document();
  if (!document) return;
  gradients_.start([this, document](const Progress& progress) -> PoolJob::Deliver {
    return [this, found = missingGradients(*document->analysis, 20, progress)] { board_.set(ofGradients, found); };
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
    const auto found = context.engine.judgeStep(context.document.analysis, progress);
    return [this, found] { board_.set(ofStep, found); };
  };
  context_.controller->questions().ask(this, ofStep, tr("Second opinion on the step"), judge);
}

std::vector<Finding> findingsOf(const Document& document, const NanWalk& walk) {
  std::vector<Finding> findings;
  if (walk.path.empty()) return findings;
  const auto& last = walk.path.back();
  findings.push_back(rootFinding(document, walk.root, last.value, last.statistics, walk.explanation));
  for (const auto& root : walk.otherRoots)
    findings.push_back(rootFinding(document, root.op, root.value, root.statistics, root.explanation));
  return findings;
}

std::vector<Finding> findingsOf(const GradientCheck& check, const std::string& range, BoundSymbolId first) {
  std::vector<Finding> findings;
  const auto add = [&](Finding::Severity severity, std::string title, std::string numbers) {
    Finding finding;
    finding.severity = severity;
    finding.title = std::move(title);
    finding.numbers = std::move(numbers);
    finding.op = first;
    finding.command = "checks";
    findings.push_back(std::move(finding));
  };
  for (const auto& row : check.rows)
    if (row.note.empty() &&
        (row.finiteDifferences > GradientCheck::finiteTolerance || row.libTorch > GradientCheck::libTorchTolerance))
      add(Finding::Severity::error, fmt::format("the gradient of {} is wrong, or not smooth there", row.input),
          fmt::format("finite differences {:.3g}, LibTorch {:.3g}", row.finiteDifferences, row.libTorch));
  for (const auto& lost : check.lostBackwards)
    add(Finding::Severity::warning, fmt::format("the file lacks the backward that PyTorch runs for {}", lost), {});
  if (findings.empty() && check.passed && !check.rows.empty())
    add(Finding::Severity::note, fmt::format("the gradient of {} is right", range), {});
  return findings;
}

std::vector<Finding> findingsOf(const Document& document, const RunComparison& comparison, const std::string& other) {
  Finding finding;
  if (comparison.firstDivergence) {
    const auto& row = comparison.rows[*comparison.firstDivergence];
    finding.severity = Finding::Severity::warning;
    finding.title = fmt::format("differs from {} first at {}", other, document.displayName(row.valueA));
    finding.numbers = row.note.empty()
                          ? fmt::format("relative {:.3g}, norms {:.3g} and {:.3g}", row.relative, row.normA, row.normB)
                          : row.note;
    finding.op = row.opA;
    finding.value = row.valueA;
  } else {
    finding.severity = Finding::Severity::note;
    finding.title = fmt::format("agrees with {} in {} values", other, comparison.rows.size());
    finding.numbers = fmt::format("largest relative difference {:.3g}", comparison.largest);
  }
  return {finding};
}

}  // namespace retrograd::views
