// Snapshots of CUDA's allocator in the window: File > Open, a drop and the command line give them to the panel, which
// has commands to compare two.
#include <QFileInfo>

#include "views/docks/values_dock.h"
#include "views/findings/finding_board.h"
#include "views/memory/recorded_memory_dock.h"
#include "views/text/format.h"
#include "views/widgets/controls.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

constexpr int roomShare = 45;  // percent of the window's height that the panel has at least when a snapshot opens

const QString snapshots = QStringLiteral("*.pickle *.pickle.gz *.pickle.xz *.pkl");

/// By its name alone: what is in it is read on the pool.
bool isSnapshotName(const QString& path) {
  auto name = QFileInfo(path).fileName().toLower();
  for (const auto* packed : {".gz", ".xz"})
    if (name.endsWith(QLatin1String(packed))) name.chop(3);
  return name.endsWith(QLatin1String(".pickle")) || name.endsWith(QLatin1String(".pkl"));
}

void askForSnapshot(MainWindow& window, const QString& title, const std::function<void(const QString&)>& then) {
  chooseFile(&window, title, {}, tr("Memory snapshots (%1);;All files (*)").arg(snapshots), &window, then);
}

/// Those of the snapshot, next to a document or alone.
void showFindings(MainWindow& window, const OpenMemory& memory) {
  auto& board = FindingBoard::of(*window.context().controller);
  std::vector<Claim> claims;
  const auto& recorded = memory.shown().recorded;
  if (recorded)
    for (const auto& found : recorded->findings) claims.push_back(claimOf(found));
  Report report;
  report.claims = std::move(claims);
  if (recorded) report.judged = report.due = recorded->history.allocations.size();
  report.unit = "allocation of the snapshot";
  board.setReport(QStringLiteral("memory"), std::move(report));
}

/// Without a document the panel has the window to itself.
void giveRoom(MainWindow& window, const OpenMemory& memory, RecordedMemoryDock* dock) {
  const auto& shown = memory.shown().read;
  if (!window.context().controller->document())
    window.showAlone(shown ? dock : nullptr, shown ? toQt(shown->path) : QString());
}

/// What the window does when the snapshot, or the document next to it, changes.
void follow(MainWindow& window, OpenMemory* memory, RecordedMemoryDock* dock) {
  const auto show = [&window, memory, dock] {
    giveRoom(window, *memory, dock);
    showFindings(window, *memory);
  };
  QObject::connect(memory, &OpenMemory::changed, &window, [&window, show] {
    show();
    window.actions().update();
  });
  QObject::connect(memory, &OpenMemory::busyChanged, &window.actions(), &WindowActions::update);
  QObject::connect(memory, &OpenMemory::opened, &window, [&window](const QString& path) { window.addRecent(path); });
  QObject::connect(memory, &OpenMemory::failed, &window,
                   [&window](const QString& message) { window.messages().show(MessageBar::Kind::error, message); });
  QObject::connect(window.context().controller, &DocumentController::documentChanged, &window, show);
  QObject::connect(dock, &RecordedMemoryDock::roomWanted, &window, [&window, dock] {
    window.showPanel(*dock);
    if (dock->height() < window.height() * roomShare / 100)
      window.resizeDocks({qobject_cast<QDockWidget*>(dock->parentWidget())}, {window.height() * roomShare / 100},
                         Qt::Vertical);
  });
}

const WindowPart memoryPart(PartOrder::recordedMemory, [](MainWindow& window) {
  auto& actions = window.actions();
  auto* memory = new OpenMemory(window.context().controller, &window);
  auto* open = actions.add("open-memory", tr("Open &Memory Snapshot..."),
                           tr("Opens what torch.cuda.memory._dump_snapshot wrote, next to the open file"),
                           QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_M));
  auto* compare = actions.add("compare-memory", tr("Compare Memory Snapshot..."),
                              tr("Opens a second snapshot and shows what it holds more and less"), {});
  auto* close =
      actions.add("close-memory", tr("Close Memory Snapshot"), tr("Closes the second snapshot, else the first"), {});
  auto* peak = actions.add("memory-peak", tr("Peak of the Recorded Memory"),
                           tr("Chooses the event of the recorded memory after which most was held"), {});
  auto* failed = actions.add("memory-failed", tr("The Request That Failed"),
                             tr("Chooses the event at which the GPU's memory ran out"), {});
  auto* block = actions.add("memory-of-op", tr("Recorded Block of the Selected Op"),
                            tr("Chooses the memory that the selected op made, where and when it was made"), {});
  open->setIconText(tr("Open..."));
  compare->setIconText(tr("Compare..."));
  close->setIconText(tr("Close"));
  auto* dock = window.addPanel(new RecordedMemoryDock(window.context(), memory, {open, compare, close}),
                               tr("Recorded Memory"), Qt::BottomDockWidgetArea, &window.panel<ValuesDock>());
  const auto whyNone = [memory] { return memory->shown().recorded ? QString() : tr("No memory snapshot is open"); };
  for (auto* action : {compare, close, peak}) actions.allowUnless(action, whyNone);
  actions.allowUnless(failed, [memory, whyNone] {
    const auto why = whyNone();
    return !why.isEmpty()                          ? why
           : memory->shown().recorded->failed >= 0 ? QString()
                                                   : tr("No request of this history failed");
  });
  actions.allowUnless(block, [dock, whyNone] {
    const auto why = whyNone();
    return why.isEmpty() ? dock->whyNoBlock() : why;
  });
  const auto show = [dock](const QString& path) { dock->open(path); };
  QObject::connect(open, &QAction::triggered, &window, [&window, open, show] {
    askForSnapshot(window, QString(open->text()).remove(QLatin1Char('&')), show);
  });
  QObject::connect(compare, &QAction::triggered, &window, [&window, compare, memory] {
    askForSnapshot(window, QString(compare->text()).remove(QLatin1Char('&')),
                   [memory](const QString& path) { memory->compareWith(path); });
  });
  QObject::connect(close, &QAction::triggered, memory, &OpenMemory::close);
  window.runIn(peak, dock, &RecordedMemoryDock::goToPeak);
  window.runIn(failed, dock, &RecordedMemoryDock::goToFailed);
  window.runIn(block, dock, &RecordedMemoryDock::goToBlock);
  window.menu("file")->insertActions(actions.close, {open, compare, close});
  window.menu("file")->insertSeparator(actions.close);
  window.menu("go")->addActions({peak, failed, block});
  window.setOpener([show](const QString& path) {
    if (!isSnapshotName(path)) return false;
    show(QFileInfo::exists(path) ? QFileInfo(path).absoluteFilePath() : path);
    return true;
  });
  follow(window, memory, dock);
});

}  // namespace
}  // namespace retrograd::views
