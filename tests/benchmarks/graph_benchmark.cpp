// The costs of a joint's graph before it is drawn: the tree with its lifted edges, the first scene, one block
// opened, everything opened. Frames are measured in the window (views/graph_view_benchmark.cpp). docs/performance.md
// holds the figures of one run.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <string>

#include "core/layout/dot_client.h"
#include "core/layout/scene.h"
#include "core/torch/analysis/analyse.h"
#include "tests/benchmarks/process_figures.h"
#include "tests/benchmarks/synthetic_model.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"

namespace retrograd::benchmarks {
namespace {

using namespace layout;

double now() { return milliseconds(CLOCK_THREAD_CPUTIME_ID); }

void measure(benchmark::State& state, const Analysis& analysis) {
  double tree = 0, first = 0, block = 0, all = 0, bytes = 0, held = 0;
  LayerQuality lines;
  std::size_t boxes = 0, shown = 0;
  for (auto _ : state) {
    const auto before = residentMegabytes();
    const auto begin = now();
    auto graph =
        std::make_shared<const GraphTree>(buildTree(*analysis.document, analysis.joint, &analysis.computation()));
    const auto built = now();
    DotClient dot;
    Shaper shaper(graph, [&](const LayerGraph& g, const Progress& p) { return bestLayering(dot, g, p); });
    auto folds = openingFolds(*graph);
    const auto scene = makeScene(shaper, folds);
    const auto opened = now();
    shown = scene.boxes.size();
    // The block in the middle, whatever hides it.
    reveal(*graph, folds, graph->nodeOf(analysis.joint.ops[analysis.joint.forwardCount / 2]));
    const auto wide = makeScene(shaper, folds);  // a run that was closed shows all its blocks: not what one block costs
    std::int32_t target = -1;
    for (const auto& box : wide.boxes)
      if (!box.open && graph->node(box.node).kind == TreeNode::Kind::module) target = box.node;
    const auto asked = now();
    if (target >= 0) folds[static_cast<std::size_t>(target)] = true;
    const auto one = makeScene(shaper, folds);
    const auto got = now();
    for (std::int32_t i = 0; i < graph->size(); ++i) folds[static_cast<std::size_t>(i)] = graph->canOpen(i);
    const auto whole = makeScene(shaper, folds);
    const auto end = now();
    tree += built - begin;
    first += opened - built;
    block += got - asked;
    all += end - got;
    boxes = whole.boxes.size();
    bytes = static_cast<double>(graph->bytes() + whole.bytes()) / 1e6;
    held = residentMegabytes() - before;
    lines = shaper.quality();
    state.SetIterationTime((opened - begin) / 1e3);
  }
  const auto each = [&](double milliseconds) { return milliseconds / static_cast<double>(state.iterations()); };
  state.counters["ops"] = static_cast<double>(analysis.joint.ops.size());
  state.counters["tree_ms"] = each(tree);
  state.counters["first_ms"] = each(first);
  state.counters["block_ms"] = each(block);
  state.counters["all_ms"] = each(all);
  state.counters["first_boxes"] = static_cast<double>(shown);
  state.counters["boxes"] = static_cast<double>(boxes);
  state.counters["MB"] = bytes;
  state.counters["resident_MB"] = held;
  state.counters["crossings"] = static_cast<double>(lines.crossings);
}

void syntheticGraph(benchmark::State& state) {
  measure(state, *analyse(inModules(static_cast<std::size_t>(state.range(0)))));
}
BENCHMARK(syntheticGraph)->Arg(2'400)->Arg(24'000)->UseManualTime()->Unit(benchmark::kMillisecond);

/// The same without modules: the root alone is laid out, with as many children as there are ops.
void flatGraph(benchmark::State& state) {
  measure(state, *analyse(syntheticModel(static_cast<std::size_t>(state.range(0)))));
}
BENCHMARK(flatGraph)->Arg(24'000)->UseManualTime()->Unit(benchmark::kMillisecond);

void graphOfFile(benchmark::State& state, const std::string& path) { measure(state, *openModel(path)); }

const bool registered = [] {
  for (const char* name : {"gpt12", "gpt96", "vit"}) {
    const std::string path = sourcePath("../shared/cases/large/") + name + "/model.pt2";
    if (std::filesystem::exists(path))
      benchmark::RegisterBenchmark(("graph_" + std::string(name)).c_str(), graphOfFile, path)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace retrograd::benchmarks
