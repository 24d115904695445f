// From the wish to open a file to the first picture of its computation and to that of its listings, which is the same
// one unless the first lines come while the rest is derived; in a window of its own process: first_frame FILE. Prints
// JSON: seconds, and what the process holds in 10^6 bytes before it opens anything (LibTorch and Qt, with the empty
// window), at each picture, at most until then, and once all is at rest, which is after the run that opening begins.
// scripts/opening makes the files and the table.
#include <malloc.h>

#include <QApplication>
#include <QEventLoop>
#include <QSettings>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTimer>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>

#include "tests/benchmarks/process_figures.h"
#include "views/engine/engine.h"
#include "views/window/main_window.h"

namespace retrograd::benchmarks {
namespace {

using namespace views;

struct Figures {
  double seconds = milliseconds(CLOCK_MONOTONIC) / 1e3, cpu = milliseconds(CLOCK_PROCESS_CPUTIME_ID) / 1e3,
         megabytes = residentMegabytes();
};

/// Sees the first painting of some widgets, once `begins`.
class PaintWatch : public QObject {
 public:
  bool begins = false;
  std::optional<Figures> painted;

  bool eventFilter(QObject* receiver, QEvent* event) override {
    if (event->type() == QEvent::Paint && begins && !painted)
      QTimer::singleShot(0, this, [this] {  // behind what paints now
        if (!painted) painted.emplace();
      });
    return QObject::eventFilter(receiver, event);
  }
};

/// Asks every five milliseconds, so that the worker has the processor to itself.
template <class Done>
void waitFor(Done done) {
  QEventLoop loop;
  QTimer poll;
  QObject::connect(&poll, &QTimer::timeout, &loop, [&] {
    if (done()) loop.quit();
  });
  poll.start(5);
  loop.exec();
}

/// The most that this process held since forgetPeak().
double peakMegabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (double kilobytes = 0; word == "VmHWM:" && status >> kilobytes) return kilobytes * 1024 / 1e6;
  return 0;
}
void forgetPeak() { std::ofstream("/proc/self/clear_refs") << 5; }

int measure(const QString& path) {
  QTemporaryDir folder;
  QSettings settings(folder.filePath(QStringLiteral("settings.ini")), QSettings::IniFormat);
  Theme theme(*qApp);
  theme.choose(Theme::Choice::light);
  MainWindow window({std::make_shared<Worker>(), liveEngine(), &theme, &settings});
  window.resize(1600, 1000);
  window.show();
  const auto shown = milliseconds(CLOCK_MONOTONIC);
  waitFor([shown] { return milliseconds(CLOCK_MONOTONIC) > shown + 300; });  // until the empty window is drawn
  auto& controller = *window.context().controller;
  PaintWatch lines, listings;
  window.findChild<FirstLinesView*>()->viewport()->installEventFilter(&lines);
  lines.begins = true;
  for (auto kind : {TraceKind::computation, TraceKind::joint, TraceKind::forward, TraceKind::backward})
    window.listings().listing(kind).viewport()->installEventFilter(&listings);
  QObject::connect(&controller, &DocumentController::documentChanged, &listings,
                   [&listings] { listings.begins = true; });

  forgetPeak();
  const Figures before;
  window.openFile(path);
  waitFor([&] { return listings.painted || (!controller.opening() && !controller.document()); });
  const auto peak = peakMegabytes();
  if (!controller.document()) return std::fprintf(stderr, "%s\n", qPrintable(window.messages().text())), 1;
  auto lastBusy = milliseconds(CLOCK_MONOTONIC);
  waitFor([&] {
    const auto now = milliseconds(CLOCK_MONOTONIC);
    const bool busy = controller.opening() || controller.questions().asking() ||
                      controller.worker().busy(&controller) || window.context().execution->now().running;
    if (busy) lastBusy = now;
    return now > lastBusy + 200;
  });
  const auto& analysis = *controller.document()->analysis;
  const auto print = [&](const char* name, const Figures& then) {
    std::printf("\"%s_s\": %.3f, \"%s_cpu_s\": %.3f, \"%s_mb\": %.1f, ", name, then.seconds - before.seconds, name,
                then.cpu - before.cpu, name, then.megabytes - before.megabytes);
  };
  std::printf("{\"computation_ops\": %zu, \"joint_ops\": %zu, ", analysis.computation().trace.ops.size(),
              analysis.joint.ops.size());
  print("first", lines.painted.value_or(*listings.painted));
  print("listings", *listings.painted);
  std::printf("\"peak_mb\": %.1f, \"rest_s\": %.3f, \"rest_mb\": %.1f, \"empty_mb\": %.1f}\n", peak - before.megabytes,
              lastBusy / 1e3 - before.seconds, residentMegabytes() - before.megabytes, before.megabytes);
  return 0;
}

}  // namespace
}  // namespace retrograd::benchmarks

int main(int argc, char** argv) {
  mallopt(M_MXFAST, 0);  // as the program has it (app/main.cpp)
  if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication application(argc, argv);
  QStandardPaths::setTestModeEnabled(true);
  if (argc != 2) return std::fprintf(stderr, "first_frame FILE\n"), 2;
  return retrograd::benchmarks::measure(QString::fromLocal8Bit(argv[1]));
}
