#include "core/torch/checking/bench.h"

#include <algorithm>
#include <chrono>

#include "core/questions/run_record.h"
#include "core/questions/why.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/analysis/joint_run.h"
#include "core/torch/session/record_run.h"
#include "core/torch/session/session.h"

namespace retrograd {
namespace {

double median(std::vector<double> samples) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const auto half = samples.size() / 2;
  return samples.size() % 2 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
}

struct Samples {
  std::vector<double> read, trace, forward, backward, recompute, recorded, eagerForward, eagerBackward;
};

template <class Body>
double timed(Body&& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void addSaved(const Analysis& analysis, BenchReport& report) {
  const auto& document = *analysis.document;
  const auto saved = savedValues(analysis);
  for (auto value : document.valueIds())
    if (saved.contains(value) && document.isTensor(value) && document.value(value).kind == ValueKind::activation)
      report.savedBytes += document.meta(value).bytes();
  report.savedStorageBytes = saved.bytes;
}

void runOnce(const std::shared_ptr<const Analysis>& analysis, Samples& samples, BenchReport& report,
             const Progress& progress) {
  SessionOptions options;
  options.historyBytes = 0;
  options.synchronous = false;
  Session session(analysis, options);
  samples.forward.push_back(timed([&] { session.runTo(session.forwardSize(), progress); }));
  samples.backward.push_back(timed([&] { session.runTo(session.size(), progress); }));
  double again = 0;
  for (std::size_t i = 0; i < session.size(); ++i)
    if (analysis->document->boundSymbol(session.opAt(i)).recomputed) again += session.measures()[i].seconds;
  samples.recompute.push_back(again);
  report.peakBytes = std::max(report.peakBytes, session.peakBytes());
  progress.check();
  samples.recorded.push_back(timed([&] { recordRun(*analysis, {}, progress); }));
  progress.check();
  const auto eager = timeEager(*analysis);
  samples.eagerForward.push_back(eager.forwardSeconds);
  samples.eagerBackward.push_back(eager.backwardSeconds);
}

}  // namespace

BenchReport bench(const std::function<std::shared_ptr<const Analysis>()>& open, int repeat, const Progress& progress) {
  Samples samples;
  BenchReport report;
  std::shared_ptr<const Analysis> analysis;
  for (int i = 0; i < repeat; ++i) {
    progress.check();
    analysis.reset();  // two at once would count double in the process's memory
    analysis = open();
    if (!analysis->derived())
      throw Error(ErrorCode::execution, "the backward could not be derived", analysis->file.path);
    samples.read.push_back(analysis->times.read);
    samples.trace.push_back(analysis->times.trace);
    runOnce(analysis, samples, report, progress);
  }
  addSaved(*analysis, report);
  report.ops = {analysis->computation().trace.ops.size(), analysis->joint.ops.size(), analysis->forward.ops.size(),
                analysis->backward.ops.size()};
  const auto derivation = timeDerivation(*analysis, repeat);
  report.read = median(samples.read);
  report.trace = median(samples.trace);
  report.joint = median(derivation.joint);
  report.jointWarm = median(derivation.jointWarm);
  report.split = median(derivation.split);
  report.forward = median(samples.forward);
  report.backward = median(samples.backward);
  report.recompute = median(samples.recompute);
  for (auto op : analysis->joint.ops) report.recomputedOps += analysis->document->boundSymbol(op).recomputed;
  report.recorded = median(samples.recorded);
  report.eagerForward = median(samples.eagerForward);
  report.eagerBackward = median(samples.eagerBackward);
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
          {"recompute", recompute},
          {"recorded", recorded},
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
            {"backward", report.ops.backward},
            {"recomputed", report.recomputedOps}}},
          {"saved_bytes", report.savedBytes},
          {"saved_storage_bytes", report.savedStorageBytes},
          {"peak_bytes", report.peakBytes}};
}

}  // namespace retrograd
