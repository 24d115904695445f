// Resting on a name in a listing or on a box of the graph shows the value; so does a key.
#include <QHelpEvent>

#include "views/dialogs/value_tip.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

ValueId firstOutput(const Document& document, BoundSymbolId op) {
  for (auto output : document.outputs(op))
    if (output) return output;
  return {};
}

/// Puts the tip in the place of the tooltip where the pointer rests on a value.
class Hovering : public QObject {
 public:
  Hovering(MainWindow& window, ValueTip* tip) : QObject(&window), window_(window), tip_(tip) {
    for (auto kind : traceKinds) window.listings().listing(kind).viewport()->installEventFilter(this);
    window.listings().graph().installEventFilter(this);
  }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() == QEvent::Leave) tip_->leave();
    if (event->type() == QEvent::MouseMove && tip_->isVisible() &&
        under(watched, static_cast<QMouseEvent*>(event)->pos()).second != tip_->value())
      tip_->leave();
    if (event->type() != QEvent::ToolTip) return false;
    const auto* help = static_cast<QHelpEvent*>(event);
    const auto [op, value] = under(watched, help->pos());
    if (!value) return tip_->leave(), false;
    if (!tip_->isVisible() || tip_->value() != value) tip_->show(op, value, help->globalPos());
    return true;
  }

 private:
  std::pair<BoundSymbolId, ValueId> under(QObject* watched, const QPoint& at) const {
    const auto& open = window_.context().controller->document();
    if (!open) return {};
    if (auto& graph = window_.listings().graph(); watched == &graph) {
      if (!graph.picture()) return {};
      const int box = graph.boxAt(at);
      const auto op = box >= 0 ? graph.opOf(box) : BoundSymbolId();
      return {op, op ? firstOutput(*open->analysis->document, op) : ValueId()};
    }
    auto* view = qobject_cast<ListingView*>(watched->parent());
    const int row = view ? view->rowAtY(at.y()) : -1;
    if (row < 0 || view->columnRect().contains(at)) return {};
    return {view->opAt(row), view->valueAt(at, row)};
  }

  MainWindow& window_;
  ValueTip* tip_;
};

const WindowPart valueTipsPart(PartOrder::valueTips, [](MainWindow& window) {
  auto* tip = new ValueTip(window.context(), &window);
  new Hovering(window, tip);
  auto* action =
      window.actions().add("value-tip", tr("Show Val&ue"),
                           tr("Shows shape, statistics and a histogram of the chosen value next to its line"),
                           QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_V));
  window.actions().allowUnless(action, [&window] {
    return !window.context().controller->document()    ? tr("No file is open")
           : window.context().selection->chosenValue() ? QString()
                                                       : tr("No value is selected");
  });
  QObject::connect(action, &QAction::triggered, &window, [&window, tip] {
    auto& view = window.listings().active();
    const auto rect = view.rowRect(std::max(view.cursorRow(), 0));
    const auto& selection = *window.context().selection;
    tip->show(selection.op(), selection.chosenValue(),
              view.viewport()->mapToGlobal(QPoint(60, std::clamp(rect.bottom(), 0, view.viewport()->height()) - 16)));
  });
  window.menu("view")->addAction(action);
});

}  // namespace
}  // namespace retrograd::views
