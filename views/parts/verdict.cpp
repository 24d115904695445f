// The verdict bar below the tool bar, and the findings on the timeline.
#include <QToolBar>

#include "views/docks/findings_dock.h"
#include "views/widgets/controls.h"
#include "views/window/verdict_bar.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

/// How a command reads on a button: its own text, or that of the panel it names.
QString titleOfCommand(const MainWindow& window, const QString& command) {
  if (const auto* action = window.findChild<QAction*>(QStringLiteral("action-") + command))
    return action->iconText().remove(QLatin1Char('&'));
  const auto* dock = window.findChild<QDockWidget*>(QStringLiteral("dock-") + command);
  return dock ? MainWindow::tr("Show %1").arg(dock->windowTitle()) : QString();
}

void markFindings(MainWindow& window) {
  auto& board = FindingBoard::of(*window.context().controller);
  auto& strip = window.listings().strip();
  QObject::connect(&board, &FindingBoard::changed, &strip, [&board, &strip] {
    std::vector<std::pair<BoundSymbolId, Severity>> marks;
    for (const auto& [source, claim] : board.entries())
      if (claim.op) marks.emplace_back(claim.op, claim.severity);
    strip.setFindings(std::move(marks));
  });
}

const WindowPart verdictPart(PartOrder::verdict, [](MainWindow& window) {
  window.addToolBarBreak();
  auto* row = window.addToolBar(MainWindow::tr("Verdict"));
  named(row, "toolbar-verdict", MainWindow::tr("Verdict"));
  row->setMovable(false);
  row->setContextMenuPolicy(Qt::PreventContextMenu);
  row->toggleViewAction()->setVisible(false);  // it is always there
  row->setContentsMargins({});
  auto* bar = new VerdictBar(window.context(), row);
  row->addWidget(bar);
  auto& findings = window.panel<FindingsDock>();
  bar->setTitles([&findings](const Claim& claim) { return findings.titleOf(claim); },
                 [&window](const QString& command) { return titleOfCommand(window, command); });
  QObject::connect(bar, &VerdictBar::led, &findings, &FindingsDock::lead);
  QObject::connect(bar, &VerdictBar::acted, &findings, &FindingsDock::act);
  QObject::connect(bar, &VerdictBar::commandChosen, &findings, &FindingsDock::commandChosen);
  QObject::connect(bar, &VerdictBar::allWanted, &window, [&window, &findings] { window.showPanel(findings); });
  markFindings(window);
});

}  // namespace
}  // namespace retrograd::views
