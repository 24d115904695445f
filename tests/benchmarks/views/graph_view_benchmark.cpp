// The graph in its window: opening it at module level, opening a block, frames while it is moved, memory beyond the
// traces. Layouts are measured by the clock and by the processor, frames by the processor time of the thread
// that paints. docs/performance.md holds the figures of one run.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <QApplication>
#include <QSettings>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTimer>
#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/torch/analysis/analyse.h"
#include "tests/benchmarks/process_figures.h"
#include "tests/benchmarks/synthetic_model.h"
#include "tests/support/open_model.h"
#include "tests/support/source_path.h"
#include "views/window/main_window.h"

namespace retrograd::benchmarks {
namespace {

using namespace views;

/// Has ready what is opened: how long deriving takes is measured elsewhere.
class ReadyEngine : public Engine {
 public:
  explicit ReadyEngine(std::shared_ptr<const Analysis> analysis) : analysis_(std::move(analysis)) {}
  std::shared_ptr<const Analysis> open(const OpenRequest&, const Progress&, const OnRead&) override {
    return analysis_;
  }
  std::unique_ptr<Runner> run(std::shared_ptr<const Analysis> analysis) override {
    return live_->run(std::move(analysis));
  }
  std::int64_t freeMemory() const override { return live_->freeMemory(); }
  RunRecord record(const Analysis& a, const std::map<ValueId, double>& fills, const Progress& p) override {
    return live_->record(a, fills, p);
  }
  WhatIf whatIf(const Analysis& a, const PartitionOptions& o, const std::vector<OpMeasure>& m,
                const Progress& p) override {
    return live_->whatIf(a, o, m, p);
  }
  GradientCheck checkGradients(const Analysis& a, const std::vector<BoundSymbolId>& ops, const Progress& p) override {
    return live_->checkGradients(a, ops, p);
  }
  AllocatorPeak measureMemory(const std::shared_ptr<const Analysis>& a, const Progress& p) override {
    return live_->measureMemory(a, p);
  }
  RunComparison compare(const Analysis& a, const Counterpart& c, double tolerance, const Progress& p) override {
    return live_->compare(a, c, tolerance, p);
  }

 private:
  std::shared_ptr<const Analysis> analysis_;
  std::shared_ptr<Engine> live_ = liveEngine();
};

/// Knows how long the longest event took of the thread's processor time.
class TimedApplication : public QApplication {
 public:
  using QApplication::QApplication;

  bool notify(QObject* receiver, QEvent* event) override {
    if (depth_ > 0) return QApplication::notify(receiver, event);
    ++depth_;
    const auto begin = milliseconds(CLOCK_THREAD_CPUTIME_ID);
    const bool done = QApplication::notify(receiver, event);
    longest_ = std::max(longest_, milliseconds(CLOCK_THREAD_CPUTIME_ID) - begin);
    --depth_;
    return done;
  }
  /// Since it was asked last.
  static double takeLongest() { return std::exchange(longest_, 0); }

