// What stepping back costs compared with stepping forward, with memory for all of the way back, for three quarters of
// it and for half. docs/performance.md holds the figures of one run.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <random>
#include <string>

#include "core/torch/session/session.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"

namespace retrograd::benchmarks {
namespace {

double secondsOf(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Forward to the end, back to the start op by op, and single steps back from places all over the run. Ratios are to a
/// step forward on average.
void stepping(benchmark::State& state, const std::shared_ptr<const Analysis>& analysis, std::int64_t percent) {
  SessionOptions options;
  {
    Session session(analysis, options);
    session.runTo(session.size());
    options.historyBytes = session.history().bytes * percent / 100;
  }
  double forward = 0, back = 0, singles = 0, worst = 0;
  std::size_t reruns = 0;
  std::mt19937 random(1);
  for (auto _ : state) {
    Session session(analysis, options);
    forward += secondsOf([&] { session.runTo(session.size()); });
    reruns = std::max(reruns, session.history().reruns);
    const auto size = session.size();
    state.SetIterationTime(secondsOf([&] {
      while (session.position() > 0) {
        const auto one = secondsOf([&] { session.stepBack(); });
        back += one;
        worst = std::max(worst, one);
      }
    }));
    constexpr int places = 50;
    for (int i = 0; i < places; ++i) {
      session.runTo(size);
      session.runTo(1 + random() % size);
      singles += secondsOf([&] { session.stepBack(); }) * static_cast<double>(size) / places;
    }
  }
  const double step = forward / static_cast<double>(state.iterations());
  const auto ratio = [&](double seconds) { return seconds / static_cast<double>(state.iterations()) / step; };
  state.counters["budget_KB"] = static_cast<double>(options.historyBytes) / 1e3;
  state.counters["reruns"] = static_cast<double>(reruns);
  state.counters["back_over_forward"] = ratio(back);
  state.counters["single_over_forward"] = ratio(singles);
  state.counters["worst_over_forward"] = worst / (step / static_cast<double>(analysis->joint.ops.size()));
}

const bool registered = [] {
  for (const char* name : {"gpt12", "gpt96", "bert", "vit"}) {
    const std::string path = sourcePath("../shared/cases/large/") + name + "/model.pt2";
    if (!std::filesystem::exists(path)) continue;
    for (const std::int64_t percent : {100, 90, 75, 50})
      benchmark::RegisterBenchmark(
          ("stepping/" + std::string(name) + "/" + std::to_string(percent)).c_str(),
          [path, percent](benchmark::State& state) { stepping(state, openModel(path), percent); })
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace retrograd::benchmarks
