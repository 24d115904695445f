#include <QApplication>
#include <QCheckBox>
#include <QHeaderView>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPointer>
#include <QPushButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTest>
#include <QTreeView>
#include <array>

#include "tests/views/panels.h"
#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/canvases/diff_view.h"
#include "views/docks/inspector_dock.h"
#include "views/docks/references_dock.h"
#include "views/docks/values_dock.h"
#include "views/docks/why_dock.h"
#include "views/numbers/gradient_flow_dock.h"
#include "views/window/diff_window.h"

namespace retrograd::views {

/// The contract of panels (views/docks/panel.h): in sight or not, what they may write, what stays while one steps, what
/// is kept.
class PanelTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void whatIsBehindATabAsksNothing();
  void whatWasMissedIsShownOnceInSight();
  void clickingALineSelectsNoValue();
  void theReferencesOfAnOpListItsOperands();
  void aRowThatAPersonChoosesIsSelected();
  void enterAfterRecomputeAdoptsNothing();
  void theOverviewActivatesNoRow();
  void sliceBoxAndColumnsStayWhileOneSteps();
  void wholeTextsAreInTooltipAndByEnter();
  void collapsedSectionsStayCollapsed();
  void emptyPanelsSayWhy();
  void aListThatIsAboutToBeFilledIsNotCalledEmpty();
  void nothingOfAClosedDocumentStays();
  void whatIsArrangedIsKept();
};

namespace {

QTreeView& tree(WindowFixture& f, const char* name) { return *f.window().findChild<QTreeView*>(QLatin1String(name)); }

/// Every question to the worker from now on, by tag.
class Asked {
 public:
  explicit Asked(WindowFixture& f) : answered_(&f.controller().questions(), &Questions::valuesReady) {
    QObject::connect(&f.controller().worker(), &Worker::started, &here_,
                     [this](QObject*, const QString& tag) { tags_ << tag; });
  }
  int of(const char* panel) const {
    return static_cast<int>(tags_.filter(QLatin1String(panel) + QLatin1Char('/')).size());
  }
  /// Until the panel Values, which is in sight, has an answer: it waits as long as others do before it asks.
  bool untilValues() {
    answered_.clear();
    return QTest::qWaitFor([&] { return !answered_.isEmpty(); });
  }

 private:
  QObject here_;
  QStringList tags_;
  QSignalSpy answered_;
};

/// Why is behind the tab of Memory.
void behind(WindowFixture& f) {
  auto* memory = f.window().findChild<QDockWidget*>(QStringLiteral("dock-memory"));
  f.window().tabifyDockWidget(memory, f.window().findChild<QDockWidget*>(QStringLiteral("dock-why")));
  front(f, "dock-memory");
}

}  // namespace

// For Qt, a dock behind a tab is visible. It does not work, all the same.
void PanelTest::whatIsBehindATabAsksNothing() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  behind(f);
  auto& why = f.window().panel<WhyDock>();
  QVERIFY(why.isVisible() && !why.inSight() && !f.window().panel<InspectorDock>().inSight());
  Asked questions(f);
  for (int i : {1, 2, 4}) {
    f.click(TraceKind::forward, f.analysis().forward.ops[static_cast<std::size_t>(i)]);
    QVERIFY(questions.untilValues());
  }
  QCOMPARE(questions.of("why"), 0);
  QCOMPARE(tree(f, "why").model()->rowCount(), 0);
  QCOMPARE(tree(f, "references").model()->rowCount(), 0);
}

void PanelTest::whatWasMissedIsShownOnceInSight() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  behind(f);
  Asked questions(f);
  for (int i : {1, 4, 2}) f.click(TraceKind::forward, f.analysis().forward.ops[static_cast<std::size_t>(i)]);
  QVERIFY(questions.untilValues());
  front(f, "dock-why");
  QVERIFY(f.window().panel<WhyDock>().inSight() && f.window().panel<InspectorDock>().inSight());
  QTRY_VERIFY(tree(f, "why").model()->rowCount() > 0);
  QCOMPARE(questions.of("why"), 1);  // for the last of the three alone
}

// A panel that observes the selection does not write it.
void PanelTest::clickingALineSelectsNoValue() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  QVERIFY(f.window().panel<ValuesDock>().inSight());
  Asked questions(f);
  const auto op = f.analysis().forward.ops[1];
  f.click(TraceKind::forward, op);
  QVERIFY(questions.untilValues());
  QCOMPARE(f.selection().op(), op);
  QVERIFY(!f.selection().value().valid());
  // The op's result is the current row, and the one that commands are for.
  const auto made = outputOf(f.analysis(), op);
  QCOMPARE(tree(f, "values").currentIndex().data(valueRole).toInt(), made.index);
  f.window().actions().watch->trigger();
  QCOMPARE(f.window().context().execution->watches(), std::vector<ValueId>{made});
}

// It is the op that is selected, so its operands are listed too.
void PanelTest::theReferencesOfAnOpListItsOperands() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  front(f, "dock-references");
  const auto op = f.analysis().forward.ops[1];
  f.click(TraceKind::forward, op);
  const auto& document = *f.analysis().document;
  const auto values = document.outputs(op).size() + document.operands(op).size();
  QVERIFY(values > 1);
  QTRY_COMPARE(tree(f, "references").model()->rowCount(), static_cast<int>(values));
}