 private:
  static inline double longest_ = 0;
  int depth_ = 0;
};

template <class Done>
void waitFor(Done done) {
  while (!done()) QApplication::processEvents(QEventLoop::WaitForMoreEvents, 1);
}

struct Took {
  double wall = milliseconds(CLOCK_MONOTONIC), cpu = milliseconds(CLOCK_PROCESS_CPUTIME_ID);
  Took since() const { return {milliseconds(CLOCK_MONOTONIC) - wall, milliseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu}; }
};

struct Frames {
  double median = 0, slowest = 0;  ///< of the thread that paints; 99 of 100 are below `slowest`
  double all = 0;                  ///< median with what Qt's own threads fill
  void worse(const Frames& other) {
    median = std::max(median, other.median);
    slowest = std::max(slowest, other.slowest);
    all = std::max(all, other.all);
  }
};

template <class Move>
Frames framesOf(GraphView& graph, Move move) {
  std::vector<double> times, all;
  for (int i = 0; i < 200; ++i) {
    move(i);
    const auto begin = milliseconds(CLOCK_THREAD_CPUTIME_ID), allBegin = milliseconds(CLOCK_PROCESS_CPUTIME_ID);
    graph.repaint();
    times.push_back(milliseconds(CLOCK_THREAD_CPUTIME_ID) - begin);
    all.push_back(milliseconds(CLOCK_PROCESS_CPUTIME_ID) - allBegin);
  }
  std::sort(times.begin(), times.end());
  std::sort(all.begin(), all.end());
  return {times[times.size() / 2], times[times.size() * 99 / 100], all[all.size() / 2]};
}

/// One window with one graph.
class Bench {
 public:
  explicit Bench(std::shared_ptr<const Analysis> analysis)
      : analysis_(std::move(analysis)),
        settings_(folder_.filePath(QStringLiteral("settings.ini")), QSettings::IniFormat),
        theme_(*qApp),
        window_({std::make_shared<Worker>(), std::make_shared<ReadyEngine>(analysis_), &theme_, &settings_}) {
    theme_.choose(Theme::Choice::light);
    window_.resize(1600, 1000);
    window_.show();
    window_.openFile(QString::fromStdString(analysis_->file.path));
    auto& controller = *window_.context().controller;
    waitFor([&] {
      return controller.document() && !controller.opening() && !controller.questions().asking() &&
             !window_.context().execution->now().running && !controller.ahead().running();
    });
  }

  GraphView& graph() { return window_.listings().graph(); }
  void settle() {
    waitFor([&] { return graph().picture() && !graph().busy(); });
  }

  /// The first picture at module level, painted.
  Took open() {
    window_.listings().graphAction()->setChecked(true);
    for (auto kind : {TraceKind::joint, TraceKind::forward, TraceKind::backward})
      window_.listings().toggleAction(kind)->setChecked(false);
    QApplication::processEvents();
    graph().setKind(TraceKind::forward);
    settle();
    // Once more from nothing, now that the window's other parts have drawn themselves.
    const Took begin;
    graph().setKind(TraceKind::joint);
    settle();
    graph().repaint();
    return begin.since();
  }

  /// The slowest of some blocks, each opened next to those before it, painted.
  Took openBlocks() {
    graph().reveal(analysis_->joint.ops[analysis_->joint.forwardCount / 2]);
    settle();
    Took slowest{0, 0};
    for (int count = 0; count < 20; ++count) {
      const auto& scene = graph().picture()->scene;
      const auto closed =
          std::find_if(scene.boxes.rbegin() + static_cast<std::ptrdiff_t>(scene.boxes.size()) / 2, scene.boxes.rend(),
                       [&](const auto& box) {
                         return !box.open && scene.tree->canOpen(box.node) && scene.tree->node(box.node).childCount > 1;
                       });
      if (closed == scene.boxes.rend()) break;
      const Took begin;
      graph().setOpen(closed->node, true);
      settle();
      graph().repaint();
      const auto took = begin.since();
      slowest = {std::max(slowest.wall, took.wall), std::max(slowest.cpu, took.cpu)};
    }
    return slowest;
  }

  void openAll() {
    graph().setAllOpen(true);
    settle();
    graph().repaint();
  }

  Frames panning() {
    graph().zoomToFit();
    auto worst = framesOf(graph(), [&](int i) { graph().panBy({i % 2 ? 30.0 : -30.0, 0}); });
    const auto down = [&](double pixels) { worst.worse(framesOf(graph(), [&](int) { graph().panBy({0, pixels}); })); };
    graph().zoomToWidth();
    down(100);
    graph().zoomBy(0.5, {});
    down(100);
    graph().reveal(analysis_->joint.ops[analysis_->joint.forwardCount / 2]);
    settle();
    graph().zoomToFullSize();
    down(40);
    return worst;
  }

