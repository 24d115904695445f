// View > In the Graph: where to look, what is open, what boxes show. Keys of a letter are the graph's alone, which has
// them only while it has the focus.
#include <QActionGroup>
#include <QStatusBar>

#include "core/derivation/result_names.h"
#include "views/settings/settings.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

class GraphMenu {
 public:
  explicit GraphMenu(MainWindow& window) : window_(window), menu_(new QMenu(tr("In the &Graph"), &window)) {
    menu_->setObjectName(QStringLiteral("graph-menu"));
    menu_->setToolTipsVisible(true);
    addLooks();
    menu_->addSeparator();
    addFolds();
    menu_->addSeparator();
    addOverlays();
    addLineLabels();
    auto* view = window.menu("view");
    const auto entries = view->actions();
    const auto at = std::ranges::find_if(entries, [](const QAction* action) { return action->isSeparator(); });
    view->insertMenu(at == entries.end() ? nullptr : *at, menu_);
    const auto update = [&window] { window.actions().update(); };
    QObject::connect(&graph(), &GraphView::layoutChanged, &window, update);
    QObject::connect(window.listings().graphAction(), &QAction::toggled, &window, update);
  }

 private:
  GraphView& graph() const { return window_.listings().graph(); }

  template <class Run>
  QAction* add(const char* name, const QString& text, const QString& tip, const QKeySequence& key, Run run,
               bool needsBox = false) {
    auto* action = window_.actions().add(name, text, tip, key);
    action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    window_.removeAction(action);
    graph().addAction(action);
    menu_->addAction(action);
    window_.actions().allowUnless(action, [&window = window_, needsBox] {
      if (!window.context().controller->document()) return tr("No file is open");
      if (!window.listings().isGraphShown()) return tr("The graph is not shown: View > Graph");
      if (needsBox && window.listings().graph().current() < 0) return tr("Nothing is selected in the graph");
      return QString();
    });
    QObject::connect(action, &QAction::triggered, &window_, [&graph = graph(), run] {
      run(graph);
      graph.setFocus();
    });
    return action;
  }

  void addLooks() {
    add("graph-fit", tr("Zoom to &Fit"), tr("Shows the whole graph"), QKeySequence(Qt::Key_F),
        [](GraphView& graph) { graph.zoomToFit(); });
    add("graph-width", tr("Zoom to &Width"), tr("Shows the graph in its whole width (Home in the graph)"), {},
        [](GraphView& graph) { graph.zoomToWidth(); });
    add(
        "graph-selection", tr("Zoom to &Selection"), tr("Goes close to the selected op or group"),
        QKeySequence(Qt::Key_S), [](GraphView& graph) { graph.zoomToSelection(); }, true);
    add(
        "graph-module", tr("Zoom to &Module"),
        tr("Shows the module that the selected op is in, both lanes of it; again: the module around it"),
        QKeySequence(Qt::Key_M), [](GraphView& graph) { graph.zoomToModule(); }, true);
    add("graph-full-size", tr("Full Si&ze"), tr("Shows boxes at full size"), QKeySequence(Qt::Key_1),
        [](GraphView& graph) { graph.zoomToFullSize(); });
    // Ctrl+= and Ctrl+- are Larger Text and Smaller Text, which zoom while the graph has the focus.
    add("graph-zoom-in", tr("Zoom &In"), tr("Closer (Ctrl+= in the graph, Ctrl and wheel)"), {},
        [](GraphView& graph) { graph.zoomBy(1.25, graph.rect().center()); });
    add("graph-zoom-out", tr("Zoom &Out"), tr("Away (Ctrl+- in the graph, Ctrl and wheel)"), {},
        [](GraphView& graph) { graph.zoomBy(0.8, graph.rect().center()); });
    auto* map = add("graph-map", tr("Small Ma&p"), tr("The whole graph in the corner, with what is in sight"), {},
                    [](GraphView&) {});
    map->setCheckable(true);
    map->setChecked(true);
    QObject::connect(map, &QAction::toggled, &graph(), &GraphView::showMinimap);
  }