void PanelTest::aRowThatAPersonChoosesIsSelected() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  auto& values = tree(f, "values");
  QTRY_VERIFY(values.model()->rowCount() > 1);
  const auto row = values.model()->index(0, 0);
  QTest::mouseClick(values.viewport(), Qt::LeftButton, Qt::NoModifier, values.visualRect(row).center());
  QCOMPARE(f.selection().value().index, row.data(valueRole).toInt());
  QTest::keyClick(&values, Qt::Key_Down);
  QCOMPARE(f.selection().value().index, values.model()->index(1, 0).data(valueRole).toInt());
}

// Enter after Recompute restarts no run.
void PanelTest::enterAfterRecomputeAdoptsNothing() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  f.click(TraceKind::forward, f.analysis().forward.ops[2]);
  f.press(Qt::Key_R, Qt::ControlModifier | Qt::ShiftModifier);
  auto& why = f.window().panel<WhyDock>();
  QTRY_VERIFY(!why.verdict().isEmpty());
  const auto document = f.controller().document();
  f.press(Qt::Key_Return);
  QVERIFY(!f.controller().opening());
  QVERIFY(f.controller().document() == document);
  QVERIFY(!why.verdict().isEmpty());
  // By keyboard it is adopted from the button, one Tab further.
  f.press(Qt::Key_Tab);
  QCOMPARE(QApplication::focusWidget(),
           static_cast<QWidget*>(f.window().findChild<QPushButton*>(QStringLiteral("what-if-adopt"))));
  f.press(Qt::Key_Return);
  QTRY_VERIFY(f.controller().document() != document);
}

// A double click into the overview of Compare Traces scrolls, and leads nowhere.
void PanelTest::theOverviewActivatesNoRow() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  auto* comparison = f.window().findChild<DiffWindow*>();
  comparison->resize(900, 500);
  comparison->open();
  QTRY_VERIFY(!comparison->busy());
  auto* view = comparison->findChild<DiffView*>();
  QTRY_VERIFY(view->rows().count() > 0);
  QSignalSpy activated(view, &DiffView::activated);
  const auto row = view->rowRect(1);
  QTest::mouseDClick(view->viewport(), Qt::LeftButton, Qt::NoModifier,
                     QPoint(view->overviewRect().center().x(), row.center().y()));
  QVERIFY(activated.isEmpty());
  QTest::mouseDClick(view->viewport(), Qt::LeftButton, Qt::NoModifier, QPoint(60, row.center().y()));
  QCOMPARE(activated.size(), 1);
}

// The box of the slice keeps the focus, columns keep the width that someone chose, while one steps.
void PanelTest::sliceBoxAndColumnsStayWhileOneSteps() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  ElementsView elements(f.window().context().theme, QStringLiteral("tested"));
  elements.setVisible(true);
  static constexpr std::array<float, 24> numbers{1, 2, 3};
  ValueDetail detail;
  detail.contents.meta.sizes = {2, 3, 4};
  detail.contents.meta.strides = {12, 4, 1};
  detail.contents.data = reinterpret_cast<const std::byte*>(numbers.data());
  detail.contents.bytes = sizeof numbers;
  elements.show(QStringLiteral("t"), detail);
  const QPointer<QSpinBox> box = elements.findChild<QSpinBox*>();
  QVERIFY(box);
  QTRY_VERIFY(box->isVisible());
  QApplication::setActiveWindow(&elements);
  box->setFocus();
  elements.show(QStringLiteral("t"), detail);
  QVERIFY2(box, "the box was made anew");
  QCOMPARE(elements.focusWidget(), static_cast<QWidget*>(box));

  front(f, "dock-values");
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  auto& values = tree(f, "values");
  QTRY_VERIFY(values.model()->rowCount() > 0);
  constexpr int chosen = 333;
  values.header()->resizeSection(ValuesModel::mean, chosen);
  f.press(Qt::Key_F11);
  QVERIFY(f.settle());
  QTRY_VERIFY(!f.window().panel<ValuesDock>().busy());
  QCOMPARE(values.columnWidth(ValuesModel::mean), chosen);
}

// What is collapsed in the Inspector stays so for the next op.
// The inspector has one line for each property but a formula; the whole text is in the tooltip and comes by
// Enter.
void PanelTest::wholeTextsAreInTooltipAndByEnter() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  front(f, "dock-why");
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  auto& inspector = tree(f, "inspector");
  const auto section = inspector.model()->index(0, 0);
  QModelIndex schema;
  for (int row = 0; row < inspector.model()->rowCount(section); ++row)
    if (const auto index = inspector.model()->index(row, 0, section);
        index.data().toString() == QStringLiteral("schema"))
      schema = index;
  QVERIFY(schema.isValid());
  const auto whole = schema.siblingAtColumn(1).data().toString();
  QVERIFY(whole.size() > 20);
  QVERIFY(inspector.visualRect(schema).height() < 2 * inspector.fontMetrics().height());
  QVERIFY(schema.siblingAtColumn(1).data(Qt::ToolTipRole).toString().contains(whole));
  inspector.setFocus();
  inspector.setCurrentIndex(schema);
  QTest::keyClick(&inspector, Qt::Key_Return);
  QPointer<QPlainTextEdit> popup = f.window().findChild<QPlainTextEdit*>(QStringLiteral("whole-text"));
  QVERIFY(popup && popup->isVisible());
  QVERIFY(popup->toPlainText().contains(whole));
  popup->close();
}

