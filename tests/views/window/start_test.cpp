#include <QApplication>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QDialog>
#include <QTest>
#include <QTimer>

#include "tests/support/source_path.h"
#include "tests/views/menus.h"
#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/docks/why_dock.h"
#include "views/parts/tour_panel.h"
#include "views/session/why_report.h"
#include "views/settings/keymap.h"
#include "views/settings/settings.h"
#include "views/text/format.h"
#include "views/window/bug_report.h"

namespace retrograd::views {

/// The first minutes with the program, on the sample that comes with it: start page, tour, and the report of what went
/// wrong.
class StartTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void samplesAreWhatTheListNames();
  void theStartPageOpensASample();
  void tabLeadsOverTheStartPage();
  void helpLeadsToTheStartPage();
  void aSampleBringsItsPanels();
  void theStartPageHasTheWindow();
  void theTourWatchesWhatIsDone();
  void theTourAsksWhyByKeyboard();
  void theTourCanBeLeft();
  void whatIsOpenStaysOpen();
  void theReportShowsTheOp();
  void theReportIsInTheListingsMenu();
  void pictures();

 private:
  TourPanel& panel(MainWindow& window) { return *window.findChild<TourPanel*>(); }
};

namespace {

void clickOn(QWidget& root, const char* name) {
  auto* button = root.findChild<QPushButton*>(QLatin1String(name));
  QVERIFY2(button && button->isVisible(), name);
  QTest::mouseClick(button, Qt::LeftButton);
}

bool opened(WindowFixture& f) {
  return QTest::qWaitFor([&] { return f.controller().document() && !f.controller().opening(); }, 60000);
}

QString mlp() { return samples().first().path; }

/// A backward op with a forward op of its own.
BoundSymbolId linkedOp(const Analysis& analysis) {
  for (auto op : analysis.backward.ops)
    if (isBackwardRole(analysis.document->boundSymbol(op).origin.role) &&
        analysis.links.forwardOf(*analysis.document, op))
      return op;
  return {};
}

/// Clicks along the lines of the forward until a saved value is met; returns whether one was.
bool clickSavedValue(WindowFixture& f) {
  auto& view = f.listing(TraceKind::forward);
  const auto& document = *f.controller().document();
  for (auto op : f.analysis().forward.ops) {
    const auto outputs = f.analysis().document->outputs(op);
    if (outputs.empty() || !outputs[0] || !document.saved.contains(outputs[0])) continue;
    f.click(TraceKind::forward, op);
    const auto rect = view.rowRect(view.rowOf(op));
    for (int x = rect.height() + 30; x < rect.height() * 12; x += 6) {
      QTest::mouseClick(view.viewport(), Qt::LeftButton, Qt::NoModifier, QPoint(x, rect.center().y()));
      if (f.selection().value() == outputs[0]) return true;
    }
  }
  return false;
}

}  // namespace

void StartTest::samplesAreWhatTheListNames() {
  const auto all = samples();
  QVERIFY(all.size() >= 2);
  for (const auto& sample : all)
    QVERIFY(QFile::exists(sample.path) && !sample.title.isEmpty() && !sample.text.isEmpty());
  QTemporaryDir folder;
  QVERIFY(samplesIn(folder.path()).isEmpty());
  const auto write = [&](const QString& name, const QByteArray& content) {
    QFile file(folder.filePath(name));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(content);
  };
  write(QStringLiteral("samples.json"), "{ nonsense");
  QVERIFY(samplesIn(folder.path()).isEmpty());
  write(QStringLiteral("here.pt2"), "x");
  write(QStringLiteral("samples.json"), R"([1, {"file": "gone.pt2"}, {"file": "here.pt2", "title": "Here"}])");
  QCOMPARE(samplesIn(folder.path()).size(), 1);
  QCOMPARE(samplesIn(folder.path())[0].title, QStringLiteral("Here"));
}