  void addFolds() {
    add("graph-open-all", tr("Open &All"), tr("Opens every group (* in the graph)"), {},
        [](GraphView& graph) { graph.setAllOpen(true); });
    add("graph-close-all", tr("&Close All"), tr("Closes every group (/ in the graph)"), {},
        [](GraphView& graph) { graph.setAllOpen(false); });
  }

  void addOverlays() {
    auto* tell = menu_->addMenu(tr("&Boxes Show"));
    tell->setToolTipsVisible(true);
    auto* group = new QActionGroup(&window_);
    for (auto overlay : overlays) {
      const auto name = QByteArrayLiteral("graph-tell-") + titleText(overlay).toLower().toLatin1();
      auto* action = add(name.constData(), titleText(overlay), toolTipText(overlay), {},
                         [overlay](GraphView& graph) { graph.setOverlay(overlay); });
      action->setCheckable(true);
      action->setChecked(overlay == graph().overlay());
      menu_->removeAction(action);
      tell->addAction(action);
      group->addAction(action);
      QObject::connect(&graph(), &GraphView::overlayChanged, action,
                       [action, overlay, &graph = graph()] { action->setChecked(graph.overlay() == overlay); });
    }
  }

  void addLineLabels() {
    struct Choice {
      LineLabel label;
      const char* name;
      QString text, tip;
    };
    const std::array<Choice, lineLabels.size()> choices{
        {{LineLabel::bytes, "graph-lines-bytes", tr("&Bytes"),
          tr("Labels lines with the bytes of the values that run along them")},
         {LineLabel::norms, "graph-lines-norms", tr("&Norms"),
          tr("Labels lines with the 2-norm of the values that run along them, where a run or a recording has them")},
         {LineLabel::none, "graph-lines-nothing", tr("N&othing"), tr("Draws lines without labels")}}};
    auto* settings = window_.shared().settings;
    graph().setLineLabel(
        static_cast<LineLabel>(std::clamp(kept::graphLines.of(*settings), 0, static_cast<int>(lineLabels.size()) - 1)));
    auto* menu = menu_->addMenu(tr("Li&nes Show"));
    menu->setToolTipsVisible(true);
    auto* group = new QActionGroup(&window_);
    for (const auto& choice : choices) {
      auto* action = add(choice.name, choice.text, choice.tip, {}, [settings, label = choice.label](GraphView& graph) {
        graph.setLineLabel(label);
        kept::graphLines.keep(*settings, static_cast<int>(label));
      });
      action->setCheckable(true);
      action->setChecked(choice.label == graph().lineLabel());
      menu_->removeAction(action);
      menu->addAction(action);
      group->addAction(action);
      QObject::connect(
          &graph(), &GraphView::lineLabelChanged, action,
          [action, label = choice.label, &graph = graph()] { action->setChecked(graph.lineLabel() == label); });
    }
  }

  MainWindow& window_;
  QMenu* menu_;
};

const WindowPart graphMenuPart(PartOrder::graphMenu, [](MainWindow& window) { GraphMenu{window}; });

// Ways, lit up: from one op to another, and from a parameter or any op to the loss.

using Ops = std::vector<BoundSymbolId>;

/// Where the ways of a value begin: at what makes it, and for a parameter or an input at the ops of the joint that read
/// it.
Ops beginningsOf(const Analysis& analysis, BoundSymbolId op, ValueId value) {
  const auto& document = *analysis.document;
  if (!value || document.value(value).producer) return op ? Ops{op} : Ops{};
  Ops readers;
  for (auto each : analysis.joint.ops) {
    const auto operands = document.operands(each);
    if (std::ranges::find(operands, value) != operands.end()) readers.push_back(each);
  }
  return readers;
}

