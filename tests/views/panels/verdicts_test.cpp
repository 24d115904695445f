// What the window says of values, sources and gradients that reports of real jobs showed wrong.
#include <QLabel>
#include <QMouseEvent>
#include <QPlainTextEdit>
#include <QTest>
#include <QTreeView>

#include "tests/support/source_path.h"
#include "tests/views/panels.h"
#include "tests/views/test_program.h"
#include "views/docks/checks_dock.h"
#include "views/docks/inspector_dock.h"
#include "views/docks/source_dock.h"
#include "views/docks/values_dock.h"
#include "views/widgets/shown_op.h"

namespace retrograd::views {

class VerdictsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void checksNeverSayRightOfALostBackward();
  void aClickElsewhereClosesTheWholeText();
  void valuesAndSourceSayWhichOpTheyShow();
  void valuesNameThePlacesOfNaN();
};

namespace {

QString fileOf(const char* path) { return QString::fromStdString(sourcePath(path)); }

BoundSymbolId opNamed(const Analysis& analysis, const Trace& trace, const std::string& name) {
  for (auto op : trace.ops)
    if (analysis.document->opName(op).find(name) != std::string::npos) return op;
  return {};
}

}  // namespace

void VerdictsTest::checksNeverSayRightOfALostBackward() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(fileOf("tests/data/reports/captured/step/model.pt2")));
  const auto clip = opNamed(f.analysis(), f.analysis().forward, "aten.round");
  QVERIFY(clip);
  front(f, "dock-checks");
  f.selection().select(clip);
  f.window().actions().checkGradient->trigger();
  const auto summary = [&] { return f.window().panel<ChecksDock>().summary(); };
  QVERIFY(f.settle());
  QTRY_VERIFY2_WITH_TIMEOUT(summary().contains(QStringLiteral("Clip")), qPrintable(summary()), 5000);
  QVERIFY2(!summary().contains(QStringLiteral("right")), qPrintable(summary()));
  QVERIFY(linesOf(f, "checks").join(QLatin1Char('\n')).contains(QStringLiteral("backward not in the file")));
}

void VerdictsTest::aClickElsewhereClosesTheWholeText() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  front(f, "dock-why");
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  auto& tree = *f.window().findChild<QTreeView*>(QStringLiteral("inspector"));
  const auto schema = rowWith(*tree.model(), QStringLiteral("schema"));
  QVERIFY(schema.isValid());
  tree.scrollTo(schema);
  const auto at = tree.visualRect(schema).center();
  QTest::mouseClick(tree.viewport(), Qt::LeftButton, {}, at);
  QTest::mouseDClick(tree.viewport(), Qt::LeftButton, {}, at);
  QPointer<QPlainTextEdit> popup = f.window().findChild<QPlainTextEdit*>(QStringLiteral("whole-text"));
  QVERIFY(popup && popup->isVisible());
  // A press inside selects text; one outside is delivered to the popup, which closes.
  const auto press = [&](const QPointF& local) {
    QMouseEvent event(QEvent::MouseButtonPress, local, popup->mapToGlobal(local), Qt::LeftButton, Qt::LeftButton, {});
    QCoreApplication::sendEvent(popup, &event);
  };
  press({5, 5});
  QVERIFY(popup && popup->isVisible());
  press({-40, -40});
  QTRY_VERIFY(!popup || !popup->isVisible());
}

void VerdictsTest::valuesAndSourceSayWhichOpTheyShow() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  const auto& ops = f.analysis().forward.ops;
  f.selection().select(ops[0]);
  for (int step = 0; step < 3; ++step) {
    f.window().actions().stepInto->trigger();
    QVERIFY(f.settle());
    f.selection().select(ops[0]);
  }
  const auto now = f.execution().current;
  QVERIFY(now && now != ops[0]);
  for (const char* name : {"values", "source"}) {
    auto* dock = f.raise((QStringLiteral("dock-") + QLatin1String(name)).toLatin1().constData());
    auto* line = dock->findChild<ShownOp*>(QStringLiteral("shown-op"));
    QVERIFY(line && line->isVisible());
    QVERIFY2(line->text().contains(QStringLiteral("#%1 ").arg(ops[0].index)), qPrintable(line->text()));
    QVERIFY2(line->text().contains(QStringLiteral("#%1 ").arg(now.index)), qPrintable(line->text()));
    QVERIFY2(line->text().contains(QStringLiteral("Ctrl+E")), qPrintable(line->text()));
    f.window().actions().toExecution->trigger();
    QCOMPARE(f.selection().op(), now);
    QVERIFY(!line->isVisible());
    f.selection().select(ops[0]);
  }
}

void VerdictsTest::valuesNameThePlacesOfNaN() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(fileOf("tests/data/planted/log_of_zero.txt")));
  front(f, "dock-values");
  const auto log = opNamed(f.analysis(), f.analysis().forward, "aten.log");
  QVERIFY(log);
  f.selection().select(log);
  auto* places = f.window().panel<ValuesDock>().findChild<QLabel*>(QStringLiteral("value-bad-places"));
  QVERIFY(places);
  QTRY_VERIFY_WITH_TIMEOUT(places->text().startsWith(QStringLiteral("-inf at [0, 0], [0, 1]")), 30000);
  QVERIFY(places->isVisible());
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::VerdictsTest)
#include "verdicts_test.moc"