void StartTest::theStartPageOpensASample() {
  WindowFixture f(liveEngine());
  clickOn(f.window(), "sample-tiny_gpt");
  QVERIFY(opened(f));
  QVERIFY(f.window().windowTitle().contains(QStringLiteral("tiny_gpt.pt2")));
  QVERIFY(!panel(f.window()).isVisible());
  // By the keyboard; and it is among those opened recently now.
  action(f.window(), "close")->trigger();
  auto* card = f.window().findChild<QPushButton*>(QStringLiteral("sample-mlp"));
  QTRY_VERIFY(card->isVisible());
  bool recent = false;
  for (auto* button : f.window().findChild<StartPage*>()->findChildren<QPushButton*>())
    recent |= button->text().contains(QStringLiteral("tiny_gpt.pt2"));
  QVERIFY(recent);
  for (auto key : {Qt::Key_Space, Qt::Key_Return}) {
    card->setFocus();
    f.press(key);
    QVERIFY(opened(f));
    QVERIFY(f.window().windowTitle().contains(QStringLiteral("mlp.pt2")));
    action(f.window(), "close")->trigger();
    QTRY_VERIFY(card->isVisible());
  }
}

// Tab leads over the page as it is read: tour, Open, samples, recent files, lines to copy.
void StartTest::tabLeadsOverTheStartPage() {
  WindowFixture f(std::make_shared<FakeEngine>(), WindowFixture::Start::asItComes);
  kept::recentFiles.keep(*f.window().shared().settings, {mlp()});
  auto* page = f.window().findChild<StartPage*>();
  page->hide();
  page->show();
  QTRY_VERIFY(page->findChild<QPushButton*>(QStringLiteral("start-recent"))->isVisible());
  page->findChild<QPushButton*>(QStringLiteral("start-tour"))->setFocus();
  QStringList met;
  for (int i = 0; i < 12; ++i) {
    const auto* now = QApplication::focusWidget();
    if (now && !now->objectName().isEmpty() && page->isAncestorOf(now)) met << now->objectName();
    f.press(Qt::Key_Tab);
  }
  const QStringList wanted{"start-tour",      "start-open",   "sample-mlp",          "sample-twins",
                           "sample-tiny_gpt", "start-recent", "start-copy-recording"};
  QStringList buttons;
  for (const auto& name : met)
    if (wanted.contains(name) && !buttons.contains(name)) buttons << name;
  QCOMPARE(buttons, wanted);
}

void StartTest::helpLeadsToTheStartPage() {
  WindowFixture f(liveEngine());
  auto* start = action(f.window(), "start-page");
  QVERIFY(!start->isEnabled());
  QVERIFY2(start->toolTip().contains(QStringLiteral("in this window")), qPrintable(start->toolTip()));
  QVERIFY(f.open(mlp()));
  QVERIFY(start->isEnabled());
  // W49: in the same window, over what is open; Esc brings that back as it was.
  const auto visible = [&] {
    QStringList names;
    for (const auto* dock : f.window().docks())
      if (dock->isVisible()) names << dock->objectName();
    return names;
  };
  const auto docks = visible();
  QVERIFY(!docks.isEmpty());
  start->trigger();
  const auto* page = f.window().findChild<StartPage*>();
  QVERIFY(page->isVisible() && visible().isEmpty());
  QVERIFY(f.controller().document());
  f.press(Qt::Key_Escape);
  QVERIFY(!page->isVisible());
  QCOMPARE(visible(), docks);
  QVERIFY(f.listing(TraceKind::forward).isVisible());
}

// A question about memory has the panels that answer it in front.
void StartTest::aSampleBringsItsPanels() {
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  clickOn(f.window(), "sample-tiny_gpt");
  QVERIFY(opened(f));
  for (const char* name : {"dock-memory", "dock-why"}) {
    const auto* dock = f.window().findChild<QDockWidget*>(QLatin1String(name));
    QTRY_VERIFY2(!dock->widget()->visibleRegion().isEmpty(), name);
  }
}

