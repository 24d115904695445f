#include "views/parts/layouts.h"

#include <QComboBox>
#include <QInputDialog>
#include <QPointer>
#include <QStatusBar>

#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

/// The panels that a kind of file is opened for, brought to the front of their places in its default layout.
QStringList panelsFor(FileKind kind) {
  switch (kind) {
    case FileKind::step: return {QStringLiteral("optimizer"), QStringLiteral("values"), QStringLiteral("findings")};
    case FileKind::job: return {QStringLiteral("job")};
    case FileKind::model:
    case FileKind::session: break;
  }
  return {};
}

const WindowPart layoutsPart(PartOrder::layouts, [](MainWindow& window) {
  window.menu("view")->addMenu(new LayoutsMenu(window));
  QObject::connect(&window, &MainWindow::layoutReset, &window, [&window] {
    for (const auto& panel : panelsFor(window.layoutKind())) window.showPanel(panel);
  });
});

}  // namespace

std::vector<LayoutPreset> layoutPresets() {
  using enum TraceKind;
  return {{"layout-debugging",
           tr("De&bugging Layout"),
           tr("Forward and backward over values, watches and breakpoints"),
           {forward, backward},
           false,
           {},
           {"dock-why"},
           {"dock-values", "dock-watches", "dock-breakpoints", "dock-findings", "dock-references"},
           320},
          {"layout-memory",
           tr("&Memory Layout"),
           tr("The timeline over the whole width, and why values are saved"),
           {forward, backward},
           false,
           {},
           {"dock-why"},
           {"dock-memory", "dock-values"},
           360},
          {"layout-graph",
           tr("&Graph Layout"),
           tr("The graph between modules and inspector"),
           {},
           true,
           {"dock-modules"},
           {"dock-why"},
           {}},
          {"layout-reading",
           tr("&Reading Layout"),
           tr("Computation and backward side by side, with nothing around them"),
           {computation, backward},
           false,
           {},
           {},
           {}}};
}

void apply(const LayoutPreset& preset, MainWindow& window) {
  const QPointer focused = window.focusWidget();
  window.resetLayout();
  const auto dockOf = [&](const char* name) { return window.findChild<QDockWidget*>(QLatin1String(name)); };
  QList<QDockWidget*> kept;
  const auto place = [&](const std::vector<const char*>& names, Qt::DockWidgetArea area) {
    QDockWidget* front = nullptr;
    for (const auto* name : names) {
      auto* dock = dockOf(name);
      if (!dock) continue;
      window.removeDockWidget(dock);
      front ? window.tabifyDockWidget(front, dock) : window.addDockWidget(area, dock);
      dock->show();
      if (!front) front = dock;
      kept << dock;
    }
    if (front) front->raise();
  };
  place(preset.left, Qt::LeftDockWidgetArea);
  place(preset.right, Qt::RightDockWidgetArea);
  place(preset.bottom, Qt::BottomDockWidgetArea);
  for (auto* dock : window.docks())
    if (!kept.contains(dock)) dock->hide();
  if (!preset.right.empty()) window.resizeDocks({dockOf(preset.right[0])}, {370}, Qt::Horizontal);
  if (!preset.left.empty()) window.resizeDocks({dockOf(preset.left[0])}, {200}, Qt::Horizontal);
  if (!preset.bottom.empty()) window.resizeDocks({dockOf(preset.bottom[0])}, {preset.bottomHeight}, Qt::Vertical);
  auto& listings = window.listings();
  const auto isWanted = [&](TraceKind kind) {
    return std::ranges::find(preset.listings, kind) != preset.listings.end();
  };
  // Those that are to be shown first: the last one that is shown cannot be hidden.
  for (bool on : {true, false}) {
    for (auto kind : traceKinds)
      if (isWanted(kind) == on) listings.toggleAction(kind)->setChecked(on);
    if (preset.graph == on) listings.graphAction()->setChecked(on);
  }
  listings.takeFocusFrom(focused);
}

QByteArray SavedLayouts::layout(const QString& name) const {
  return kept::layouts.of(*settings_).value(name).toByteArray();
}

void SavedLayouts::save(const QString& name, const QByteArray& layout) {
  auto all = kept::layouts.of(*settings_);
  all[name] = layout;
  kept::layouts.keep(*settings_, all);
}

void SavedLayouts::remove(const QString& name) {
  auto all = kept::layouts.of(*settings_);
  all.remove(name);
  kept::layouts.keep(*settings_, all);
}

LayoutsMenu::LayoutsMenu(MainWindow& window)
    : QMenu(tr("&Layouts"), &window), window_(window), saved_(window.shared().settings) {
  setObjectName(QStringLiteral("layouts"));
  setToolTipsVisible(true);
  auto& actions = window.actions();
  presets_ << actions.resetLayout;
  for (const auto& preset : layoutPresets()) {
    auto* action = actions.add(preset.name, preset.title, preset.what,
                               QKeySequence(Qt::CTRL | Qt::ALT | static_cast<Qt::Key>(Qt::Key_1 + presets_.size())));
    connect(action, &QAction::triggered, this, [&window, preset] { apply(preset, window); });
    presets_ << action;
  }
  save_ = actions.add("layout-save", tr("&Save Layout..."),
                      tr("Saves the arrangement of listings and panels under a name"), {});
  connect(save_, &QAction::triggered, this, &LayoutsMenu::askForName);
  remove_ = new QMenu(tr("R&emove"), this);
  connect(this, &QMenu::aboutToShow, this, &LayoutsMenu::fill);
  fill();
}

void LayoutsMenu::fill() {
  clear();
  addActions(presets_);
  addSeparator();
  remove_->clear();
  for (const auto& name : saved_.names()) {
    const auto text = QString(name).replace(QLatin1Char('&'), QStringLiteral("&&"));
    connect(addAction(text), &QAction::triggered, this, [this, name] { use(name); });
    connect(remove_->addAction(text), &QAction::triggered, this, [this, name] { saved_.remove(name); });
  }
  addSeparator();
  addAction(save_);
  addMenu(remove_);
  remove_->setEnabled(!saved_.names().isEmpty());
}

void LayoutsMenu::askForName() {
  auto* dialog = new QInputDialog(&window_);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(tr("Save Layout"));
  dialog->setLabelText(tr("A name for this arrangement (an existing layout of that name is replaced):"));
  dialog->setComboBoxItems(saved_.names());
  dialog->setComboBoxEditable(true);
  dialog->setTextValue({});
  connect(dialog, &QInputDialog::textValueSelected, this, [this](const QString& text) {
    const auto name = text.simplified();
    if (name.isEmpty()) return window_.statusBar()->showMessage(tr("Without a name no layout is saved"), 8000);
    saved_.save(name, window_.arrangement());
    window_.statusBar()->showMessage(tr("The layout '%1' is in View > Layouts").arg(name), 5000);
  });
  dialog->open();
  if (auto* names = dialog->findChild<QComboBox*>()) names->setAccessibleName(tr("Name of the layout"));
}

void LayoutsMenu::use(const QString& name) {
  if (!window_.arrange(saved_.layout(name)))
    window_.messages().show(MessageBar::Kind::warning,
                            tr("The layout '%1' is from another version of the program: save it again").arg(name));
}

}  // namespace retrograd::views
