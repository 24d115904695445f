#include "core/checking/threads.h"
#include "core/debug/read_model.h"
#include "core/debug/session_file.h"
#include "core/debug/tensor_text.h"
#include "core/formats/safetensors.h"
#include "views/session/engine.h"
#include "views/session/versions.h"

namespace retrograd::views {
namespace {

/// Session as Runner.
class SessionRunner : public Runner {
 public:
  explicit SessionRunner(std::shared_ptr<const Analysis> analysis) : session_(std::move(analysis)) {}
  std::size_t position() const override { return session_.position(); }
  StopReason step() override { return session_.step(); }
  StopReason stepBack() override {
    const auto reason = session_.stepBack();
    forgetFills();
    return reason;
  }
  StopReason runTo(std::size_t position, const Progress& progress) override {
    const auto reason = session_.runTo(position, progress);
    forgetFills();
    return reason;
  }
  StopReason continueForward(const Progress& progress) override { return session_.continueForward(progress); }
  StopReason continueBackward(const Progress& progress) override {
    const auto reason = session_.continueBackward(progress);
    forgetFills();
    return reason;
  }
  void restart() override {
    session_.restart();
    fills_.clear();
  }
  void setBreakpoints(std::vector<Breakpoint> breakpoints) override { session_.setBreakpoints(std::move(breakpoints)); }
  std::optional<std::size_t> hitBreakpoint() const override { return session_.hitBreakpoint(); }
  std::vector<std::int64_t> breakpointHits() const override { return session_.breakpointHits(); }
  void setBreakOnBadNumber(bool on) override { session_.setBreakOnBadNumber(on); }
  ValueState state(ValueId value) const override { return session_.state(value); }
  TensorStatistics statistics(ValueId value) const override { return session_.statistics(value); }
  TensorData contents(ValueId value) const override { return session_.contents(value); }
  std::vector<std::int64_t> histogram(ValueId value, int bins) const override { return session_.histogram(value, bins); }
  void fill(ValueId value, double number) override {
    session_.setContents(value, filledWith(session_.contents(value).meta, number));
    fills_[value] = {session_.position(), number};
  }
  std::map<ValueId, double> fills() const override {
    std::map<ValueId, double> numbers;
    for (const auto& [value, fill] : fills_) numbers[value] = fill.second;
    return numbers;
  }
  std::vector<OpMeasure> measures() const override { return session_.measures(); }
  std::int64_t liveBytes() const override { return session_.liveBytes(); }
  std::int64_t peakBytes() const override { return session_.peakBytes(); }

 private:
  /// A step back over the place of a fill takes it back.
  void forgetFills() {
    std::erase_if(fills_, [&](const auto& fill) { return fill.second.first > session_.position(); });
  }

  Session session_;
  std::map<ValueId, std::pair<std::size_t, double>> fills_;  ///< with the position at which it was filled
};

class LiveEngine : public Engine {
 public:
  explicit LiveEngine(std::shared_ptr<const RuleRegistry> rules) : rules_(std::move(rules)) {}

  std::shared_ptr<const Analysis> open(const OpenRequest& request, const Progress& progress) override {
    AnalysisOptions options;
    options.seed = request.seed;
    options.rules = rules_;
    options.gradInputs = request.gradInputs;
    options.partition = request.partition;
    options.device = request.device;
    if (request.device) requireDevice(*request.device);
    if (request.source == InputSource::file) options.inputs = readSafetensors(request.inputFile).tensors;
    if (request.source != InputSource::drawn) return openModel(request.path, options, progress);
    // Inputs are drawn where the archive holds none, so its own are taken out before the analysis. A traced file has drawn them already.
    auto file = readModel(request.path, options, progress);
    if (!file.traced) file.sampleInputs.clear();
    return analyse(std::move(file), options, progress);
  }

  std::vector<DeviceStatus> devices() override { return retrograd::devices(); }

  std::unique_ptr<Runner> run(std::shared_ptr<const Analysis> analysis) override {
    return std::make_unique<SessionRunner>(std::move(analysis));
  }

  RunRecord record(const Analysis& analysis, const std::map<ValueId, double>& fills, const Progress& progress) override {
    RecordOptions options;
    for (const auto& [value, number] : fills)
      options.replaced[value] = filledWith(analysis.document->meta(analysis.document->value(value).meta), number);
    return recordRun(analysis, options, progress);
  }

  WhatIf whatIf(const Analysis& analysis, const PartitionOptions& partition, const std::vector<OpMeasure>& measures,
                const Progress& progress) override {
    return retrograd::whatIf(analysis, partition, measures, progress);
  }

  GradientCheck checkGradients(const Analysis& analysis, const std::vector<BoundSymbolId>& ops, const Progress& progress) override {
    return retrograd::checkGradients(analysis, ops, progress);
  }

  RunComparison compare(const Analysis& analysis, const Counterpart& counterpart, double tolerance, const Progress& progress) override {
    progress.at("opening the other", 0);
    const auto other = openCounterpart(analysis, counterpart, progress);
    if (!other->derived()) throw Error(ErrorCode::badUse, "no backward could be derived for it", other->file.path);
    return compareRuns(analysis, *other, tolerance, {}, progress);
  }

 private:
  std::shared_ptr<const RuleRegistry> rules_;
};

}  // namespace

std::string engineVersion() { return libTorchVersion(); }

std::shared_ptr<Engine> liveEngine(std::shared_ptr<const RuleRegistry> rules) { return std::make_shared<LiveEngine>(std::move(rules)); }

}  // namespace retrograd::views
