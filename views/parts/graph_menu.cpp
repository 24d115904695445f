// View > In the Graph: where to look, what is open, what boxes tell. Keys of a letter are the graph's alone, which has them only while it has the focus.
#include <QActionGroup>

#include "views/window/main_window.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

class GraphMenu {
 public:
  explicit GraphMenu(MainWindow& window) : window_(window), menu_(new QMenu(MainWindow::tr("In the &Graph"), &window)) {
    menu_->setObjectName(QStringLiteral("graph-menu"));
    menu_->setToolTipsVisible(true);
    addLooks();
    menu_->addSeparator();
    addFolds();
    menu_->addSeparator();
    addOverlays();
    auto* view = window.menu("view");
    const auto entries = view->actions();
    const auto at = std::find_if(entries.begin(), entries.end(), [](const QAction* action) { return action->isSeparator(); });
    view->insertMenu(at == entries.end() ? nullptr : *at, menu_);
    const auto update = [&window] { window.actions().update(); };
    QObject::connect(&graph(), &GraphView::layoutChanged, &window, update);
    QObject::connect(window.listings().graphAction(), &QAction::toggled, &window, update);
  }

 private:
  GraphView& graph() const { return window_.listings().graph(); }

  template <class Run>
  QAction* add(const char* name, const QString& text, const QString& tip, const QKeySequence& key, Run run, bool needsBox = false) {
    auto* action = window_.actions().add(name, text, tip, key);
    action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    window_.removeAction(action);
    graph().addAction(action);
    menu_->addAction(action);
    window_.actions().allowUnless(action, [&window = window_, needsBox] {
      if (!window.context().controller->document()) return MainWindow::tr("No file is open");
      if (!window.listings().isGraphShown()) return MainWindow::tr("The graph is not shown: View > Graph");
      if (needsBox && window.listings().graph().current() < 0) return MainWindow::tr("Nothing is selected in the graph");
      return QString();
    });
    QObject::connect(action, &QAction::triggered, &window_, [&graph = graph(), run] {
      run(graph);
      graph.setFocus();
    });
    return action;
  }

  void addLooks() {
    const auto tr = [](const char* text) { return MainWindow::tr(text); };
    add("graph-fit", tr("Zoom to &Fit"), tr("Shows the whole graph"), QKeySequence(Qt::Key_F), [](GraphView& graph) { graph.zoomToFit(); });
    add("graph-width", tr("Zoom to &Width"), tr("Shows the graph in its whole width (Home in the graph)"), {}, [](GraphView& graph) { graph.zoomToWidth(); });
    add("graph-selection", tr("Zoom to &Selection"), tr("Goes close to the selected op or group"), QKeySequence(Qt::Key_S), [](GraphView& graph) { graph.zoomToSelection(); }, true);
    add("graph-module", tr("Zoom to &Module"), tr("Shows the module that the selected op is in, both lanes of it; again: the module around it"), QKeySequence(Qt::Key_M),
        [](GraphView& graph) { graph.zoomToModule(); }, true);
    add("graph-full-size", tr("Full Si&ze"), tr("Boxes in the size in which they are read best"), QKeySequence(Qt::Key_1), [](GraphView& graph) { graph.zoomToFullSize(); });
    add("graph-zoom-in", tr("Zoom &In"), tr("Closer (Ctrl and wheel)"), QKeySequence(Qt::CTRL | Qt::Key_Equal), [](GraphView& graph) { graph.zoomBy(1.25, graph.rect().center()); });
    add("graph-zoom-out", tr("Zoom &Out"), tr("Away (Ctrl and wheel)"), QKeySequence(Qt::CTRL | Qt::Key_Minus), [](GraphView& graph) { graph.zoomBy(0.8, graph.rect().center()); });
    auto* map = add("graph-map", tr("Small Ma&p"), tr("The whole graph in the corner, with what is in sight"), {}, [](GraphView&) {});
    map->setCheckable(true);
    map->setChecked(true);
    QObject::connect(map, &QAction::toggled, &graph(), &GraphView::showMinimap);
  }

  void addFolds() {
    add("graph-open-all", MainWindow::tr("Open &All"), MainWindow::tr("Opens every group (* in the graph)"), {}, [](GraphView& graph) { graph.setAllOpen(true); });
    add("graph-close-all", MainWindow::tr("&Close All"), MainWindow::tr("Closes every group (/ in the graph)"), {}, [](GraphView& graph) { graph.setAllOpen(false); });
  }

  void addOverlays() {
    auto* tell = menu_->addMenu(MainWindow::tr("&Boxes Show"));
    tell->setToolTipsVisible(true);
    auto* group = new QActionGroup(&window_);
    for (auto overlay : overlays) {
      const auto name = QByteArrayLiteral("graph-tell-") + titleText(overlay).toLower().toLatin1();
      auto* action = add(name.constData(), titleText(overlay), toolTipText(overlay), {}, [overlay](GraphView& graph) { graph.setOverlay(overlay); });
      action->setCheckable(true);
      action->setChecked(overlay == graph().overlay());
      menu_->removeAction(action);
      tell->addAction(action);
      group->addAction(action);
      QObject::connect(&graph(), &GraphView::overlayChanged, action, [action, overlay, &graph = graph()] { action->setChecked(graph.overlay() == overlay); });
    }
  }

  MainWindow& window_;
  QMenu* menu_;
};

const WindowPart part(PartOrder::graphMenu, [](MainWindow& window) { GraphMenu{window}; });

}  // namespace
}  // namespace retrograd::views