/// The ops of the joint that make the outputs at which the gradient begins.
Ops lossOf(const Analysis& analysis) {
  const auto& computation = analysis.computation();
  Ops ops;
  for (std::size_t i = 0; i < computation.outputs.size(); ++i) {
    const auto& output = computation.outputs[i];
    if ((output.kind != OutputKind::user && output.kind != OutputKind::loss) || !output.value) continue;
    if (!analysis.request.cotangents.contains(userOutputPosition(computation, i))) continue;
    const auto producer = analysis.document->value(output.value).producer;
    if (!producer) continue;
    for (auto derived : analysis.links.derived(producer))
      if (!isBackwardRole(analysis.document->boundSymbol(derived).origin.role)) ops.push_back(derived);
  }
  return ops;
}

class GraphWays : public QObject {
 public:
  explicit GraphWays(MainWindow& window) : QObject(&window), window_(window) {
    auto* menu = window.findChild<QMenu*>(QStringLiteral("graph-menu"));
    menu->addSeparator();
    const auto add = [&](const char* name, const QString& text, const QString& tip, auto run) {
      auto* action = window.actions().add(name, text, tip, {});
      connect(action, &QAction::triggered, this, run);
      menu->addAction(action);
      return action;
    };
    auto* begin = add("graph-way-from", tr("Begin a Path Here"),
                      tr("Begins paths at the selected op: the next command lights them"), [this] { beginHere(); });
    auto* end =
        add("graph-way-to", tr("Light All Pa&ths to Here"),
            tr("Lights all ways along values from where a path was begun to the selected op; Esc in the graph ends it"),
            [this] { light(from_, {selected()}); });
    auto* loss = add(
        "graph-ways-to-loss", tr("Light All Ways to the &Loss"),
        tr("From the selected parameter, input or op to where the gradient begins; Esc in the graph ends it"), [this] {
          light(beginningsOf(analysis(), selected(), window_.context().selection->value()), lossOf(analysis()));
        });
    const auto noOp = [this] {
      const auto& document = window_.context().controller->document();
      if (!document) return tr("No file is open");
      if (!document->analysis->derived()) return tr("There is no forward and backward: see Problems");
      return selected() || window_.context().selection->value() ? QString() : tr("No op is selected");
    };
    window.actions().allowUnless(begin, noOp);
    window.actions().allowUnless(loss, noOp);
    window.actions().allowUnless(end, [this, noOp] {
      const auto reason = noOp();
      return !reason.isEmpty() || !from_.empty() ? reason : tr("No path was begun: Begin a Path Here");
    });
    connect(window.context().controller, &DocumentController::documentAboutToChange, this, [this] { from_.clear(); });
  }

 private:
  BoundSymbolId selected() const { return window_.context().selection->op(); }
  const Analysis& analysis() const { return *window_.context().controller->document()->analysis; }

  void beginHere() {
    from_ = beginningsOf(analysis(), selected(), window_.context().selection->value());
    window_.statusBar()->showMessage(tr("Select the op where the path ends, then Light All Paths to Here"), 8000);
    window_.actions().update();
  }

  /// Shows the graph if need be. The joint has every op; another trace lights what it has.
  void light(const Ops& from, const Ops& to) {
    auto& listings = window_.listings();
    listings.graphAction()->setChecked(true);
    auto& graph = listings.graph();
    const auto show = [this, &graph, from, to] {
      connect(
          &graph, &GraphView::waysLit, this,
          [this](int boxes) {
            window_.statusBar()->showMessage(
                boxes > 0 ? tr("Lit: %n boxes on the way; Esc in the graph ends it", nullptr, boxes)
                          : tr("No value leads from the one to the other"),
                8000);
          },
          Qt::SingleShotConnection);
      graph.lightWays(from, to);
      graph.setFocus();
    };
    if (graph.picture()) return show();
    connect(&graph, &GraphView::layoutChanged, this, show, Qt::SingleShotConnection);
  }

  MainWindow& window_;
  Ops from_;
};

const WindowPart ways(PartOrder::graphWays, [](MainWindow& window) { new GraphWays(window); });

}  // namespace
}  // namespace retrograd::views
