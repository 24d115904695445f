// View > Compare Traces: the window with two traces side by side, and the way there from a what-if. V on one value and
// then on another compares them.
#include <QStatusBar>

#include "views/dialogs/compare_values_dialog.h"
#include "views/docks/why_dock.h"
#include "views/session/own_names.h"
#include "views/window/diff_window.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

/// Remembers the first of two values.
class Comparing : public QObject {
 public:
  explicit Comparing(MainWindow& window) : QObject(&window), window_(window) {
    connect(window.context().controller, &DocumentController::documentAboutToChange, this, [this] { first_ = {}; });
  }

  void choose() {
    const auto context = window_.context();
    const auto& open = context.controller->document();
    const ValuePlace place{context.selection->op(), context.selection->chosenValue()};
    if (!open || !place.value || !place.op) return;
    if (!first_.value || first_ == place) {
      first_ = place;
      window_.statusBar()->showMessage(tr("%1 is the first of two values: select another and press %2 again")
                                           .arg(nameOf(*open->analysis->document, place.value, context.notes),
                                                action_->shortcut().toString(QKeySequence::NativeText)));
      return;
    }
    window_.statusBar()->clearMessage();
    auto* dialog = new CompareValuesDialog(context, std::exchange(first_, {}), place, &window_);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->open();
  }
  void setAction(QAction* action) { action_ = action; }

 private:
  MainWindow& window_;
  QAction* action_ = nullptr;
  ValuePlace first_;
};

const WindowPart compareValuesPart(PartOrder::compareValues, [](MainWindow& window) {
  auto* comparing = new Comparing(window);
  auto* action =
      window.actions().add("compare-values", tr("Compare Two &Values"),
                           tr("Takes the chosen value, and with the next one compares both"), QKeySequence(Qt::Key_V));
  comparing->setAction(action);
  window.actions().allowUnless(action, [&window] {
    const auto context = window.context();
    return !context.controller->document()       ? tr("No file is open")
           : !context.execution->now().available ? context.execution->now().unavailableReason
           : context.selection->chosenValue()    ? QString()
                                                 : tr("No value is selected");
  });
  QObject::connect(action, &QAction::triggered, comparing, &Comparing::choose);
  window.menu("view")->addAction(action);
});

const WindowPart compareTracesPart(PartOrder::compareTraces, [](MainWindow& window) {
  auto* action = window.actions().add(
      "compare-traces", tr("Compare Tr&aces..."),
      tr("Two traces side by side: before and after a pass, under another partition, of another file"),
      QKeySequence(Qt::CTRL | Qt::Key_D));
  window.actions().allowUnless(
      action, [&window] { return window.context().controller->document() ? QString() : tr("No file is open"); });
  auto* view = window.menu("view");
  view->addSeparator();
  view->addAction(action);
  auto* compared = new DiffWindow(window.context(), &window);
  QObject::connect(action, &QAction::triggered, compared, &DiffWindow::open);
  QObject::connect(compared, &DiffWindow::jumpRequested, &window, [&window](BoundSymbolId op) {
    window.jumpTo(op);
    window.activateWindow();
  });
  QObject::connect(&window.panel<WhyDock>(), &WhyDock::compareRequested, compared, &DiffWindow::compareWith);
  QObject::connect(&window.panel<WhyDock>(), &WhyDock::triedChanged, compared,
                   [compared](const std::shared_ptr<const MemoryTimeline>& memory, std::size_t) {
                     if (!memory) compared->dropTried();
                   });
});

}  // namespace
}  // namespace retrograd::views
