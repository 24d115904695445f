#include <QTest>
#include <QTreeView>

#include "core/formats/recording/recording.h"
#include "tests/support/source_path.h"
#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/models/tree_model.h"
#include "views/text/line_text.h"

namespace retrograd::views {

/// The real window over a recorded training step.
class RecordingTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void C10_phasesAreHeadingsOfTheListings();
  void C10_aBackwardOpLeadsToItsForwardOp();
  void C11_stepsThroughTheWholeStepAndBack();
  void W43_theOptimizerIsListedByParameter();
};

namespace {

QString recording() { return QString::fromStdString(sourcePath("tests/data/recordings/step")); }

QStringList headings(const Outline& outline, const Document& document) {
  QStringList found;
  for (std::int32_t row = 0; row < outline.rows(); ++row)
    if (outline.isHeader(row) && outline.header(row).section)
      found << lineOfHeader(document, outline.header(row)).text.section(QStringLiteral("  "), 0, 0);
  return found;
}

}  // namespace

void RecordingTest::C10_phasesAreHeadingsOfTheListings() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(recording()));
  QVERIFY2(f.analysis().derived(), qPrintable(f.window().messages().text()));
  const auto& document = *f.analysis().document;
  for (const auto grouping : {Grouping::operation, Grouping::module, Grouping::none}) {
    const auto joint = indexTrace(f.controller().document()->analysis, TraceKind::joint);
    const auto all = headings(joint->outline(grouping), document);
    for (const auto* title :
         {"step 0, forward", "step 0, loss", "step 0, backward", "step 0, optimizer", "step 1, forward"})
      QVERIFY2(all.contains(QLatin1String(title)), title);
  }
  const auto forward = indexTrace(f.controller().document()->analysis, TraceKind::forward);
  QVERIFY(!headings(forward->outline(Grouping::operation), document).join(u',').contains(u"backward"));
}

void RecordingTest::C10_aBackwardOpLeadsToItsForwardOp() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(recording()));
  const auto& analysis = f.analysis();
  BoundSymbolId linked;
  for (const auto op : analysis.backward.ops)
    if (analysis.document->boundSymbol(op).origin.role == Role::gradient &&
        analysis.links.forwardOf(*analysis.document, op)) {
      linked = op;
      break;
    }
  QVERIFY(linked);
  f.click(TraceKind::backward, linked);
  QCOMPARE(f.selection().op(), linked);
  f.press(Qt::Key_G);
  QCOMPARE(f.selection().op(), analysis.links.forwardOf(*analysis.document, linked));
  f.press(Qt::Key_G);
  QCOMPARE(f.selection().op(), linked);
}

// W43: value, gradient, what is kept, update and ops of each parameter; none of it in Backward.
void RecordingTest::W43_theOptimizerIsListedByParameter() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(recording()));
  const auto& recorded = *f.analysis().file.recording;
  int ops = 0;
  for (auto op : f.analysis().joint.ops)
    if (recorded.op(op).phase == Phase::optimizer) {
      ++ops;
      QCOMPARE(f.listing(TraceKind::backward).rowOf(op), -1);
      QVERIFY(f.listing(TraceKind::joint).rowOf(op) >= 0);
    }
  QVERIFY(ops > 0);
  f.raise("dock-optimizer");
  auto& tree = *f.window().findChild<QTreeView*>(QStringLiteral("optimizer"));
  const auto* model = tree.model();
  QTRY_VERIFY(model->rowCount() >= static_cast<int>(recorded.optimized.size()));
  QVERIFY(f.quiet());
  for (int row = 0; row < static_cast<int>(recorded.optimized.size()); ++row) {
    const auto parameter = model->index(row, 0);
    QCOMPARE(parameter.data().toString().toStdString(), recorded.optimized[row]);
    QStringList rows;
    for (int i = 0; i < model->rowCount(parameter); ++i) rows << model->index(i, 0, parameter).data().toString();
    for (const auto* wanted : {"value", "gradient", "update", "ops"})
      QVERIFY2(rows.contains(QLatin1String(wanted)), qPrintable(rows.join(QLatin1Char(' '))));
    QVERIFY2(parameter.siblingAtColumn(1).data().toString().startsWith(QStringLiteral("update: norm ")),
             qPrintable(parameter.siblingAtColumn(1).data().toString()));
    QVERIFY(!tree.isExpanded(parameter));
  }
  const auto gradient = model->index(1, 0, model->index(0, 0));
  tree.expand(model->index(0, 0));
  QTest::mouseClick(tree.viewport(), Qt::LeftButton, Qt::NoModifier, tree.visualRect(gradient).center());
  QCOMPARE(f.selection().op().index, gradient.data(opRole).toInt());
  f.picture(QStringLiteral("W43-optimizer"));
}

void RecordingTest::C11_stepsThroughTheWholeStepAndBack() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(recording()));
  QVERIFY2(f.execution().available, qPrintable(f.execution().unavailableReason));
  const auto size = f.analysis().joint.ops.size();
  f.press(Qt::Key_F5);
  QVERIFY(f.settle());
  QCOMPARE(std::size_t(f.execution().position), size);
  f.press(Qt::Key_F11, Qt::ControlModifier | Qt::ShiftModifier);
  QVERIFY(f.settle());
  QCOMPARE(std::size_t(f.execution().position), size - 1);
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::RecordingTest)
#include "recording_test.moc"