  /// With all that is drawn over boxes and lines at once: a filter, lit ways, finds, norms on lines; the worst of all
  /// overlays.
  Frames overlaid() {
    auto& filter = *window_.context().filter;
    filter.apply(QStringLiteral("role:gradient"));
    waitFor([&] { return !filter.busy(); });
    bool lit = false, found = false;
    QObject::connect(&graph(), &GraphView::waysLit, &graph(), [&lit] { lit = true; }, Qt::SingleShotConnection);
    graph().lightWays({analysis_->forward.ops.front()}, {analysis_->forward.ops.back()});
    waitFor([&] { return lit; });
    QObject::connect(&graph(), &GraphView::findDone, &graph(), [&found] { found = true; }, Qt::SingleShotConnection);
    graph().find(QStringLiteral("mm"), LinePattern(QStringLiteral("mm")), true);
    waitFor([&] { return found && !graph().busy(); });
    graph().setLineLabel(LineLabel::norms);
    Frames worst;
    for (auto overlay : overlays) {
      graph().setOverlay(overlay);
      waitFor([&] { return !window_.context().controller->questions().asking(); });
      worst.worse(panning());
    }
    return worst;
  }

  Frames zooming() {
    graph().zoomToFit();
    const QPointF middle = graph().rect().center();
    auto worst = framesOf(graph(), [&](int) { graph().zoomBy(1.05, middle); });
    worst.worse(framesOf(graph(), [&](int) { graph().zoomBy(1 / 1.05, middle); }));
    return worst;
  }

 private:
  std::shared_ptr<const Analysis> analysis_;
  QTemporaryDir folder_;
  QSettings settings_;
  Theme theme_;
  MainWindow window_;
};

void measure(benchmark::State& state, const std::shared_ptr<const Analysis>& analysis) {
  for (auto _ : state) {
    Bench bench(analysis);
    malloc_trim(0);  // or what an earlier graph has left behind would be had for nothing
    const auto before = residentMegabytes();
    TimedApplication::takeLongest();
    const auto open = bench.open();
    const auto openEvent = TimedApplication::takeLongest();
    const auto block = bench.openBlocks();
    bench.openAll();
    const auto blockEvent = TimedApplication::takeLongest();
    const auto pan = bench.panning(), zoom = bench.zooming();
    const auto after = residentMegabytes() - before;
    const auto overlaid = bench.overlaid();
    state.SetIterationTime(open.wall / 1e3);
    state.counters["ops"] = static_cast<double>(analysis->joint.ops.size());
    state.counters["boxes"] = static_cast<double>(bench.graph().picture()->scene.boxes.size());
    state.counters["open_ms"] = open.wall;
    state.counters["open_cpu_ms"] = open.cpu;
    state.counters["block_ms"] = block.wall;
    state.counters["block_cpu_ms"] = block.cpu;
    state.counters["open_event_ms"] = openEvent;
    state.counters["block_event_ms"] = blockEvent;
    state.counters["pan_ms"] = pan.median;
    state.counters["pan_p99_ms"] = pan.slowest;
    state.counters["pan_all_threads_ms"] = pan.all;
    state.counters["zoom_ms"] = zoom.median;
    state.counters["zoom_p99_ms"] = zoom.slowest;
    state.counters["overlaid_ms"] = overlaid.median;
    state.counters["overlaid_p99_ms"] = overlaid.slowest;
    state.counters["memory_MB"] = after;
  }
}

void graphView(benchmark::State& state) {
  measure(state, analyse(inModules(static_cast<std::size_t>(state.range(0)))));
}
BENCHMARK(graphView)->Arg(24'000)->Iterations(1)->UseManualTime()->Unit(benchmark::kMillisecond);

/// Without modules: all ops are in one group.
void graphViewOfFlat(benchmark::State& state) {
  measure(state, analyse(syntheticModel(static_cast<std::size_t>(state.range(0)))));
}
BENCHMARK(graphViewOfFlat)->Arg(24'000)->Iterations(1)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace retrograd::benchmarks

int main(int argc, char** argv) {
  using namespace retrograd;
  if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  benchmarks::TimedApplication application(argc, argv);
  QStandardPaths::setTestModeEnabled(true);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  if (const auto path = sourcePath("../shared/cases/large/gpt96/model.pt2"); std::filesystem::exists(path))
    benchmark::RegisterBenchmark("graphView/gpt96",
                                 [path](benchmark::State& state) { benchmarks::measure(state, openModel(path)); })
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  benchmark::RunSpecifiedBenchmarks();
}
