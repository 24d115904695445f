// File > Load Weights and Load Batch, and dropping these on the window: the model that is open takes the data of a training job.
#include <QFileDialog>
#include <QFileInfo>
#include <algorithm>

#include "core/formats/checkpoint/given_weights.h"
#include "views/engine/pool_job.h"
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
  file->insertSeparator(window.actions().close);

  auto* reading = new PoolJob(&window);
  window.setDropHandler([&window, reading](const QString& path) {
    const auto& document = window.context().controller->document();
    if (!document || !looksLikeData(path)) return false;
    reading->start([&window, path, analysis = document->analysis](const Progress&) -> PoolJob::Deliver {
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
