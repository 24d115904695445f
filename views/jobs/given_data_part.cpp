// File > Load Weights, Load Batch and Load Recorded Numbers with its panel, and dropping these on the window: what a training job left for the open model.
#include <QFile>
#include <QFileDialog>
#include <QFileInfo>
#include <algorithm>

#include "core/formats/checkpoint/given_weights.h"
#include "views/docks/memory_dock.h"
#include "views/engine/pool_job.h"
#include "views/jobs/recorded_dock.h"
#include "views/text/format.h"
#include "views/window/main_window.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

enum class Data : std::uint8_t { weights, batch };

/// Opens the model again with these data. What fits and what does not is said among its problems; where nothing fits, the model stays as it is.
void load(MainWindow& window, Data data, const QString& path) {
  const auto& document = window.context().controller->document();
  if (!document || path.isEmpty()) return;
  auto request = document->request;
  (data == Data::weights ? request.data.weights : request.data.batch) = path.toStdString();
  window.context().controller->reopen(request);
}

/// A batch holds the model's inputs by name and nothing else.
bool isBatchOf(const Analysis& analysis, const std::string& path) {
  const auto batch = readBatchFile(path);
  const auto& inputs = analysis.computation().inputs;
  const auto isInput = [&](const std::string& name) {
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](const InputSpec& input) { return input.kind == InputKind::user && (name == input.name || name == "in." + input.name); });
  };
  return !batch.tensors.empty() && std::all_of(batch.tensors.begin(), batch.tensors.end(), [&](const auto& tensor) { return isInput(tensor.first); });
}

bool looksLikeData(const QString& path) {
  return path.endsWith(QStringLiteral(".safetensors")) || path.endsWith(QStringLiteral(".safetensors.index.json")) ||
         QFileInfo::exists(path + QStringLiteral("/.metadata"));
}

/// Reads no more than the beginning, which may take its time on a disk far away: not for the UI thread.
bool startsAsRecording(const QString& path) {
  QFile file(path);
  return file.open(QIODevice::ReadOnly) && looksLikeRecording(file.read(4096).toStdString());
}

const WindowPart part(PartOrder::givenData, [](MainWindow& window) {
  auto* file = window.menu("file");
  const auto add = [&](const char* name, const QString& text, const QString& tip, Data data) {
    auto* action = window.actions().add(name, text, tip, {});
    window.actions().allowUnless(action, [&window] {
      const auto& document = window.context().controller->document();
      return document ? document->noRunReason : MainWindow::tr("No file is open");
    });
    QObject::connect(action, &QAction::triggered, &window, [&window, text, data] {
      load(window, data,
           QFileDialog::getOpenFileName(&window, QString(text).remove(QLatin1Char('&')), {},
                                        MainWindow::tr("Checkpoints and batches (*.safetensors *.json *.pt *.pth *.bin *.metadata);;All files (*)")));
    });
    file->insertAction(window.actions().close, action);
  };
  add("load-weights", MainWindow::tr("Load &Weights..."),
      MainWindow::tr("Gives the model the weights of a checkpoint: .safetensors, an index of shards, a state dict of torch.save, a distributed checkpoint"),
      Data::weights);
  add("load-batch", MainWindow::tr("Load &Batch..."), MainWindow::tr("Gives the model the inputs of a file, by name"), Data::batch);
  auto& actions = window.actions();
  auto* dock = window.addPanel(new RecordedDock(window.context()), MainWindow::tr("Recorded Numbers"), Qt::BottomDockWidgetArea, &window.panel<MemoryDock>());
  const auto compare = [&window, dock](const QString& path) {
    if (path.isEmpty() || !window.context().controller->document()) return;
    window.showPanel(*dock);
    dock->load(path);
  };
  auto* recorded = actions.add("load-recorded", MainWindow::tr("Load Recorded N&umbers..."),
                               MainWindow::tr("Compares the norms that PyTorch's DebugMode recorded with those of the model, op by op"),
                               QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_N));
  actions.allowUnless(recorded, [&window] {
    const auto& document = window.context().controller->document();
    return document ? document->noRunReason : MainWindow::tr("No file is open");
  });
  QObject::connect(recorded, &QAction::triggered, &window, [&window, compare] {
    auto* dialog = new QFileDialog(&window, MainWindow::tr("Load Recorded Numbers"), {}, MainWindow::tr("Recordings of DebugMode (*.json);;All files (*)"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::ExistingFile);
    QObject::connect(dialog, &QFileDialog::fileSelected, &window, compare);
    dialog->open();
  });
  file->insertAction(actions.close, recorded);
  file->insertSeparator(actions.close);
  auto* next = actions.add("next-difference", MainWindow::tr("Next Recorded &Difference"),
                           MainWindow::tr("Goes to the first op whose recorded norm differs, then to the next"), QKeySequence(Qt::Key_F8));
  actions.allowUnless(next, [dock] { return dock->noDifference(); });
  QObject::connect(next, &QAction::triggered, dock, &RecordedDock::nextDifference);
  QObject::connect(dock, &RecordedDock::changed, &actions, &WindowActions::update);
  window.menu("go")->addAction(next);

  auto* reading = new PoolJob(&window);
  window.setDropHandler([&window, reading, compare](const QString& path) {
    const auto& document = window.context().controller->document();
    if (!document) return false;
    if (!path.endsWith(QStringLiteral(".json")) && !looksLikeData(path)) return false;
    reading->start([&window, path, compare, analysis = document->analysis](const Progress&) -> PoolJob::Deliver {
      if (startsAsRecording(path)) return [compare, path] { compare(path); };
      if (!looksLikeData(path)) return [&window, path] { window.openFile(path); };
      auto data = Data::weights;
      try {
        if (isBatchOf(*analysis, path.toStdString())) data = Data::batch;
      } catch (const Error&) {  // whoever reads it as weights says what is wrong with it
      }
      return [&window, path, data] { load(window, data, path); };
    });
    return true;
  });
});

}  // namespace
}  // namespace retrograd::views
