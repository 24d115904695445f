#include <cmath>
#include <mutex>

#include "core/cut/as_read.h"
#include "core/formats/jobs/job_log.h"
#include "core/notes/note_file.h"
#include "core/questions/memory_join/job_step.h"
#include "core/torch/execution/memory_budget.h"
#include "core/torch/judging/compare.h"
#include "core/torch/reading/session_file.h"
#include "core/torch/session/op_values.h"
#include "core/torch/session/record_run.h"
#include "core/torch/session/tensor_text.h"
#include "core/torch/stages/boundary.h"
#include "core/torch/stages/open_pipeline.h"
#include "core/torch/stages/stage_costs.h"
#include "core/torch/stages/stage_files.h"
#include "core/torch/steps/judge_step.h"
#include "core/torch/tracing/drawn_input.h"
#include "core/torch/tracing/op_table.h"
#include "core/torch/tracing/thread_scope.h"
#include "views/engine/engine.h"
#include "views/engine/pipeline_engine.h"
#include "views/engine/versions.h"

namespace retrograd::views {
namespace {

/// Session as Runner. The session, and what keeps values of any op with it, are made when something is first asked of
/// them: both have tables of all ops and values, and a model that is only looked at needs neither.
class SessionRunner : public Runner {
 public:
  explicit SessionRunner(std::shared_ptr<const Analysis> analysis) : analysis_(std::move(analysis)) {
    Session::requireRunnable(*analysis_);
    valuesOptions_.statistics = true;
  }
  std::size_t position() const override { return session_ ? session_->position() : 0; }
  StopReason runTo(std::size_t position, const Progress& progress) override {
    const auto reason = session().runTo(position, progress);
    forgetFills();
    return reason;
  }
  StopReason continueTo(std::size_t position, const Progress& progress) override {
    const auto reason = session().continueTo(position, progress);
    forgetFills();
    return reason;
  }
  void restart() override {
    if (session_) session_->restart();
    fills_.clear();
  }
  void setBreakpoints(std::vector<Breakpoint> breakpoints) override {
    const std::lock_guard lock(stops_);
    breakpoints_ = std::move(breakpoints);
    if (session_) session_->setBreakpoints(breakpoints_);
  }
  std::optional<Breakpoint> hitBreakpoint() const override {
    if (!session_ || !session_->hitBreakpoint()) return std::nullopt;
    return session_->hitBreakpoint()->breakpoint;
  }
  std::vector<std::int64_t> breakpointHits() override {
    if (session_) return session_->breakpointHits();
    const std::lock_guard lock(stops_);
    return std::vector<std::int64_t>(breakpoints_.size(), 0);
  }
  void setBreakOnBadNumber(bool on) override {
    const std::lock_guard lock(stops_);
    breakOnBadNumber_ = on;
    if (session_) session_->setBreakOnBadNumber(on);
  }
  ValueState state(ValueId value) const override { return session().state(value); }
  TensorStatistics statistics(ValueId value) const override { return session().statistics(value); }
  TensorData contents(ValueId value) const override { return session().contents(value); }
  std::vector<std::int64_t> histogram(ValueId value, int bins) const override {
    return session().histogram(value, bins);
  }
  void fill(ValueId value, double number) override {
    session().setContents(value, filledTensor(session().contents(value).meta, number));
    fills_[value] = {position(), number};
  }
  std::map<ValueId, double> fills() const override {
    std::map<ValueId, double> numbers;
    for (const auto& [value, fill] : fills_) numbers[value] = fill.second;
    return numbers;
  }
  std::vector<OpMeasure> measures() const override {
    return session_ ? session_->measures() : std::vector<OpMeasure>();
  }
  std::int64_t liveBytes() const override { return session_ ? session_->liveBytes() : 0; }
  std::int64_t peakBytes() const override { return session_ ? session_->peakBytes() : 0; }
  Session::HistoryState history() const override {
    if (session_) return session_->history();
    Session::HistoryState none;
    none.budget = options_.historyBytes;
    return none;
  }
  void setHistoryBytes(std::int64_t bytes) override {
    options_.historyBytes = bytes;
    if (session_) session_->setHistoryBytes(bytes);
  }
  std::shared_ptr<const Moment> at(BoundSymbolId op, const Progress& progress) override {
    return values().at(op, progress);
  }
  std::shared_ptr<const Moment> of(ValueId value, const Progress& progress) override {
    return values().of(value, progress);
  }
  void runAhead(std::size_t position, std::int64_t memory, const Progress& progress) override {
    const auto budget = memory > 0 ? std::make_unique<MemoryBudget>(memory) : nullptr;
    values().runAhead(position, progress);
  }
  std::size_t known() const override { return values_ ? values_->known() : 0; }
  RunNews news() override { return values_ ? values_->news() : RunNews(); }
  void setOnNews(std::function<void()> onNews) override {
    onNews_ = std::move(onNews);
    if (values_) values_->setOnNews(onNews_);
  }
  void setKeptBytes(std::int64_t bytes) override {
    valuesOptions_.bytes = bytes;
    if (values_) values_->setBytes(bytes);
  }
  std::int64_t keptBytes() const override { return values_ ? values_->bytes() : 0; }

