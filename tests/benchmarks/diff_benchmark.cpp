// What it costs to align two joints: of one model opened twice, and of a model and itself with some ops taken out.
#include <benchmark/benchmark.h>

#include <ctime>

#include "core/torch/analysis/analyse.h"
#include "core/trace/diff/trace_diff.h"
#include "tests/benchmarks/synthetic_model.h"

namespace retrograd::benchmarks {
namespace {

double cpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

DiffSide sideOf(const Analysis& a, const Trace& trace, bool withJoint) {
  return {a.document.get(), &trace, &a.computation().trace, withJoint ? &a.joint : nullptr};
}

void measure(benchmark::State& state, const DiffSide& left, const DiffSide& right) {
  TraceDiff::Counts counts;
  for (auto _ : state) {
    const auto begin = cpuSeconds();
    counts = diffTraces(left, right).counts;
    state.SetIterationTime(cpuSeconds() - begin);
  }
  state.counters["rows_differ"] =
      static_cast<double>(counts.changed + counts.onlyLeft + counts.onlyRight + counts.moved);
  state.counters["rows_same"] = static_cast<double>(counts.same);
  state.SetComplexityN(state.range(0));
}

void diffOfOneFile(benchmark::State& state) {
  const auto a = analyse(syntheticModel(static_cast<std::size_t>(state.range(0)))),
             b = analyse(syntheticModel(static_cast<std::size_t>(state.range(0))));
  measure(state, sideOf(*a, a->joint, true), sideOf(*b, b->joint, true));
}
BENCHMARK(diffOfOneFile)
    ->Arg(1'000)
    ->Arg(10'000)
    ->Arg(100'000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oN);

/// Computations without modules, of which every hundredth op of the second is missing: only the order helps
/// which is which.
void diffOfEdited(benchmark::State& state) {
  const auto a = analyse(syntheticModel(static_cast<std::size_t>(state.range(0)))),
             b = analyse(syntheticModel(static_cast<std::size_t>(state.range(0))));
  auto edited = b->computation().trace;
  std::vector<BoundSymbolId> kept;
  for (std::size_t i = 0; i < edited.ops.size(); ++i)
    if (i % 100 != 57) kept.push_back(edited.ops[i]);
  edited.ops = std::move(kept);
  measure(state, sideOf(*a, a->computation().trace, false), {b->document.get(), &edited, &edited, nullptr});
}
BENCHMARK(diffOfEdited)
    ->Arg(1'000)
    ->Arg(10'000)
    ->Arg(100'000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oNLogN);

}  // namespace
}  // namespace retrograd::benchmarks