// Empty panels around the start page say nothing: they come with the first file, as they were left.
void StartTest::theStartPageHasTheWindow() {
  WindowFixture f(std::make_shared<FakeEngine>(), WindowFixture::Start::asItComes);
  const auto visible = [](const MainWindow& window) {
    QStringList names;
    for (const auto* dock : window.docks())
      if (!dock->isHidden()) names << dock->objectName();
    names.sort();
    return names;
  };
  QCOMPARE(visible(f.window()), QStringList());
  const auto* keys = f.window().findChild<QLabel*>(QStringLiteral("start-keys"));
  QVERIFY2(keys && keys->isVisible() && keys->text().startsWith(QStringLiteral("Ctrl+O  Open")) &&
               keys->text().contains(QStringLiteral("Ctrl+Shift+P")),
           keys ? qPrintable(keys->text()) : "");
  f.window().resize(1280, 800);
  QVERIFY(f.open(QStringLiteral("synthetic6")));
  const auto first = visible(f.window());
  for (const char* name : {"dock-memory", "dock-modules", "dock-values", "dock-why"})
    QVERIFY2(first.contains(QLatin1String(name)), name);
  const auto* modules = f.window().findChild<QDockWidget*>(QStringLiteral("dock-modules"));
  QVERIFY2(modules->width() > 120 && modules->width() < f.window().width() / 3,
           qPrintable(QString::number(modules->width())));
  f.window().findChild<QDockWidget*>(QStringLiteral("dock-memory"))->hide();
  const int width = modules->width();
  action(f.window(), "close")->trigger();
  QTRY_COMPARE(visible(f.window()), QStringList());
  // The layout kept meanwhile has the docks; one that is opened next to the start page stays.
  const auto kept = f.window().arrangement();
  f.window().findChild<QDockWidget*>(QStringLiteral("dock-notes"))->show();
  QVERIFY(f.open(QStringLiteral("synthetic6")));
  auto expected = first;
  expected.removeAll(QStringLiteral("dock-memory"));
  expected << QStringLiteral("dock-notes");
  expected.sort();
  QCOMPARE(visible(f.window()), expected);
  QCOMPARE(modules->width(), width);
  QVERIFY(f.window().arrange(kept));
  expected.removeAll(QStringLiteral("dock-notes"));
  QCOMPARE(visible(f.window()), expected);
  // A layout that is chosen on the start page is there at once.
  action(f.window(), "close")->trigger();
  QTRY_COMPARE(visible(f.window()), QStringList());
  action(f.window(), "reset-layout")->trigger();
  QVERIFY(!visible(f.window()).isEmpty());
}

void StartTest::theTourWatchesWhatIsDone() {
  WindowFixture f(liveEngine());
  clickOn(f.window(), "start-tour");
  QVERIFY(opened(f));
  auto& strip = panel(f.window());
  QTRY_VERIFY(strip.isVisible());
  const auto step = [&] { return strip.tour().step(); };
  QCOMPARE(step(), Tour::Step::chooseBackward);
  // What is not the aim leads no further.
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  QCOMPARE(step(), Tour::Step::chooseBackward);
  const auto op = linkedOp(f.analysis());
  f.click(TraceKind::backward, op);
  QCOMPARE(step(), Tour::Step::toOrigin);
  f.click(TraceKind::forward, f.analysis().links.forwardOf(*f.analysis().document, op));
  QCOMPARE(step(), Tour::Step::toOrigin);  // a click is not a jump
  f.click(TraceKind::backward, op);
  f.press(Qt::Key_G);
  QCOMPARE(step(), Tour::Step::andBack);
  f.press(Qt::Key_G);
  QCOMPARE(f.selection().op(), op);
  QCOMPARE(step(), Tour::Step::crossBorder);
  // It names the keys as they are now.
  auto& keymap = Keymap::of(f.window().shared().settings);
  QVERIFY(strip.title().contains(QStringLiteral("F10")));
  keymap.setPreset(KeyPreset::gdb);
  QTRY_VERIFY(strip.title().contains(QStringLiteral("Press N ")));
  keymap.setPreset(KeyPreset::retrograd);
  for (int presses = 0; step() == Tour::Step::crossBorder && presses < 50; ++presses) {
    QVERIFY(f.execution().position < f.execution().forwardSize);
    f.press(Qt::Key_F10);
    QVERIFY(f.settle());
  }
  QVERIFY(f.execution().position >= f.execution().forwardSize);
  QCOMPARE(step(), Tour::Step::whySaved);
  QVERIFY(f.window().panel<WhyDock>().isVisible());
  QVERIFY(clickSavedValue(f));
  QCOMPARE(step(), Tour::Step::stepBack);
  f.press(Qt::Key_F10);
  QVERIFY(f.settle());
  QVERIFY(!strip.tour().finished());
  f.press(Qt::Key_F10, Qt::ControlModifier | Qt::ShiftModifier);
  QVERIFY(f.settle());
  f.press(Qt::Key_F10, Qt::ControlModifier | Qt::ShiftModifier);
  QVERIFY(f.settle());
  QVERIFY(strip.tour().finished() && strip.isVisible());
  clickOn(strip, "tour-end");
  QVERIFY(!strip.isVisible());
}

