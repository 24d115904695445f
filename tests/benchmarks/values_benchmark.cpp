// How long it takes to have the operands and outputs of an op chosen at random, wherever a session is: the run
// ahead before the first one, and then each, with memory for all values, for half and for a tenth. docs/performance.md
// holds the figures of one run.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "core/torch/session/op_values.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"

namespace retrograd::benchmarks {
namespace {

double millisecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

/// `share`: of the bytes of all values, in percent; 0: the usual 2 GiB.
void anyOp(benchmark::State& state, const std::shared_ptr<const Analysis>& analysis, std::int64_t share) {
  OpValuesOptions options;
  if (share > 0) {
    OpValues all(analysis);
    all.runAhead(all.size());
    options.bytes = all.bytes() * share / 100;
  }
  OpValues values(analysis, options);
  const auto start = std::chrono::steady_clock::now();
  values.runAhead(values.size());
  state.counters["run_ahead_ms"] = millisecondsSince(start);
  std::mt19937 random(1);
  std::vector<double> times;
  for (auto _ : state) {
    const auto op = analysis->joint.ops[random() % values.size()];
    const auto begin = std::chrono::steady_clock::now();
    const auto moment = values.at(op);
    for (const auto list : {analysis->document->operands(op), analysis->document->outputs(op)})
      for (auto value : list)
        if (value && analysis->document->isTensor(value))
          benchmark::DoNotOptimize(moment->statistics(value, Moment::Side::after).norm);
    times.push_back(millisecondsSince(begin));
    state.SetIterationTime(times.back() / 1e3);
  }
  std::sort(times.begin(), times.end());
  state.counters["median_ms"] = times[times.size() / 2];
  state.counters["worst_ms"] = times.back();
  state.counters["kept_MB"] = static_cast<double>(values.bytes()) / 1e6;
  state.counters["let_go"] = static_cast<double>(values.letGo());
}

void add(const std::string& name, const std::string& path, std::initializer_list<std::int64_t> shares, int ops) {
  for (const auto share : shares)
    benchmark::RegisterBenchmark(("values_of_any_op/" + name + "/" + std::to_string(share)).c_str(),
                                 [path, share](benchmark::State& state) { anyOp(state, openModel(path), share); })
        ->UseManualTime()
        ->Iterations(ops)
        ->Unit(benchmark::kMillisecond);
}

const bool registered = [] {
  for (const char* name : {"gpt12", "gpt96", "bert", "vit"}) {
    const std::string path = sourcePath("../shared/cases/large/") + name + "/model.pt2";
    if (std::filesystem::exists(path)) add(name, path, {0, 50, 10}, 300);
  }
  // One of scripts/large-llama, with the usual memory alone: to find out the bytes of all values would hold all of
  // them.
  if (const char* large = std::getenv("RETROGRAD_LARGE_MODEL")) add("large", large, {0}, 100);
  return true;
}();

}  // namespace
}  // namespace retrograd::benchmarks
