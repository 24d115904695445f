#include "core/torch/checking/bench.h"

#include <algorithm>
#include <chrono>
#include <map>

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
  std::ranges::sort(samples);
  const auto half = samples.size() / 2;
  return samples.size() % 2 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
}

using Samples = std::map<std::string, std::vector<double>>;  // seconds by step

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
  Session session(analysis, {.historyBytes = 0, .synchronous = false});
  samples["forward"].push_back(timed([&] { session.runTo(session.forwardSize(), progress); }));
  samples["backward"].push_back(timed([&] { session.runTo(session.size(), progress); }));
  double again = 0;
  for (std::size_t i = 0; i < session.size(); ++i)
    if (analysis->document->boundSymbol(session.opAt(i)).recomputed) again += session.measures()[i].seconds;
  samples["recompute"].push_back(again);
  report.peakBytes = std::max(report.peakBytes, session.peakBytes());
  progress.check();
  samples["recorded"].push_back(timed([&] { recordRun(*analysis, {}, progress); }));
  progress.check();
  const auto eager = timeEager(*analysis);
  samples["eager_forward"].push_back(eager.forwardSeconds);
  samples["eager_backward"].push_back(eager.backwardSeconds);
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
    samples["read"].push_back(analysis->times.read);
    samples["trace"].push_back(analysis->times.trace);
    runOnce(analysis, samples, report, progress);
  }
  addSaved(*analysis, report);
  report.ops = opCounts(*analysis);
  for (auto op : analysis->joint.ops) report.recomputedOps += analysis->document->boundSymbol(op).recomputed;
  const auto derivation = timeDerivation(*analysis, repeat);
  samples["joint"] = derivation.joint;
  samples["joint_warm"] = derivation.jointWarm;
  samples["split"] = derivation.split;
  for (const auto* step : {"read", "trace", "joint", "joint_warm", "split", "forward", "backward", "recompute",
                           "recorded", "eager_forward", "eager_backward"})
    report.seconds[step] = median(samples[step]);
  return report;
}

nlohmann::ordered_json toJson(const BenchReport& report) {
  nlohmann::ordered_json seconds = nlohmann::ordered_json::object();
  for (const auto& [step, time] : report.seconds) seconds[step] = time;
  auto ops = toJson(report.ops);
  ops["recomputed"] = report.recomputedOps;
  return {{"seconds", std::move(seconds)},
          {"ops", std::move(ops)},
          {"saved_bytes", report.savedBytes},
          {"saved_storage_bytes", report.savedStorageBytes},
          {"peak_bytes", report.peakBytes}};
}

std::vector<CurvePoint> budgetCurve(const OpenPartitioned& open, int points, int repeat, const Progress& progress) {
  const auto measure = [&](PartitionOptions::Kind kind, std::optional<std::int64_t> budget, int times) {
    return bench([&] { return open(kind, budget); }, times, progress);
  };
  const auto most = measure(PartitionOptions::defaultKind, {}, 1).savedStorageBytes,
             least = measure(PartitionOptions::minCut, {}, 1).savedStorageBytes;
  std::vector<CurvePoint> curve;
  const auto steps = std::max(points, 2) - 1;
  for (int i = 0; i <= steps; ++i) {
    const auto budget = least + (most - least) * i / steps;
    curve.push_back({budget, measure(PartitionOptions::minCut, budget, repeat)});
  }
  return curve;
}

nlohmann::ordered_json toJson(const std::vector<CurvePoint>& curve) {
  auto json = nlohmann::ordered_json::array();
  for (const auto& [budget, report] : curve)
    json.push_back({{"budget", budget},
                    {"saved_storage_bytes", report.savedStorageBytes},
                    {"recomputed_ops", report.recomputedOps},
                    {"recompute_seconds", report.seconds.at("recompute")},
                    {"backward_seconds", report.seconds.at("backward")},
                    {"peak_bytes", report.peakBytes}});
  return json;
}

}  // namespace retrograd