 private:
  OpValues& values() const {
    if (!values_) {
      values_ = std::make_unique<OpValues>(analysis_, valuesOptions_);
      values_->setOnNews(onNews_);
    }
    return *values_;
  }

  Session& session() const {
    if (session_) return *session_;
    auto session = std::make_unique<Session>(analysis_, options_);
    session->setFollower(&values().follower());
    const std::lock_guard lock(stops_);
    session->setBreakpoints(breakpoints_);
    session->setBreakOnBadNumber(breakOnBadNumber_);
    session_ = std::move(session);
    return *session_;
  }

  /// A step back over the place of a fill takes it back.
  void forgetFills() {
    std::erase_if(fills_, [&](const auto& fill) { return fill.second.first > position(); });
  }

  std::shared_ptr<const Analysis> analysis_;
  SessionOptions options_;
  OpValuesOptions valuesOptions_;
  std::function<void()> onNews_;
  mutable std::mutex stops_;  ///< breakpoints are set by any thread, also while the session is being made
  std::vector<Breakpoint> breakpoints_;
  bool breakOnBadNumber_ = false;
  mutable std::unique_ptr<OpValues> values_;
  mutable std::unique_ptr<Session> session_;                 ///< lets values_ know what it runs
  std::map<ValueId, std::pair<std::size_t, double>> fills_;  ///< with the position at which it was filled
};

class LivePipelines : public PipelineEngine {
 public:
  OpCosts measuredCosts(const std::shared_ptr<const Analysis>& whole, const Progress& progress) override {
    return retrograd::measuredCosts(whole, progress);
  }
  Report checkStages(const std::shared_ptr<const Analysis>& whole, const PipelineSplit& split,
                     const Progress& progress) override {
    return retrograd::checkStages(whole, split, progress);
  }
  void writeStages(const std::shared_ptr<const Analysis>& whole, const PipelineSplit& split,
                   const std::vector<std::string>& notes, const std::string& folder,
                   const Progress& progress) override {
    auto model = asRead(*whole);
    if (isUntyped(model)) retrograd::completeTypes(model, *whole);
    retrograd::writeStages(std::move(model), whole, split, notes, folder, progress);
  }
  void completeTypes(ModelFile& model, const Analysis& whole) override { retrograd::completeTypes(model, whole); }
};

class LiveEngine : public Engine {
 public:
  explicit LiveEngine(std::shared_ptr<const RuleRegistry> rules) : rules_(std::move(rules)) {}

  std::shared_ptr<const Analysis> open(const OpenRequest& request, const Progress& progress,
                                       const OnRead& onRead) override {
    if (request.device) requireDevice(*request.device);
    return openModel(asked(request), progress, onRead);
  }

  TracedStep gpuStep(const Analysis& analysis, const OpenRequest& request, const Progress& progress) override {
    if (analysis.file.format == Format::job) {
      auto step = jobStep(request.path, lookupSymbol, progress, request.data.compile, request.data.rank);
      showJobMakersIn(step, analysis);
      return step;
    }
    if (analysis.device.type == Device::Type::cuda) return tracedStep(analysis);
    auto onGpu = asked(request);
    onGpu.device = Device{Device::Type::cuda, 0};  // deriving needs no GPU
    const auto derived = openModel(onGpu, progress);
    if (!derived->derived()) return tracedStep(analysis);
    auto step = tracedStep(*derived);
    showMakersIn(step, *derived, analysis);
    return step;
  }

  void save(const Analysis& analysis, const std::string& opened, const std::string& path, bool embed,
            const Progress& progress) override {
    SaveSessionOptions options;
    options.embed = embed;
    options.marks = marksWith(analysis, NoteFile(opened).read(analysis));
    saveSession(analysis, path, options, progress);
  }

