#include <QComboBox>
#include <QLineEdit>
#include <QStandardItemModel>
#include <QTest>
#include <QTreeView>

#include "core/derivation/gradient_of.h"
#include "tests/views/panels.h"
#include "tests/views/test_program.h"
#include "views/docks/checks_dock.h"
#include "views/docks/compare_dock.h"
#include "views/models/compare_model.h"

namespace retrograd::views {

/// Checks of gradients, and two runs compared; with real mouse and key events.
class ChecksTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void gradientOfTheSelectedOpIsChecked();
  void gradientOfARangeIsChecked();
  void termsOfAGradientAreListed();
  void runsDivergeInATable();
  void comparingShowsWhatIsMissingAndIsCancelled();
  void comparingAsksForAllThatTheCommandLineDoes();
};

void ChecksTest::gradientOfTheSelectedOpIsChecked() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  QVERIFY(f.window().actions().checkGradient->isEnabled());
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  f.press(Qt::Key_G, Qt::ControlModifier | Qt::ShiftModifier);
  QVERIFY(QTest::qWaitFor([&] { return f.window().panel<ChecksDock>().summary().contains(QStringLiteral("is right")); },
                          5000));
  QVERIFY(f.window().findChild<QTreeView*>(QStringLiteral("checks"))->isVisible());
  QVERIFY(linesOf(f, "checks").join(QLatin1Char('\n')).contains(QStringLiteral("finite differences: \u2713 1e-09")));
  auto* tree = f.window().findChild<QTreeView*>(QStringLiteral("checks"));
  tree->setFocus();
  tree->setCurrentIndex(tree->model()->index(0, 0));
  f.press(Qt::Key_Return);
  // The computation is hidden: an open listing has what the op became.
  QCOMPARE(f.selection().op(), f.analysis().links.derived(f.analysis().computation().trace.ops[0]).front());
}

void ChecksTest::gradientOfARangeIsChecked() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  front(f, "dock-checks");
  auto* line = f.window().findChild<QLineEdit*>(QStringLiteral("checks-range"));
  line->setFocus();
  QTest::keyClicks(line, QStringLiteral("all"));
  QTest::keyClick(line, Qt::Key_Return);
  QVERIFY(QTest::qWaitFor([&] { return f.window().panel<ChecksDock>().summary().contains(QStringLiteral("WRONG")); },
                          5000));
  QVERIFY(f.window().panel<ChecksDock>().summary().contains(QStringLiteral("(6 ops)")));
  line->setText(QStringLiteral("module nowhere"));
  QTest::keyClick(line, Qt::Key_Return);
  QVERIFY(QTest::qWaitFor(
      [&] {
        return f.window().panel<ChecksDock>().summary().contains(
            QStringLiteral("the model has no module of this path"));
      },
      5000));
}

void ChecksTest::termsOfAGradientAreListed() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  const auto linear = f.analysis().computation().trace.ops[0];
  f.selection().select(linear, f.analysis().document->operands(linear)[1]);
  f.window().actions().terms->trigger();
  QVERIFY(QTest::qWaitFor(
      [&] { return f.window().panel<ChecksDock>().summary().contains(QStringLiteral("the sum of 1 term")); }, 5000));
  QVERIFY(waitForLine(f, "checks", QStringLiteral("norm")));
  f.selection().select(linear, f.analysis().document->operands(linear)[0]);
  f.window().actions().terms->trigger();
  QVERIFY(QTest::qWaitFor(
      [&] { return f.window().panel<ChecksDock>().summary().contains(QStringLiteral("has no gradient")); }, 5000));
}

void ChecksTest::runsDivergeInATable() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_D, Qt::ControlModifier | Qt::ShiftModifier);
  QVERIFY(QTest::qWaitFor(
      [&] { return f.window().panel<CompareDock>().summary().contains(QStringLiteral("diverge at")); }, 5000));
  auto* table = f.window().findChild<QTreeView*>(QStringLiteral("compare"));
  QVERIFY(table->isVisible());
  QCOMPARE(table->model()->rowCount(), static_cast<int>(f.analysis().joint.ops.size()));
  QCOMPARE(table->currentIndex().row(), 5);
  QVERIFY(table->model()->index(5, CompareModel::value).data().toString().startsWith(QStringLiteral("\u25c6")));
  QCOMPARE(table->model()->index(5, CompareModel::relative).data().toString(), QStringLiteral("0.25"));
  table->setFocus();
  f.press(Qt::Key_Return);
  QCOMPARE(f.selection().op(), f.analysis().joint.ops[5]);
  f.controller().reload();
  QVERIFY(QTest::qWaitFor([&] { return table->model()->rowCount() == 0; }, 5000));
}

