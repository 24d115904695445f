#include <QAbstractItemModelTester>
#include <QTest>
#include <QTreeView>

#include "core/derivation/gradient_of.h"
#include "tests/views/stages_fixture.h"
#include "tests/views/test_program.h"
#include "views/docks/stage_check_dock.h"

namespace retrograd::views {

/// Stages and the whole model: the report of the check, that it is cancelled, and that it goes with its cuts; over a
/// hand-made engine.
class StageCheckTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void stagesAreChecked();
  void aCheckIsCancelledAndFails();
  void whatWasCheckedGoesWithItsCuts();
};

namespace {

StageCheckDock& checks(WindowFixture& f) { return *find<StageCheckDock>(f, "stage-check"); }
bool checked(WindowFixture& f) {
  return QTest::qWaitFor([&] { return !checks(f).checking(); }, 10000);
}

}  // namespace

void StageCheckTest::stagesAreChecked() {
  const auto engine = std::make_shared<StagesEngine>();
  const auto f = opened("synthetic:4", engine);
  QVERIFY(f);
  auto* check = action(*f, "action-check-stages");
  QVERIFY(!check->isEnabled());
  QVERIFY2(check->toolTip().contains(QStringLiteral("not cut")), qPrintable(check->toolTip()));
  QVERIFY(ask(*f, equal(2)));
  QVERIFY(check->isEnabled());
  auto* table = find<QTreeView>(*f, "stage-check-table");
  QAbstractItemModelTester tester(table->model(), QAbstractItemModelTester::FailureReportingMode::QtTest);
  check->trigger();
  QVERIFY(checked(*f));
  QVERIFY2(checks(*f).summary().startsWith(QStringLiteral("\u2717 grad.p.")), qPrintable(checks(*f).summary()));
  QCOMPARE(table->model()->rowCount(), 3);
  // What differs comes first.
  std::vector<ValueId> parameters;
  for (const auto& spec : f->analysis().computation().inputs)
    if (spec.kind == InputKind::parameter) parameters.push_back(spec.value);
  const auto text = [&](int row, int column) { return table->model()->index(row, column).data().toString(); };
  QVERIFY(text(0, StageCheckModel::verdict).contains(QStringLiteral("the stages give none")));
  QCOMPARE(text(1, StageCheckModel::difference), QStringLiteral("1.00e-07"));
  QCOMPARE(text(1, StageCheckModel::verdict), QStringLiteral("\u2713 equal, within the tolerance"));
  QCOMPARE(text(2, StageCheckModel::verdict), QStringLiteral("\u2713 equal, bit for bit"));
  f->picture(QStringLiteral("stage-check"));
  table->setCurrentIndex(table->model()->index(0, 0));
  table->setFocus();
  QTest::keyClick(table, Qt::Key_Return);
  const auto producer = f->analysis().document->value(gradientOf(f->analysis(), parameters.at(2))).producer;
  QVERIFY(producer);
  QCOMPARE(f->selection().op().index, producer.index);
  engine->fake.wrong = false;
  check->trigger();
  QVERIFY(checked(*f));
  QVERIFY2(checks(*f).summary().startsWith(QStringLiteral("\u2713 2 stages give what the whole model gives: 2 of 3")),
           qPrintable(checks(*f).summary()));
}

void StageCheckTest::aCheckIsCancelledAndFails() {
  const auto engine = std::make_shared<StagesEngine>();
  const auto f = opened("synthetic:4", engine);
  QVERIFY(f);
  QVERIFY(ask(*f, equal(2)));
  auto* stop = action(*f, "action-cancel-check-stages");
  QVERIFY(!stop->isEnabled());
  engine->fake.blocks = true;
  action(*f, "action-check-stages")->trigger();
  QVERIFY(checks(*f).checking());
  QVERIFY(stop->isEnabled());
  stop->trigger();
  QVERIFY(checked(*f));
  QCOMPARE(checks(*f).summary(), QStringLiteral("Cancelled."));
  engine->fake.blocks = false;
  engine->fake.fails = true;
  action(*f, "action-check-stages")->trigger();
  QVERIFY(checked(*f));
  QCOMPARE(checks(*f).summary(), QStringLiteral("! aten.mm: out of memory"));
}

void StageCheckTest::whatWasCheckedGoesWithItsCuts() {
  const auto f = opened();
  QVERIFY(f);
  QVERIFY(ask(*f, equal(2)));
  action(*f, "action-check-stages")->trigger();
  QVERIFY(checked(*f));
  plan(*f).measure();  // the cuts stay
  QVERIFY(settled(*f));
  QCOMPARE(find<QTreeView>(*f, "stage-check-table")->model()->rowCount(), 3);
  QVERIFY(ask(*f, equal(3)));
  QCOMPARE(find<QTreeView>(*f, "stage-check-table")->model()->rowCount(), 0);
  QVERIFY(checks(*f).summary().contains(QStringLiteral("check again")));
  action(*f, "action-check-stages")->trigger();
  QVERIFY(checked(*f));
  plan(*f).shareAll(MultiUse::transmit);  // the same cuts, other stages
  QVERIFY(settled(*f));
  QCOMPARE(find<QTreeView>(*f, "stage-check-table")->model()->rowCount(), 0);
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::StageCheckTest)
#include "stage_check_test.moc"
