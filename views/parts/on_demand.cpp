// Docks that open because they have something to say (findings when a NaN or Inf is seen, problems when no backward
// could be derived, those that a sample is about), and the selected op, which follows execution, so that who steps from
// it sees the values of each op without asking for them.
#include "views/docks/findings_dock.h"
#include "views/docks/problems_dock.h"
#include "views/settings/settings.h"
#include "views/theme/text_size.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

void showPanelsOfSamples(MainWindow& window, const StartPage& page) {
  const auto wanted = std::make_shared<Sample>();
  QObject::connect(&page, &StartPage::sampleChosen, &window, [wanted](const Sample& sample) { *wanted = sample; });
  const auto* controller = window.context().controller;
  QObject::connect(controller, &DocumentController::documentChanged, &window, [wanted, controller, &window] {
    const auto& document = controller->document();
    if (document && QString::fromStdString(document->request.path) == wanted->path)
      for (const auto& panel : std::exchange(*wanted, {}).panels) window.showPanel(panel);
  });
}

const WindowPart onDemand(PartOrder::onDemand, [](MainWindow& window) {
  const auto& context = window.context();
  // Once for each run that has some: one who closes the dock meanwhile is left alone.
  const auto had = std::make_shared<bool>(false);
  const auto look = [&window, had] {
    const auto& now = window.context();
    const bool has = !now.execution->badValues().empty() || !now.execution->now().bad.empty() ||
                     now.controller->ahead().numbers().firstBad();
    if (has && !*had) window.showPanel(window.panel<FindingsDock>());
    *had = has;
  };
  QObject::connect(context.execution, &ExecutionState::badValuesChanged, &window, look);
  QObject::connect(context.execution, &ExecutionState::changed, &window, look);
  QObject::connect(&context.controller->ahead().numbers(), &RunNumbers::changed, &window, look);
  QObject::connect(context.controller, &DocumentController::documentChanged, &window, [&window] {
    const auto& document = window.context().controller->document();
    if (document && !document->analysis->derived()) window.showPanel(window.panel<ProblemsDock>());
  });
  if (const auto* page = window.findChild<StartPage*>()) showPanelsOfSamples(window, *page);
});

const WindowPart follow(PartOrder::followSteps, [](MainWindow& window) {
  const auto& context = window.context();
  const auto stood = std::make_shared<BoundSymbolId>();  // the op that was to run next; kept at the end, where none is
  QObject::connect(context.controller, &DocumentController::documentAboutToChange, &window, [stood] { *stood = {}; });
  QObject::connect(context.execution, &ExecutionState::changed, &window, [&window, context, stood] {
    const auto& now = context.execution->now();
    if (now.running || !now.current) return;
    const auto before = std::exchange(*stood, now.current);
    // Always: one who wants to keep looking at an op pins the panel.
    if (before && before != now.current) window.listings().follow(now.current);
  });
});

constexpr double least = 6, most = 28;  ///< points of text

/// Larger and smaller text, everywhere.
void addTextSizes(MainWindow& window) {
  auto& settings = *window.shared().settings;
  if (const double points = kept::textSize.of(settings); points > 0) setTextSize(std::clamp(points, least, most));
  const auto before = std::make_shared<QSize>();  // of the window, while large letters make it wider
  const auto add = [&](const char* name, const QString& title, const QString& tip, const QKeySequence& key, double zoom,
                       const std::function<double()>& wanted) {
    auto* action = window.actions().add(name, title, tip, key);
    QObject::connect(action, &QAction::triggered, &window, [&window, &settings, zoom, wanted, before] {
      auto& graph = window.listings().graph();
      if (zoom > 0 && graph.hasFocus()) return graph.zoomBy(zoom, graph.rect().center());
      const double points = wanted();
      const auto size = window.size();
      setTextSize(points);
      kept::textSize.keep(settings, points);
      // Larger letters may need a wider window; with smaller ones it is as it was.
      if (!before->isValid()) *before = size;
      constexpr int laidOut = 200;  // ms: what the panels need is known then
      QTimer::singleShot(laidOut, &window, [&window, before] {
        if (before->isValid() && window.size() != *before) window.resize(*before);
        if (window.size() == *before) *before = {};
      });
    });
    window.menu("view")->addAction(action);
  };
  add("text-larger", tr("Larger Text"), tr("All text one point larger"), QKeySequence(Qt::CTRL | Qt::Key_Equal), 1.25,
      [] { return std::min(textSize() + 1, most); });
  add("text-smaller", tr("Smaller Text"), tr("All text one point smaller"), QKeySequence(Qt::CTRL | Qt::Key_Minus), 0.8,
      [] { return std::max(textSize() - 1, least); });
  add("text-usual", tr("Usual Text Size"), tr("Text as large as the system has it"), QKeySequence(Qt::CTRL | Qt::Key_0),
      0, [] { return 0.0; });
}

const WindowPart numbers(PartOrder::opNumbers, [](MainWindow& window) {
  addTextSizes(window);
  auto& settings = *window.shared().settings;
  auto* action = window.actions().add(
      "op-numbers", tr("Op Num&bers"),
      tr("The number of each op next to its line: Go to Place, breakpoints and the command line know it as #12"), {});
  action->setCheckable(true);
  QObject::connect(action, &QAction::toggled, &window, [&window, &settings](bool on) {
    window.listings().setNumbers(on);
    kept::opNumbers.keep(settings, on);
  });
  action->setChecked(kept::opNumbers.of(settings));
  window.menu("view")->addAction(action);
});

}  // namespace
}  // namespace retrograd::views