void PanelTest::collapsedSectionsStayCollapsed() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  front(f, "dock-why");
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  auto& inspector = tree(f, "inspector");
  QVERIFY(inspector.model()->rowCount() > 1);
  const auto section = inspector.model()->index(0, 0);
  const auto heading = section.data().toString();
  QVERIFY(inspector.isExpanded(section));
  inspector.setFocus();
  inspector.setCurrentIndex(section);
  QTest::keyClick(&inspector, Qt::Key_Left);
  QVERIFY(!inspector.isExpanded(section));
  f.click(TraceKind::forward, f.analysis().forward.ops[4]);
  const auto next = inspector.model()->index(0, 0);
  QCOMPARE(next.data().toString(), heading);
  QVERIFY(!inspector.isExpanded(next));
  QVERIFY(inspector.isExpanded(inspector.model()->index(1, 0)));
}

void PanelTest::emptyPanelsSayWhy() {
  WindowFixture f;
  const auto hint = [&](const char* name) {
    const bool isOfWhy = qstrcmp(name, "inspector") == 0;
    front(f, isOfWhy ? "dock-why" : (QByteArray("dock-") + name).constData());
    const auto* label = f.window().findChild<QLabel*>(QLatin1String(name) + QStringLiteral("-empty"));
    return label && label->isVisible() ? label->text() : QString();
  };
  for (const char* name : {"modules", "inspector", "watches", "breakpoints", "references", "problems", "notes"})
    QTRY_COMPARE(hint(name), QStringLiteral("No file is open. Ctrl+O opens one."));
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  f.selection().select({});
  QTRY_VERIFY(hint("inspector").contains(QStringLiteral("Select an op")));
  QTRY_VERIFY(hint("watches").contains(QStringLiteral("Nothing is watched")));
  QTRY_VERIFY(hint("breakpoints").contains(QStringLiteral("No breakpoints")));
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  QTRY_COMPARE(hint("inspector"), QString());
}

// A panel that fills its list a little later does not say meanwhile that nothing is open, or that there is nothing to
// list.
void PanelTest::aListThatIsAboutToBeFilledIsNotCalledEmpty() {
  WindowFixture f(std::make_shared<FakeEngine>(), WindowFixture::Start::asItComes);
  const auto* hint = f.window().findChild<QLabel*>(QStringLiteral("gradient-flow-empty"));
  auto* dock = f.window().findChild<QDockWidget*>(QStringLiteral("dock-gradient-flow"));
  dock->show();
  QTRY_VERIFY(hint->isVisible());
  dock->hide();
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  dock->show();
  dock->raise();
  QTRY_VERIFY(f.window().panel<GradientFlowDock>().inSight());
  QVERIFY2(!hint->isVisible(), qPrintable(hint->text()));
  QTRY_VERIFY(!f.window().panel<GradientFlowDock>().busy());
  QTRY_VERIFY(hint->isVisible() == (tree(f, "gradient-flow").model()->rowCount() == 0));
}

void PanelTest::nothingOfAClosedDocumentStays() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  f.window().actions().watch->trigger();
  QTRY_VERIFY(tree(f, "values").model()->rowCount() > 0);
  front(f, "dock-why");
  QTRY_VERIFY(tree(f, "inspector").model()->rowCount() > 0);
  front(f, "dock-memory");  // the Inspector and Values are out of sight, or not: both let go
  f.press(Qt::Key_W, Qt::ControlModifier);
  QTRY_VERIFY(!f.controller().document());
  for (const char* name :
       {"modules", "inspector", "why", "values", "watches", "breakpoints", "references", "problems", "notes"})
    QVERIFY2(tree(f, name).model()->rowCount() == 0, name);
}

void PanelTest::whatIsArrangedIsKept() {
  WindowFixture f;
  auto& inspector = f.window().panel<InspectorDock>();
  auto& values = f.window().panel<ValuesDock>();
  tree(f, "values").header()->resizeSection(ValuesModel::valueName, 222);
  auto* picture = f.window().findChild<QCheckBox*>(QStringLiteral("value-picture"));
  picture->setChecked(true);
  const auto kept = values.saveState();
  picture->setChecked(false);
  tree(f, "values").header()->resizeSection(ValuesModel::valueName, 90);
  values.restoreState(kept);
  QVERIFY(picture->isChecked());
  QCOMPARE(tree(f, "values").columnWidth(ValuesModel::valueName), 222);
  inspector.restoreState({{QStringLiteral("columns"), QByteArray("no header")}});  // which changes nothing
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::PanelTest)
#include "panel_test.moc"
