#include <QLabel>
#include <QListView>
#include <QTest>
#include <QToolButton>

#include "tests/support/source_path.h"
#include "tests/views/run_ahead.h"
#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/docks/findings_dock.h"
#include "views/memory/recorded_memory_dock.h"
#include "views/window/verdict_bar.h"

namespace retrograd::views {

/// The one line that says what is known of a file, and the layouts that kinds of files have for themselves.
class VerdictBarTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void W42_aNaNIsSaidBeforeAnyoneAsks();
  void W42_whatIsGoodSaysWhatWasJudged();
  void W42_whatWasNotJudgedHasItsAction();
  void W42_aStepIsJudgedAsOnTheCommandLine();
  void W42_aLeakIsSaidOfASnapshotAlone();
  void W41_eachKindOfFileHasItsLayout();
};

namespace {

QString fileOf(const char* path) { return QString::fromStdString(sourcePath(path)); }
VerdictBar& bar(WindowFixture& f) { return *f.window().findChild<VerdictBar*>(); }

void clickOn(WindowFixture& f, const char* name) {
  auto* button = f.window().findChild<QAbstractButton*>(QLatin1String(name));
  QVERIFY(button && button->isVisible() && button->isEnabled());
  QTest::mouseClick(button, Qt::LeftButton);
}

QStringList inFront(WindowFixture& f) {
  QStringList names;
  for (const auto* dock : f.window().docks())
    if (!dock->visibleRegion().isEmpty()) names << dock->objectName();
  return names;
}

}  // namespace

void VerdictBarTest::W42_aNaNIsSaidBeforeAnyoneAsks() {
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  f.window().resize(1280, 800);
  QVERIFY(bar(f).isVisible());
  QCOMPARE(bar(f).sentence(), QStringLiteral("No file is open"));
  QVERIFY(f.open(fileOf("resources/samples/twins.pt2")));
  QVERIFY(allKnown(f));
  QTRY_VERIFY2_WITH_TIMEOUT(bar(f).sentence().contains(QStringLiteral("0 / 0")), qPrintable(bar(f).sentence()), 20000);
  QCOMPARE(bar(f).line().light, Light::fault);
  QVERIFY2(bar(f).place().startsWith(QStringLiteral("twins.py:")), qPrintable(bar(f).place()));
  QVERIFY(bar(f).width() > f.window().width() - 20);
  QVERIFY(bar(f).height() < 2 * f.window().fontMetrics().height() + 8);
  f.picture(QStringLiteral("W42-nan"));
  // One click leads there, another goes on with its action.
  f.selection().select(f.analysis().forward.ops[0]);
  clickOn(f, "verdict-sentence");
  QCOMPARE(f.selection().op(), bar(f).line().claim->op);
  clickOn(f, "verdict-action");
  const auto* root = f.window().findChild<QLabel*>(QStringLiteral("findings-root"));
  QTRY_VERIFY_WITH_TIMEOUT(root->isVisible() && root->text().contains(QStringLiteral("0 / 0")), 20000);
}

void VerdictBarTest::W42_whatIsGoodSaysWhatWasJudged() {
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  QVERIFY(f.open(fileOf("resources/samples/mlp.pt2")));
  QVERIFY(allKnown(f));
  QTRY_COMPARE(bar(f).line().light, Light::good);
  const auto ops = QStringLiteral("%1 ops whose results are finite").arg(numbers(f).size());
  QVERIFY2(bar(f).sentence().contains(ops), qPrintable(bar(f).sentence()));
  QVERIFY2(bar(f).sentence().contains(QStringLiteral("parameters with a gradient")), qPrintable(bar(f).sentence()));
  QVERIFY(bar(f).accessibleDescription().startsWith(QStringLiteral("Good")));
}

void VerdictBarTest::W42_whatWasNotJudgedHasItsAction() {
  WindowFixture f(liveEngine());
  f.controller().ahead().setRunsOnOpen(false);
  QVERIFY(f.open(fileOf("resources/samples/mlp.pt2")));
  QTRY_VERIFY2(bar(f).sentence().contains(QStringLiteral("the run: it was not looked at yet")),
               qPrintable(bar(f).sentence()));
  QCOMPARE(bar(f).line().light, Light::unknown);
  const auto* action = f.window().findChild<QToolButton*>(QStringLiteral("verdict-action"));
  QCOMPARE(action->text(), QStringLiteral("Check the Run"));
  clickOn(f, "verdict-action");
  QTRY_COMPARE(f.window().panel<FindingsDock>().summary(), QStringLiteral("Every value of the run is finite"));
}

void VerdictBarTest::W42_aStepIsJudgedAsOnTheCommandLine() {
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  QVERIFY(f.open(fileOf("tests/data/recordings/step")));
  QVERIFY(allKnown(f));
  // The hook that doubles a gradient.
  QTRY_COMPARE_WITH_TIMEOUT(bar(f).line().light, Light::suspicion, 30000);
  QVERIFY2(bar(f).sentence().startsWith(QStringLiteral("hook `<lambda>`: 2 times")), qPrintable(bar(f).sentence()));
  QVERIFY2(bar(f).place().startsWith(QStringLiteral("train.py:")), qPrintable(bar(f).place()));
  // Check is the whole check, and a second opinion is not refused.
  auto* opinion = f.window().findChild<QAction*>(QStringLiteral("action-second-opinion"));
  QVERIFY2(opinion->isEnabled(), qPrintable(opinion->statusTip()));
  opinion->trigger();
  QTRY_VERIFY2_WITH_TIMEOUT(f.window().panel<FindingsDock>().summary().startsWith(QStringLiteral("The step is right")),
                            qPrintable(f.window().panel<FindingsDock>().summary()), 30000);
}

void VerdictBarTest::W42_aLeakIsSaidOfASnapshotAlone() {
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  f.window().openFile(fileOf("tests/data/memory/leak.pickle.xz"));
  QTRY_COMPARE_WITH_TIMEOUT(bar(f).line().light, Light::suspicion, 60000);
  QVERIFY(bar(f).line().claim);
  QCOMPARE(bar(f).line().claim->kind, std::string("leak"));
  QVERIFY(!f.window().panel<RecordedMemoryDock>().visibleRegion().isEmpty());
  f.picture(QStringLiteral("W42-leak"));
}

void VerdictBarTest::W41_eachKindOfFileHasItsLayout() {
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  f.window().resize(1600, 1000);
  QVERIFY(f.open(fileOf("resources/samples/mlp.pt2")));
  QVERIFY(f.quiet());
  QVERIFY(inFront(f).contains(QStringLiteral("dock-memory")));
  f.window().findChild<QDockWidget*>(QStringLiteral("dock-modules"))->hide();
  const auto ofModel = inFront(f);
  QVERIFY(f.open(fileOf("tests/data/recordings/step")));
  for (const char* name : {"dock-values", "dock-findings", "dock-modules"})
    QTRY_VERIFY2(inFront(f).contains(QLatin1String(name)), name);
  f.picture(QStringLiteral("W41-step"));
  QVERIFY(f.open(fileOf("resources/samples/layers/trace")));
  QTRY_VERIFY(inFront(f).contains(QStringLiteral("dock-job")));
  f.picture(QStringLiteral("W41-job"));
  QVERIFY(f.open(fileOf("resources/samples/mlp.pt2")));
  QTRY_COMPARE(inFront(f), ofModel);
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::VerdictBarTest)
#include "verdict_bar_test.moc"
