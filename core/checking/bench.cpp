#include "core/checking/bench.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "core/debug/session.h"
#include "core/execution/joint_run.h"
#include "core/grad/rule_cache.h"

namespace retrograd {
namespace {

class Medians {
 public:
  void add(double seconds) { samples_.push_back(seconds); }
  double median() {
    if (samples_.empty()) return 0;
    std::sort(samples_.begin(), samples_.end());
    const auto half = samples_.size() / 2;
    return samples_.size() % 2 ? samples_[half] : (samples_[half - 1] + samples_[half]) / 2;
  }

 private:
  std::vector<double> samples_;
};

struct Samples {
  Medians read, trace, joint, jointWarm, split, forward, backward, eagerForward, eagerBackward;
};

template <class Body>
double timed(Body&& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void addSaved(const Analysis& analysis, BenchReport& report) {
  const auto& document = *analysis.document;
  std::set<ValueId> values;
  std::set<StorageId> storages;
  const auto& outputs = analysis.forward.outputs;
  for (std::size_t i = analysis.forward.resultCount; i < outputs.size(); ++i) {
    if (!outputs[i] || !document.isTensor(outputs[i])) continue;
    const auto& value = document.value(outputs[i]);
    const bool activation = value.kind == ValueKind::activation && !(value.storage && document.storage(value.storage).external);
    if (!activation || !values.insert(outputs[i]).second) continue;
    report.savedBytes += document.meta(value.meta).bytes();
    if (value.storage && storages.insert(value.storage).second) report.savedStorageBytes += document.storage(value.storage).bytes;
  }
}

void runOnce(const std::shared_ptr<const Analysis>& analysis, Samples& samples, BenchReport& report, const Progress& progress) {
  SessionOptions options;
  options.keepHistory = false;
  Session session(analysis, options);
  samples.forward.add(timed([&] { session.runTo(session.forwardSize(), progress); }));
  samples.backward.add(timed([&] { session.runTo(session.size(), progress); }));
  report.peakBytes = std::max(report.peakBytes, session.peakBytes());
  progress.check();
  const auto eager = timeEager(*analysis);
  samples.eagerForward.add(eager.forwardSeconds);
  samples.eagerBackward.add(eager.backwardSeconds);
}

}  // namespace

BenchReport bench(const std::string& path, const AnalysisOptions& options, int repeat, const Progress& progress) {
  Samples samples;
  BenchReport report;
  for (int i = 0; i < repeat; ++i) {
    progress.check();
    clearRuleCache();
    const auto analysis = openModel(path, options, progress);
    if (!analysis->derived()) throw Error(ErrorCode::execution, "the backward could not be derived", path);
    samples.read.add(analysis->times.read);
    samples.trace.add(analysis->times.trace);
    samples.joint.add(analysis->times.joint);
    samples.split.add(analysis->times.split);
    samples.jointWarm.add(openModel(path, options, progress)->times.joint);
    runOnce(analysis, samples, report, progress);
    if (i > 0) continue;
    addSaved(*analysis, report);
    report.ops = {analysis->computation().trace.ops.size(), analysis->joint.ops.size(), analysis->forward.ops.size(),
                  analysis->backward.ops.size()};
  }
  report.read = samples.read.median();
  report.trace = samples.trace.median();
  report.joint = samples.joint.median();
  report.jointWarm = samples.jointWarm.median();
  report.split = samples.split.median();
  report.forward = samples.forward.median();
  report.backward = samples.backward.median();
  report.eagerForward = samples.eagerForward.median();
  report.eagerBackward = samples.eagerBackward.median();
  return report;
}

std::vector<std::pair<std::string, double>> BenchReport::seconds() const {
  return {{"read", read},
          {"trace", trace},
          {"joint", joint},
          {"joint_warm", jointWarm},
          {"split", split},
          {"forward", forward},
          {"backward", backward},
          {"eager_forward", eagerForward},
          {"eager_backward", eagerBackward}};
}

nlohmann::ordered_json toJson(const BenchReport& report) {
  nlohmann::ordered_json seconds = nlohmann::ordered_json::object();
  for (const auto& [step, time] : report.seconds()) seconds[step] = time;
  return {{"seconds", std::move(seconds)},
          {"ops",
           {{"computation", report.ops.computation},
            {"joint", report.ops.joint},
            {"forward", report.ops.forward},
            {"backward", report.ops.backward}}},
          {"saved_bytes", report.savedBytes},
          {"saved_storage_bytes", report.savedStorageBytes},
          {"peak_bytes", report.peakBytes}};
}

}  // namespace retrograd
