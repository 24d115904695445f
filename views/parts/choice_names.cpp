// What messages of core call the user's choices in the window: the menu's item or the field; where it has none, the
// command that makes a session with it.
#include "core/base/user_choice.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

QString windowNameOf(UserChoice choice) {
  switch (choice) {
    case UserChoice::fill: return tr("File > Inputs");
    case UserChoice::minCut: return tr("Value > Recompute It");
    case UserChoice::runningMemory: return tr("Preferences > Running > Memory for runs");
    case UserChoice::openingMemory: return tr("Preferences > Running > Memory for opening");
    case UserChoice::partialWeights: return tr("File > Load What Fits");
    case UserChoice::embeddedWeights: return tr("File > Save Session As, weights inside");
    case UserChoice::stages: return tr("Stages");
    case UserChoice::compile: return tr("compile");
    case UserChoice::rank: return tr("rank");
    case UserChoice::library: return QStringLiteral("retrograd --library");
    case UserChoice::weightsUnder: return QStringLiteral("retrograd save --weights-under");
    case UserChoice::inputs: return QStringLiteral("retrograd save --inputs");
    case UserChoice::synchronous: return QStringLiteral("retrograd run --synchronous");
    case UserChoice::scaledGradients: return QStringLiteral("retrograd pipeline run --scale-gradients");
  }
  return {};
}

const WindowPart choiceNamesPart(PartOrder::choiceNames, [](MainWindow&) {
  nameChoicesBy([](UserChoice choice) { return windowNameOf(choice).toStdString(); });
});

}  // namespace
}  // namespace retrograd::views
