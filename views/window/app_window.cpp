#include "views/window/app_window.h"

#include <QApplication>
#include <QBuffer>
#include <QDialog>
#include <QEventLoop>
#include <QFileInfo>
#include <QPainter>
#include <QStyle>
#include <QTemporaryDir>
#include <QTimer>
#include <algorithm>
#include <cstdio>

#include "core/formats/files/atomic_file.h"
#include "views/canvases/diff_view.h"
#include "views/settings/settings.h"
#include "views/text/format.h"
#include "views/window/diff_window.h"
#include "views/window/main_window.h"
#include "views/window/session_keeper.h"

namespace retrograd {
namespace {

using namespace views;

/// Settings and theme chosen, listings known to screen readers: what every window needs.
void prepare(Theme& theme, QSettings& settings) {
  installCodeAccessibility();
  installGraphAccessibility();
  theme.choose(static_cast<Theme::Choice>(kept::theme.of(settings)));
}

void nameApplication() {
  QApplication::setApplicationName(QStringLiteral("retrograd"));
  QApplication::setApplicationDisplayName(QStringLiteral("Retrograd"));
  QApplication::setOrganizationName(QStringLiteral("retrograd"));
  QApplication::setDesktopFileName(
      QStringLiteral("org.retrograd.retrograd"));  // as its desktop file is called, whose icon desktops then show
}

/// Lets events run until `done` or the time is over; returns whether it was done. Only for programs without a user.
template <class Done>
bool waitFor(Done done, int seconds = 600) {
  QEventLoop loop;
  QTimer poll, limit;
  QObject::connect(&poll, &QTimer::timeout, &loop, [&] {
    if (done()) loop.quit();
  });
  limit.setSingleShot(true);
  QObject::connect(&limit, &QTimer::timeout, &loop, &QEventLoop::quit);
  poll.start(20);
  limit.start(seconds * 1000);
  loop.exec();
  return done();
}

/// Until what was just shown is laid out and painted.
void letRest() {
  QEventLoop rest;
  QTimer::singleShot(400, &rest, &QEventLoop::quit);
  rest.exec();
}

/// Into the backward by three groups, with the last op that ran selected: what the program is about in one picture.
void showBackward(MainWindow& window) {
  auto& controller = *window.context().controller;
  const auto& execution = *window.context().execution;
  const auto& program = controller.document()->program;
  if (!execution.now().available || program.size() == program.forwardSize()) return;
  auto position = program.forwardSize();
  for (int group = 0; group < 3; ++group) position = program.steps().goal(Step::over, position);
  position = std::min(position, program.size());
  controller.run().runToPosition(position);
  waitFor([&] { return !execution.now().running; });
  window.listings().goTo(program.opAt(position - 1));
}

/// The graph alone instead of the listings.
void showGraph(MainWindow& window, const PictureOptions& options) {
  auto& listings = window.listings();
  listings.graphAction()->setChecked(true);
  for (auto kind : traceKinds) listings.toggleAction(kind)->setChecked(false);
  auto& graph = listings.graph();
  graph.setKind(options.trace);
  waitFor([&] { return graph.picture() && !graph.busy(); });
  if (options.openAll) {
    graph.setAllOpen(true);
    waitFor([&] { return !graph.busy(); });
  }
  graph.setFocus();
  options.whole ? graph.zoomToFit() : graph.reveal(window.context().selection->op());
  waitFor([&] { return !graph.busy(); });
}

BoundSymbolId opThatMakes(const OpenDocument& document, const QString& name) {
  for (auto kind : {TraceKind::joint, TraceKind::computation})
    for (auto op : document.trace(kind).trace().ops)
      for (auto value : document.analysis->document->outputs(op))
        if (value && toQt(document.analysis->document->displayName(value)) == name) return op;
  return {};
}

/// Until nothing runs and what was asked is answered. The worker is idle a moment before its answer is here.
void waitForAnswers(const MainWindow& window) {
  const auto& controller = *window.context().controller;
  int quiet = 0;
  waitFor([&] {
    const bool busy = window.context().execution->now().running || window.context().controller->questions().asking() ||
                      controller.opening();
    quiet = busy ? 0 : quiet + 1;
    return quiet > 3;
  });
}

/// Until no panel is about to ask or waits for an answer.
void waitForPanels(const MainWindow& window) {
  int quiet = 0;
  waitFor([&] {
    const auto panels = window.findChildren<Panel*>();
    const bool busy = std::ranges::any_of(panels, [](const Panel* panel) { return panel->busy(); });
    quiet = busy ? 0 : quiet + 1;
    return quiet > 3;
  });
}

void openMemory(MainWindow& window, const std::vector<std::string>& snapshots) {
  for (std::size_t i = 0; i < snapshots.size(); ++i) {
    const auto path = toQt(snapshots[i]);
    auto* dock = window.findChild<QDockWidget*>(QStringLiteral("dock-recorded-memory"));
    QMetaObject::invokeMethod(dock->widget(), i == 0 ? "open" : "compareWith", Q_ARG(QString, path));
    waitForAnswers(window);
    waitForPanels(window);
  }
}

void giveCommand(MainWindow& window, const QString& name) {
  auto* action = window.findChild<QAction*>(QStringLiteral("action-") + name);
  if (!action) throw Error(ErrorCode::badUse, "there is no such command", "--do " + name.toStdString());
  if (!action->isEnabled())
    throw Error(ErrorCode::badUse, action->statusTip().toStdString(), "--do " + name.toStdString());
  action->trigger();
  waitForAnswers(window);
}

/// Commands to the graph are given once it is there; in the order of the command line among themselves.
bool isForGraph(const std::string& command) { return command.starts_with("graph-"); }

/// A state of the window that is worth a picture. Throws Error(badUse) for what is not there.
void arrange(MainWindow& window, const PictureOptions& options) {
  if (!options.select.empty()) {
    const auto op = opThatMakes(*window.context().controller->document(), toQt(options.select));
    if (!op) throw Error(ErrorCode::badUse, "no op makes a value of this name", "--select " + options.select);
    window.listings().goTo(op);
  }
  if (!options.recorded.empty()) {
    window.showPanel(QStringLiteral("recorded"));
    auto* dock = window.findChild<QDockWidget*>(QStringLiteral("dock-recorded"));
    QMetaObject::invokeMethod(dock->widget(), "load", Q_ARG(QString, toQt(options.recorded)));
    waitForAnswers(window);
  }
  openMemory(window, options.memory);
  for (const auto& name : options.docks)
    if (!window.showPanel(toQt(name))) throw Error(ErrorCode::badUse, "there is no such dock", "--dock " + name);
  for (const auto& name : options.commands)
    if (!isForGraph(name)) giveCommand(window, toQt(name));
  if (options.filter.empty()) return;
  auto& filter = *window.context().filter;
  if (const auto problem = OpFilter::problemOf(toQt(options.filter)))
    throw Error(ErrorCode::badUse, problem->message.toStdString(), "--filter " + options.filter);
  filter.apply(toQt(options.filter));
  waitFor([&] { return !filter.busy(); });
}

/// The window that compares traces, on the joint.
QWidget* showComparison(MainWindow& window, const PictureOptions& options) {
  auto* comparison = window.findChild<DiffWindow*>();
  if (!options.compareWith.empty())
    comparison->chooser(Side::right).choose({TraceSource::Kind::file, toQt(options.compareWith)}, options.trace);
  for (auto side : bothSides) comparison->chooser(side).choose(comparison->chooser(side).source(), options.trace);
  comparison->resize(options.width, options.height);
  comparison->open();
  waitFor([&] { return !comparison->busy(); });
  letRest();
  return comparison;
}

/// A window of its own that a command opened, as large as the picture; else the main window.
QWidget* frontWindow(MainWindow& window, const PictureOptions& options) {
  for (auto* other : window.findChildren<QWidget*>(QString(), Qt::FindDirectChildrenOnly)) {
    if (!other->isVisible() || other->windowType() != Qt::Window) continue;
    other->resize(options.width, options.height);
    letRest();
    return other;
  }
  return &window;
}

/// The looks of the window with the dialogs that are open before it, in its middle.
QPixmap withDialogs(QWidget& window) {
  auto picture = window.grab();
  QPainter painter(&picture);
  for (auto* dialog : window.findChildren<QDialog*>()) {
    if (!dialog->isVisible()) continue;
    const auto place = QStyle::alignedRect(Qt::LeftToRight, Qt::AlignCenter, dialog->size(), window.rect());
    painter.drawPixmap(place, dialog->grab());
    painter.setPen(dialog->palette().color(QPalette::Mid));
    painter.drawRect(place.adjusted(-1, -1, 0, 0));
  }
  return picture;
}

/// Qt's remarks about a machine without a desktop (no runtime folder, no size hints) are not messages for who wants a
/// picture.
void keepQtQuiet(QtMsgType type, const QMessageLogContext&, const QString& text) {
  if (type == QtCriticalMsg || type == QtFatalMsg) std::fprintf(stderr, "%s\n", qPrintable(text));
}

}  // namespace

int runWindow(int& argc, char** argv, const std::vector<std::string>& files,
              std::shared_ptr<const RuleRegistry> rules) {
  QApplication application(argc, argv);
  nameApplication();
  QSettings settings;
  Theme theme(application);
  prepare(theme, settings);
  const Shared shared{std::make_shared<Worker>(), liveEngine(std::move(rules)), &theme, &settings};
  shared.worker->setRest([engine = shared.engine] { engine->rest(); });
  const auto show = [&shared](const std::string* file) {
    auto* window = new MainWindow(shared);
    window->show();
    if (file) window->openFile(toQt(*file));
  };
  for (const auto& file : files) show(&file);
  if (files.empty() && reopenLastSession(shared).isEmpty()) show(nullptr);
  return QApplication::exec();
}

bool renderWindowToPicture(const PictureOptions& options, const std::string& picture) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  qInstallMessageHandler(keepQtQuiet);
  int argc = 1;
  char name[] = "retrograd";
  char* argv[] = {name, nullptr};
  std::unique_ptr<QApplication> application;
  if (!qApp) application = std::make_unique<QApplication>(argc, argv);
  nameApplication();
  QTemporaryDir folder;  // the picture shows the program as it comes, not as someone left it
  QSettings settings(folder.filePath(QStringLiteral("settings.ini")), QSettings::IniFormat);
  kept::exportFolder.keep(settings, QStringLiteral("."));  // not where it was made
  Theme theme(*qApp, nullptr, [&options] { return options.dark; });
  prepare(theme, settings);
  theme.choose(options.highContrast ? Theme::Choice::highContrast
               : options.dark       ? Theme::Choice::dark
                                    : Theme::Choice::light);
  auto* window = new MainWindow({std::make_shared<Worker>(), liveEngine(options.model.rules), &theme, &settings});
  window->resize(options.width, options.height);
  window->show();
  auto& controller = *window->context().controller;
  const auto& file = options.model.path;
  if (!file.empty() && options.model.asksForNothing()) {
    window->openFile(toQt(file));
  } else if (!file.empty()) {
    auto request = options.model;
    request.path = QFileInfo(toQt(file)).absoluteFilePath().toStdString();
    controller.open(request);
  }
  waitFor([&] { return !controller.opening(); });
  waitForPanels(*window);
  bool written = false;
  try {
    if (!controller.document() && !window->hasPanelAlone() && !file.empty())
      throw Error(ErrorCode::badInput, window->messages().text().toStdString());
    if (controller.document()) showBackward(*window);
    arrange(*window, options);
    if (options.graph) showGraph(*window, options);
    for (const auto& name : options.commands)
      if (isForGraph(name)) {
        giveCommand(*window, toQt(name));
        waitFor([&] { return !window->listings().graph().busy(); });
      }
    // The last reply to the values panel comes after its last question.
    waitFor([&] { return !controller.worker().busy(&controller, QStringLiteral("values")); });
    letRest();
    QWidget* seen = options.compare ? showComparison(*window, options) : frontWindow(*window, options);
    QBuffer encoded;
    encoded.open(QIODevice::WriteOnly);
    if (!withDialogs(*seen).save(&encoded, "PNG")) throw Error(ErrorCode::io, "the picture cannot be encoded", picture);
    writeWholeFile(picture, encoded.data().toStdString());
    written = true;
  } catch (const Error& error) {
    std::fprintf(stderr, "retrograd: %s\n", error.what());
  }
  window->close();
  QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
  return written;
}

}  // namespace retrograd
