// Commands for the chosen value: watch it, fill it, save what it holds.
#include <QFileDialog>
#include <QInputDialog>
#include <QLocale>
#include <QStatusBar>

#include "views/docks/values_dock.h"
#include "views/session/own_names.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

void watch(MainWindow& window) {
  const auto& context = window.context();
  const auto value = context.selection->chosenValue();
  const auto& watches = context.execution->watches();
  if (std::ranges::find(watches, value) == watches.end()) context.controller->marks().addWatch(value);
  else context.controller->marks().removeWatch(value);
  window.statusBar()->showMessage(tr("Values watched: %1").arg(context.execution->watches().size()), 4000);
}

void fillWith(MainWindow& window, ValueId value, bool isWhole, const QString& text) {
  const auto refuse = [&window](const QString& reason) { window.messages().show(MessageBar::Kind::warning, reason); };
  bool isNumber = false;
  const double number = QLocale::c().toDouble(text.trimmed(), &isNumber);
  if (!isNumber) return refuse(tr("'%1' is not a number: nothing was filled").arg(text));
  // It goes by way of a double, which holds whole numbers up to 2^53 and some beyond.
  const auto whole = text.trimmed().toLongLong(&isNumber);
  if (isWhole && isNumber && QString::number(number, 'f', 0) != QString::number(whole))
    return refuse(tr("%1 cannot be filled in exactly, only %2: nothing was filled").arg(whole).arg(number, 0, 'f', 0));
  window.context().controller->questions().fillValue(value, number);
}

void askWhatToFill(MainWindow& window) {
  const auto& context = window.context();
  const auto& document = context.controller->document();
  const auto value = context.selection->chosenValue();
  if (!document || !value) return;
  const auto name = nameOf(*document->analysis->document, value, context.notes);
  auto* dialog = new QInputDialog(&window);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(tr("Fill %1").arg(name));
  dialog->setLabelText(tr("A number for every element of %1 (nan and inf are numbers too):").arg(name));
  dialog->setInputMode(QInputDialog::TextInput);
  dialog->setTextValue(QStringLiteral("0"));
  QObject::connect(context.controller, &DocumentController::documentAboutToChange, dialog,
                   &QDialog::reject);  // the id is good until then
  const auto meta = document->analysis->document->value(value).meta;
  const bool isWhole = meta && !isDifferentiable(document->analysis->document->meta(meta).dtype);
  QObject::connect(dialog, &QInputDialog::textValueSelected, &window,
                   [&window, value, isWhole](const QString& text) { fillWith(window, value, isWhole, text); });
  dialog->open();
}

void askWhereToSave(MainWindow& window) {
  const auto& context = window.context();
  const auto& document = context.controller->document();
  const auto value = context.selection->chosenValue();
  if (!document || !value) return;
  const auto op = context.selection->op();
  const auto name = nameOf(*document->analysis->document, value, context.notes);
  const auto numpy = tr("NumPy (*.npy)"), safetensors = tr("Safetensors (*.safetensors)");
  auto* dialog = new QFileDialog(&window, tr("Save %1").arg(name), {}, numpy + QStringLiteral(";;") + safetensors);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setDefaultSuffix(QStringLiteral("npy"));
  QObject::connect(dialog, &QFileDialog::filterSelected, dialog, [dialog, numpy](const QString& filter) {
    dialog->setDefaultSuffix(filter == numpy ? QStringLiteral("npy") : QStringLiteral("safetensors"));
  });
  QObject::connect(context.controller, &DocumentController::documentAboutToChange, dialog,
                   &QDialog::reject);  // the id is good until then
  QObject::connect(dialog, &QFileDialog::fileSelected, &window, [&window, value, op, name](const QString& path) {
    const auto written = [&window, name, path](const QString& problem) {
      if (!problem.isEmpty()) return window.messages().show(MessageBar::Kind::error, problem);
      window.statusBar()->showMessage(tr("%1 was written to %2").arg(name, path), 8000);
    };
    window.context().controller->questions().saveValue(value, path, written, op);
  });
  dialog->open();
}

void addElementCommands(MainWindow& window) {
  auto& actions = window.actions();
  auto* panel = &window.panel<ValuesDock>();
  const auto add = [&](const char* name, const QString& text, const QString& tip, Element wanted) {
    auto* action = actions.add(name, text, tip, {});
    actions.allowUnless(action, [panel, wanted] { return panel->whyNoElement(wanted); });
    QObject::connect(action, &QAction::triggered, panel, [panel, wanted] { panel->goToElement(wanted); });
    return action;
  };
  const QList<QAction*> all{
      add("largest-element", tr("Go t&o the Largest Element"),
          tr("Shows the greatest number in the value in Values: 1 is larger than -5"), Element::largest),
      add("smallest-element", tr("Go to t&he Smallest Element"),
          tr("Shows the least number in the value in Values: -5 is smaller than 0"), Element::smallest),
      add("largest-magnitude", tr("Go to the Largest Magnitu&de"),
          tr("Shows the element of the value in Values that is furthest from 0: -5 rather than 1"),
          Element::largestMagnitude),
      add("nan-element", tr("Go to the First &NaN or Inf"),
          tr("Shows the first element that is not finite of the value in Values"), Element::firstNan)};
  window.menu("value")->insertActions(actions.recompute, all);
  window.menu("value")->insertSeparator(actions.recompute);
  panel->addElementActions(all);
  QObject::connect(panel, &ValuesDock::elementsChanged, &actions, &WindowActions::update);
  QObject::connect(panel, &ValuesDock::elementFound, &window,
                   [&window](const QString& words) { window.statusBar()->showMessage(words, 15000); });
}

const WindowPart valueCommandsPart(PartOrder::valueCommands, [](MainWindow& window) {
  const auto on = [&window](QAction* action, void (*run)(MainWindow&)) {
    QObject::connect(action, &QAction::triggered, &window, [&window, run] { run(window); });
  };
  on(window.actions().watch, &watch);
  on(window.actions().fill, &askWhatToFill);
  on(window.actions().saveContents, &askWhereToSave);
  addElementCommands(window);
});

}  // namespace
}  // namespace retrograd::views
