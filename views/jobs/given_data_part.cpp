// File > Load Weights, Load Batch and Load Recorded Numbers with its panel, and dropping these on the window: what a
// training job left for the open model.
#include <QFile>
#include <QFileDialog>
#include <QFileInfo>
#include <algorithm>
#include <memory>
#include <vector>

#include "core/formats/checkpoint/given_weights.h"
#include "views/docks/memory_dock.h"
#include "views/engine/pool_job.h"
#include "views/jobs/debug_mode_dock.h"
#include "views/widgets/controls.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

enum class Data : std::uint8_t { weights, batch };

/// Files of data, each with what it is.
using Given = std::vector<std::pair<Data, QString>>;

/// Opens the model again with data. What fits and what does not is said among its problems; where nothing fits, the
/// model stays as it is.
class DataLoader : public QObject {
 public:
  explicit DataLoader(MainWindow& window) : QObject(&window), window_(window) {}

  void load(const Given& given) {
    auto& controller = *window_.context().controller;
    const auto& document = controller.document();
    if (!document || given.empty()) return;
    // Weights that are still being read stay when a batch comes after them.
    auto request = controller.opening() && asked_.path == document->request.path ? asked_ : document->request;
    request.data.partial = takesWhatFits_;
    for (const auto& [data, path] : given)
      (data == Data::weights ? request.data.weights : request.data.batch) = path.toStdString();
    asked_ = request;
    controller.reopen(request);
  }

  /// Whether a load goes on with what fits, and does not fail, where some of the data does not.
  void takeWhatFits(bool on) { takesWhatFits_ = on; }

 private:
  MainWindow& window_;
  OpenRequest asked_;  ///< of the newest load
  bool takesWhatFits_ = false;
};

/// A batch holds the model's inputs by name and nothing else.
bool isBatchOf(const Analysis& analysis, const std::string& path) {
  const auto batch = readBatchFile(path);
  const auto& inputs = analysis.computation().inputs;
  const auto isInput = [&](const std::string& name) {
    return std::ranges::any_of(inputs, [&](const InputSpec& input) {
      return input.kind == InputKind::user && (name == input.name || name == "in." + input.name);
    });
  };
  return !batch.tensors.empty() &&
         std::ranges::all_of(batch.tensors, [&](const auto& tensor) { return isInput(tensor.first); });
}

bool looksLikeData(const QString& path) {
  return path.endsWith(QStringLiteral(".safetensors")) || path.endsWith(QStringLiteral(".safetensors.index.json")) ||
         QFileInfo::exists(path + QStringLiteral("/.metadata"));
}

/// Reads no more than the beginning, which may take its time on a disk far away: not for the UI thread.
bool startsAsRecording(const QString& path) {
  QFile file(path);
  return file.open(QIODevice::ReadOnly) && looksLikeDebugMode(file.read(4096).toStdString());
}

std::function<QString()> whyNoRun(MainWindow& window) {
  return [&window] {
    const auto& document = window.context().controller->document();
    return document ? document->noRunReason : tr("No file is open");
  };
}

void addLoad(MainWindow& window, DataLoader* loader, const char* name, const QString& text, const QString& tip,
             Data data) {
  auto* action = window.actions().add(name, text, tip, {});
  window.actions().allowUnless(action, whyNoRun(window));
  QObject::connect(action, &QAction::triggered, &window, [&window, loader, text, data] {
    const auto path = QFileDialog::getOpenFileName(
        &window, QString(text).remove(QLatin1Char('&')), {},
        tr("Checkpoints and batches (*.safetensors *.json *.pt *.pth *.bin *.metadata);;All files (*)"));
    if (!path.isEmpty()) loader->load({{data, path}});
  });
  window.menu("file")->insertAction(window.actions().close, action);
}

