// What deriving costs: joint and split from an empty rule cache and from a warm one, on synthetic models of growing
// size and on the large cases where they lie next to the checkout. docs/performance.md holds the figures of one run.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/torch/analysis/analyse.h"
#include "tests/benchmarks/synthetic_model.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"

namespace retrograd::benchmarks {
namespace {

void measure(benchmark::State& state, const Analysis& analysis) {
  double joint = 0, warm = 0, split = 0;
  for (auto _ : state) {
    const auto times = timeDerivation(analysis, 1);
    joint += times.joint.at(0);
    warm += times.jointWarm.at(0);
    split += times.split.at(0);
    state.SetIterationTime(times.joint.at(0) + times.split.at(0));
  }
  const auto milliseconds = [&](double seconds) { return seconds * 1e3 / static_cast<double>(state.iterations()); };
  const auto ops = analysis.computation().trace.ops.size();
  state.counters["computation_ops"] = static_cast<double>(ops);
  state.counters["joint_ops"] = static_cast<double>(analysis.joint.ops.size());
  state.counters["joint_ms"] = milliseconds(joint);
  state.counters["joint_warm_ms"] = milliseconds(warm);
  state.counters["split_ms"] = milliseconds(split);
  state.counters["us_per_op"] = (milliseconds(joint) + milliseconds(split)) * 1e3 / static_cast<double>(ops);
  state.counters["table_MB"] = static_cast<double>(analysis.document->tableBytes()) / 1e6;
  state.SetComplexityN(static_cast<std::int64_t>(ops));
}

void synthetic(benchmark::State& state) {
  measure(state, *analyse(syntheticModel(static_cast<std::size_t>(state.range(0)))));
}
BENCHMARK(synthetic)
    ->Arg(100)
    ->Arg(1'000)
    ->Arg(10'000)
    ->Arg(100'000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oN);

/// From /proc/self/status, in MB: "VmRSS" now, "VmHWM" at most.
double memory(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field + ":")) return std::stod(line.substr(field.size() + 1)) / 1024;
  return 0;
}

/// Memory that a model and its traces take, parameters (a few hundred bytes each) included: run it alone.
void memoryOfSynthetic(benchmark::State& state) {
  (void)analyse(syntheticModel(100));  // what LibTorch takes once
  const auto before = memory("VmRSS");
  for (auto _ : state) {
    const auto analysis = analyse(syntheticModel(static_cast<std::size_t>(state.range(0))));
    state.counters["held_MB"] = memory("VmRSS") - before;
    state.counters["peak_MB"] = memory("VmHWM") - before;
    state.counters["table_MB"] = static_cast<double>(analysis->document->tableBytes()) / 1e6;
  }
}
BENCHMARK(memoryOfSynthetic)->Arg(100'000)->Iterations(1)->Unit(benchmark::kMillisecond);

void file(benchmark::State& state, const std::string& path) { measure(state, *openModel(path)); }

/// The large cases by name; none where they are not there.
const bool registered = [] {
  for (const char* name : {"gpt12", "gpt96", "bert", "vit"}) {
    const std::string path = sourcePath("../shared/cases/large/") + name + "/model.pt2";
    if (std::filesystem::exists(path))
      benchmark::RegisterBenchmark(name, file, path)->UseManualTime()->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace retrograd::benchmarks