void StartTest::theTourAsksWhyByKeyboard() {
  WindowFixture f(liveEngine());
  clickOn(f.window(), "start-tour");
  QVERIFY(opened(f));
  auto& strip = panel(f.window());
  QTRY_VERIFY(strip.isVisible());
  while (strip.tour().step() != Tour::Step::whySaved) clickOn(strip, "tour-skip");
  auto& forward = f.listing(TraceKind::forward);
  forward.setFocus();
  f.press(Qt::Key_Home);
  for (int i = 0; i < forward.rowCount() && strip.tour().step() == Tour::Step::whySaved; ++i) f.press(Qt::Key_Down);
  QCOMPARE(strip.tour().step(), Tour::Step::stepBack);
  const auto& document = *f.controller().document();
  QVERIFY(document.saved.contains(savedValueOf(document, f.selection().op(), {})));
}

void StartTest::theTourCanBeLeft() {
  WindowFixture f(liveEngine());
  action(f.window(), "tour")->trigger();  // as from Help
  QVERIFY(opened(f));
  auto& strip = panel(f.window());
  QTRY_VERIFY(strip.isVisible());
  clickOn(strip, "tour-skip");
  QCOMPARE(strip.tour().step(), Tour::Step::toOrigin);
  clickOn(strip, "tour-end");
  QVERIFY(!strip.isVisible());
  f.click(TraceKind::backward, linkedOp(f.analysis()));
  QVERIFY(!strip.isVisible());
  // The sample is open: it begins again at once. Closing the file ends it.
  action(f.window(), "tour")->trigger();
  QVERIFY(strip.isVisible());
  QCOMPARE(strip.tour().step(), Tour::Step::chooseBackward);
  action(f.window(), "close")->trigger();
  QTRY_VERIFY(!strip.isVisible());
  QVERIFY(!Tour::whyNot(nullptr).isEmpty());
}

void StartTest::whatIsOpenStaysOpen() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(QString::fromStdString(sourcePath("resources/samples/tiny_gpt.pt2"))));
  action(f.window(), "tour")->trigger();
  QVERIFY(!panel(f.window()).isVisible());
  MainWindow* other = nullptr;
  for (auto* widget : QApplication::topLevelWidgets())
    if (auto* window = qobject_cast<MainWindow*>(widget); window && window != &f.window()) other = window;
  QVERIFY(other);
  QTRY_VERIFY_WITH_TIMEOUT(panel(*other).isVisible(), 60000);
  QVERIFY(f.window().windowTitle().contains(QStringLiteral("tiny_gpt.pt2")));
  delete other;
}