void ChecksTest::comparingShowsWhatIsMissingAndIsCancelled() {
  auto engine = std::make_shared<FakeEngine>();
  engine->opTime = std::chrono::milliseconds(20);
  WindowFixture f(engine);
  QVERIFY(f.open(QStringLiteral("synthetic30")));
  front(f, "dock-compare");
  const auto field = [&](const char* name) { return f.window().findChild<QLineEdit*>(QLatin1String(name)); };
  field("compare-seed")->setText(QStringLiteral("tomorrow"));
  f.window().actions().compare->trigger();
  QVERIFY(f.window().panel<CompareDock>().summary().contains(QStringLiteral("'tomorrow' is not a seed")));
  field("compare-seed")->setText(QStringLiteral("7"));
  field("compare-tolerance")->setText(QStringLiteral("small"));
  f.window().actions().compare->trigger();
  QVERIFY(f.window().panel<CompareDock>().summary().contains(QStringLiteral("'small' is not a tolerance")));
  field("compare-tolerance")->clear();
  f.window().actions().compare->trigger();
  QVERIFY(QTest::qWaitFor([&] { return f.controller().questions().asking(); }, 5000));
  f.press(Qt::Key_F5, Qt::ShiftModifier);
  QVERIFY(
      QTest::qWaitFor([&] { return f.window().panel<CompareDock>().summary() == QStringLiteral("Cancelled"); }, 5000));
  field("compare-file")->setText(QStringLiteral("/no/such/model.pt2"));
  f.window().actions().compare->trigger();
  QVERIFY(QTest::qWaitFor(
      [&] { return f.window().panel<CompareDock>().summary().contains(QStringLiteral("no such file")); }, 5000));
}

void ChecksTest::comparingAsksForAllThatTheCommandLineDoes() {
  auto engine = std::make_shared<FakeEngine>();
  engine->deviceList = {{Device(), true, {}, {}},
                        {deviceFromString("cuda:0"), false, {}, "no driver"},
                        {deviceFromString("cuda:1"), true, "A Good One", {}}};
  WindowFixture f(engine);
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  front(f, "dock-compare");
  auto* devices = f.window().findChild<QComboBox*>(QStringLiteral("compare-device"));
  QVERIFY(QTest::qWaitFor([&] { return devices->count() == 4; }, 5000));
  QCOMPARE(devices->itemText(0), QStringLiteral("As here (cpu)"));
  const auto* items = qobject_cast<QStandardItemModel*>(devices->model());
  QVERIFY(!items->item(2)->isEnabled());
  QCOMPARE(items->item(2)->toolTip(), QStringLiteral("no driver"));
  devices->setCurrentIndex(3);
  auto* precisions = f.window().findChild<QComboBox*>(QStringLiteral("compare-precision"));
  QCOMPARE(precisions->itemText(0), QStringLiteral("As here (float32)"));
  const auto* tolerance = f.window().findChild<QLineEdit*>(QStringLiteral("compare-tolerance"));
  QCOMPARE(tolerance->placeholderText(), QStringLiteral("0.0001"));
  precisions->setCurrentText(QStringLiteral("bfloat16"));
  QCOMPARE(tolerance->placeholderText(), QStringLiteral("0.05"));
  f.window().findChild<QLineEdit*>(QStringLiteral("compare-seed"))->setText(QStringLiteral("7"));
  f.window()
      .findChild<QLineEdit*>(QStringLiteral("compare-weights"))
      ->setText(QStringLiteral("/somewhere/w.safetensors"));
  f.window().actions().compare->trigger();
  QVERIFY(QTest::qWaitFor(
      [&] { return f.window().panel<CompareDock>().summary().contains(QStringLiteral("diverge at")); }, 5000));
  QVERIFY2(
      f.window().panel<CompareDock>().summary().contains(QStringLiteral("bfloat16, cuda:1, seed 7, w.safetensors")),
      qPrintable(f.window().panel<CompareDock>().summary()));
  QCOMPARE(engine->compared.size(), std::size_t(1));
  const auto& other = engine->compared[0];
  QVERIFY(other.precision == DType::bf16);
  QVERIFY(other.device == deviceFromString("cuda:1"));
  QVERIFY(other.seed == std::uint64_t(7));
  QCOMPARE(other.weights, std::string("/somewhere/w.safetensors"));
  QVERIFY(other.path.empty());
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::ChecksTest)
#include "checks_test.moc"