void addLoads(MainWindow& window, DataLoader* loader) {
  addLoad(window, loader, "load-weights", tr("Load &Weights..."),
          tr("Gives the model the weights of a checkpoint: .safetensors, an index of shards, a state dict "
             "of torch.save, a distributed checkpoint"),
          Data::weights);
  addLoad(window, loader, "load-batch", tr("Load &Batch..."), tr("Gives the model the inputs of a file, by name"),
          Data::batch);
  auto* fits = window.actions().add("load-what-fits", tr("Load What Fi&ts"),
                                    tr("Weights and batches that lack something or have other shapes are "
                                       "loaded as far as they fit; Problems lists the rest"),
                                    {});
  fits->setCheckable(true);
  QObject::connect(fits, &QAction::toggled, loader, &DataLoader::takeWhatFits);
  window.menu("file")->insertAction(window.actions().close, fits);
}

using ShowRecording = std::function<void(const QString&)>;

/// The panel's commands.
void addRecordedNumbers(MainWindow& window, DebugModeDock* dock, const ShowRecording& show) {
  auto& actions = window.actions();
  auto* file = window.menu("file");
  auto* recorded =
      actions.add("load-recorded", tr("Load Recorded N&umbers..."),
                  tr("Compares the norms that PyTorch's DebugMode recorded with those of the model, op by op"),
                  QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_N));
  actions.allowUnless(recorded, whyNoRun(window));
  QObject::connect(recorded, &QAction::triggered, &window, [&window, show] {
    chooseFile(&window, tr("Load Recorded Numbers"), {}, tr("Recordings of DebugMode (*.json);;All files (*)"), &window,
               show);
  });
  file->insertAction(actions.close, recorded);
  file->insertSeparator(actions.close);
  auto* next =
      actions.add("next-difference", tr("Next Recorded &Difference"),
                  tr("Goes to the first op whose recorded norm differs, then to the next"), QKeySequence(Qt::Key_F8));
  actions.allowUnless(next, [dock] { return dock->noDifference(); });
  QObject::connect(next, &QAction::triggered, dock, &DebugModeDock::nextDifference);
  QObject::connect(dock, &DebugModeDock::changed, &actions, &WindowActions::update);
  window.menu("go")->addAction(next);
}

/// Files that were dropped together, by what they are.
struct Dropped {
  Given given;
  QStringList recordings, others;
};

/// Reads the beginning of each: not for the UI thread.
Dropped sorted(const QStringList& paths, const Analysis& analysis) {
  Dropped dropped;
  for (const auto& path : paths) {
    if (startsAsRecording(path)) {
      dropped.recordings << path;
    } else if (!looksLikeData(path)) {
      dropped.others << path;
    } else {
      auto data = Data::weights;
      try {
        if (isBatchOf(analysis, path.toStdString())) data = Data::batch;
      } catch (const Error&) {  // whoever reads it as weights says what is wrong with it
      }
      dropped.given.emplace_back(data, path);
    }
  }
  return dropped;
}

void takeDrops(MainWindow& window, DataLoader* loader, const ShowRecording& show) {
  auto* reading = new PoolJob(&window);
  auto waiting =
      std::make_shared<QStringList>();  // not looked at yet: files that are dropped together are loaded together
  window.setDropHandler([&window, reading, show, loader, waiting](const QString& path) {
    const auto& document = window.context().controller->document();
    if (!document) return false;
    if (!path.endsWith(QStringLiteral(".json")) && !looksLikeData(path)) return false;
    *waiting << path;
    reading->start([&window, show, loader, waiting, paths = *waiting,
                    analysis = document->analysis](const Progress&) -> PoolJob::Deliver {
      return [&window, show, loader, waiting, dropped = sorted(paths, *analysis)] {
        waiting->clear();
        for (const auto& each : dropped.recordings) show(each);
        for (const auto& each : dropped.others) window.openFile(each);
        loader->load(dropped.given);
      };
    });
    return true;
  });
}

const WindowPart givenDataPart(PartOrder::givenData, [](MainWindow& window) {
  auto* loader = new DataLoader(window);
  addLoads(window, loader);
  auto* dock = window.addPanel(new DebugModeDock(window.context()), tr("Recorded Numbers"), Qt::BottomDockWidgetArea,
                               &window.panel<MemoryDock>());
  const auto show = [&window, dock](const QString& path) {
    if (path.isEmpty() || !window.context().controller->document()) return;
    window.showPanel(*dock);
    dock->load(path);
  };
  addRecordedNumbers(window, dock, show);
  takeDrops(window, loader, show);
});

}  // namespace
}  // namespace retrograd::views