void StartTest::theReportShowsTheOp() {
  WindowFixture f(liveEngine());
  const Versions made{QStringLiteral("1.2"), QStringLiteral("3.4"), QStringLiteral("5.6"), QStringLiteral("Some OS")};
  const auto alone = bugReport(nullptr, {}, {}, made);
  for (const auto* part : {"Retrograd 1.2", "LibTorch 3.4", "Qt 5.6", "Some OS"})
    QVERIFY(alone.contains(QLatin1String(part)));
  QVERIFY(f.open(mlp()));
  const auto& document = *f.controller().document();
  const auto fileOnly = bugReport(&document, {}, f.execution(), made);
  for (const auto* part : {"name: mlp.pt2", "seed: 0", "partition: default", "device: cpu"})
    QVERIFY2(fileOnly.contains(QLatin1String(part)), part);
  QVERIFY(!fileOnly.contains(QStringLiteral("### Op")));
  for (auto op : f.analysis().backward.ops) {
    const auto text = bugReport(&document, op, f.execution(), made);
    const auto& tables = *f.analysis().document;
    const auto& symbol = tables.symbol(op);
    QVERIFY(text.contains(toQt(symbol.qualifiedName())) && text.contains(toQt(symbol.schema)));
    QCOMPARE(text.count(QStringLiteral("- operand")), static_cast<int>(tables.operands(op).size()));
    QVERIFY(!text.contains(QFileInfo(mlp()).path()));
    if (symbol.name == "aten.mm.default")
      QVERIFY(text.contains(QStringLiteral("cpu f32[")) && text.contains(QStringLiteral("strides [")));
  }
  // Another seed and partition are named.
  auto request = document.request;
  request.drawn = true;
  request.seed = 7;
  request.partition.emplace().kind = PartitionOptions::minCut;
  f.controller().reopen(request);
  QTRY_VERIFY_WITH_TIMEOUT(!f.controller().opening() && f.controller().document()->request.seed == 7, 60000);
  const auto other = bugReport(f.controller().document().get(), {}, f.execution(), made);
  QVERIFY(other.contains(QStringLiteral("seed: 7")) && other.contains(QStringLiteral("partition: min-cut")));
}

void StartTest::theReportIsInTheListingsMenu() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(mlp()));
  f.click(TraceKind::backward, linkedOp(f.analysis()));
  QApplication::clipboard()->clear();
  bool triggered = false;
  QTimer::singleShot(300, this, [&] {
    auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
    if (!menu) return;
    for (auto* entry : menu->actions())
      if (entry->objectName() == QStringLiteral("action-copy-bug-report")) {
        entry->trigger();
        triggered = true;
      }
    menu->close();
  });
  auto* viewport = f.listing(TraceKind::backward).viewport();
  QContextMenuEvent event(QContextMenuEvent::Mouse, QPoint(60, 30), viewport->mapToGlobal(QPoint(60, 30)));
  QApplication::sendEvent(viewport, &event);
  QVERIFY(triggered);
  QVERIFY(QApplication::clipboard()->text().contains(QStringLiteral("### Op")));
  QVERIFY(QApplication::clipboard()->text().contains(versions().lines()[1]));
}

void StartTest::pictures() {
  const auto folder = qEnvironmentVariable("RETROGRAD_TEST_PICTURES");
  if (folder.isEmpty()) QSKIP("no folder for pictures");
  WindowFixture f(liveEngine());
  int number = 0;
  const auto shoot = [&](QWidget& widget, const QString& name) {
    QVERIFY(standsStill(widget));
    QVERIFY(widget.grab().save(QStringLiteral("%1/%2-%3.png").arg(folder, name).arg(number++)));
  };
  f.window().shared().settings->setValue(QStringLiteral("recent"),
                                         QStringList{mlp(), samples()[1].path, QStringLiteral("/gone/model.pt2")});
  f.window().findChild<StartPage*>()->hide();
  f.window().findChild<StartPage*>()->show();
  const std::array choices{Theme::Choice::light, Theme::Choice::dark, Theme::Choice::highContrast};
  for (auto choice : choices) {
    f.theme().choose(choice);
    shoot(f.window(), QStringLiteral("start"));
  }
  action(f.window(), "tour")->trigger();
  QVERIFY(opened(f));
  QTRY_VERIFY(panel(f.window()).isVisible());
  for (auto choice : choices) {
    f.theme().choose(choice);
    shoot(f.window(), QStringLiteral("tour"));
  }
  action(f.window(), "about")->trigger();
  shoot(*f.window().findChild<QDialog*>(QStringLiteral("about")), QStringLiteral("about"));
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::StartTest)
#include "start_test.moc"