  ValueDifference compareValues(const TensorData& a, const TensorData& b) override {
    ValueDifference answer;
    answer.failure = shapeDifference(a, b, true);
    if (!answer.failure.empty()) return answer;
    answer.identical = identical(a, b);
    const auto x = asDoubles(a), y = asDoubles(b);
    double products = 0, normX = 0, normY = 0, magnitude = 0, sum = 0;
    std::int64_t compared = 0;
    for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!std::isfinite(x[i]) || !std::isfinite(y[i])) {
        answer.oneFinite += std::isfinite(x[i]) != std::isfinite(y[i]);
        continue;
      }
      const double gap = std::abs(x[i] - y[i]);
      answer.different += gap > 0;
      if (gap > answer.largest || answer.place < 0) answer.place = static_cast<std::int64_t>(i);
      answer.largest = std::max(answer.largest, gap);
      magnitude = std::max({magnitude, std::abs(x[i]), std::abs(y[i])});
      sum += gap;
      products += x[i] * y[i];
      normX += x[i] * x[i];
      normY += y[i] * y[i];
      ++compared;
    }
    answer.mean = compared > 0 ? sum / static_cast<double>(compared) : 0;
    answer.relative = magnitude > 0 ? answer.largest / magnitude : 0;
    answer.cosine = normX > 0 && normY > 0 ? products / std::sqrt(normX * normY) : 0;
    return answer;
  }
  std::int64_t freeMemory() const override { return retrograd::freeMemory(); }
  void rest() override { releaseKeptMemory(); }
  std::vector<DeviceStatus> devices() override { return retrograd::devices(); }

  std::unique_ptr<Runner> run(std::shared_ptr<const Analysis> analysis) override {
    return std::make_unique<SessionRunner>(std::move(analysis));
  }

  RunRecord record(const Analysis& analysis, const std::map<ValueId, double>& fills,
                   const Progress& progress) override {
    RecordOptions options;
    for (const auto& [value, number] : fills)
      options.replaced[value] = filledTensor(analysis.document->meta(value), number);
    return recordRun(analysis, options, progress);
  }

  WhatIf whatIf(const Analysis& analysis, const PartitionOptions& partition, const std::vector<OpMeasure>& measures,
                const Progress& progress) override {
    return retrograd::whatIf(analysis, partition, measures, progress);
  }

  std::vector<OpMeasure> measure(const std::shared_ptr<const Analysis>& analysis, const Progress& progress) override {
    Session session(analysis, {.historyBytes = 0});
    if (session.runTo(session.size(), progress) == StopReason::cancelled)
      throw Error(ErrorCode::cancelled, "cancelled");
    return session.measures();
  }

  PassTraces passes(const Analysis& analysis, const Progress& progress) override {
    return passesOf(analysis, progress);
  }

  GradientCheck checkGradients(const Analysis& analysis, const std::vector<BoundSymbolId>& ops,
                               const Progress& progress) override {
    return retrograd::checkGradients(analysis, ops, progress);
  }

  Report judgeStep(const std::shared_ptr<const Analysis>& analysis, const Progress& progress) override {
    return retrograd::judgeStep(analysis, progress);
  }

  std::map<std::string, UpdateNumbers> lastUpdates(const std::shared_ptr<const Analysis>& analysis,
                                                   const Progress& progress) override {
    return retrograd::lastUpdates(analysis, progress);
  }

  AllocatorPeak measureMemory(const std::shared_ptr<const Analysis>& analysis, const Progress& progress) override {
    return allocatorPeak(analysis, progress);
  }

  RunComparison compare(const Analysis& analysis, const Counterpart& counterpart, double tolerance,
                        const Progress& progress) override {
    progress.at("opening the other", 0);
    const auto other = openCounterpart(analysis, counterpart, progress);
    if (!other->derived()) {
      const auto& problems = other->problems;
      const auto why = std::find_if(problems.rbegin(), problems.rend(),
                                    [](const Problem& p) { return p.severity == Problem::Severity::error; });
      if (why != problems.rend()) throw Error(ErrorCode::badUse, why->message, why->place);
      throw Error(ErrorCode::badUse, "no backward could be derived for it", other->file.path);
    }
    return compareRuns(analysis, *other, tolerance, {}, progress);
  }

  PipelineEngine* pipelines() override { return &pipelines_; }

 private:
  OpenRequest asked(OpenRequest request) const {
    request.rules = rules_;
    request.onRecordedDevice = true;
    return request;
  }

  LivePipelines pipelines_;
  std::shared_ptr<const RuleRegistry> rules_;
};

}  // namespace

std::string engineVersion() { return libTorchVersion(); }

std::shared_ptr<Engine> liveEngine(std::shared_ptr<const RuleRegistry> rules) {
  return std::make_shared<LiveEngine>(std::move(rules));
}

}  // namespace retrograd::views
