#include <QAbstractButton>
#include <QHeaderView>
#include <QLabel>
#include <QStandardItemModel>
#include <QTest>
#include <QToolBar>
#include <QToolButton>
#include <QTreeView>

#include "tests/support/source_path.h"
#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/canvases/graph_paint.h"
#include "views/docks/why_dock.h"
#include "views/text/line_text.h"
#include "views/widgets/dock_tree.h"
#include "views/widgets/elided_label.h"

namespace retrograd::views {

/// In a window of 1280 by 800 no text is cut off without a sign, no control is, and what is empty says why.
class WholeTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void cleanupTestCase() { fixture_.reset(); }
  void noTextOfAPanelIsCut_data() { eachDock(); }
  void noTextOfAPanelIsCut();
  void anEmptyListSaysWhy_data() { eachDock(); }
  void anEmptyListSaysWhy();
  void theGraphsControlsStayInOneRow();
  void aSmallFirstWindowIsWhole();
  void deepNamesAreSeen();
  void numbersGiveWayToNames();
  void furtherShapesAreANumber();
  void answersOfWhyAreNotCut();
  void savedBytesAndOriginsShowAt1920();
  void theCountOfRepeatedLayersIsNotCut();
  void columnsTakeWhatTheCodeLeaves();

 private:
  void eachDock();
  std::unique_ptr<WindowFixture> fixture_;
};

void WholeTest::initTestCase() {
  fixture_ = std::make_unique<WindowFixture>(liveEngine(), WindowFixture::Start::asItComes);
  fixture_->window().resize(1280, 800);
  QVERIFY(fixture_->open(QString::fromStdString(sourcePath("resources/samples/tiny_gpt.pt2"))));
  fixture_->selection().select(fixture_->analysis().backward.ops[12]);
}

void WholeTest::eachDock() {
  QTest::addColumn<QString>("name");
  for (auto* dock : fixture_->window().docks()) QTest::newRow(qPrintable(dock->objectName())) << dock->objectName();
}

// A label shows all of its text or cuts it with a sign; a button has the room that its text needs.
void WholeTest::noTextOfAPanelIsCut() {
  QFETCH(QString, name);
  auto* dock = fixture_->raise(qPrintable(name));
  QVERIFY(fixture_->quiet());
  QVERIFY(standsStill(*dock));
  QStringList cut;
  for (auto* label : dock->findChildren<QLabel*>()) {
    if (!label->isVisible() || label->text().isEmpty() || dynamic_cast<ElidedLabel*>(label)) continue;
    const auto room =
        label->contentsRect().adjusted(label->margin(), label->margin(), -label->margin(), -label->margin());
    const auto needed = label->fontMetrics().boundingRect(
        room, Qt::TextShowMnemonic | (label->wordWrap() ? Qt::TextWordWrap : 0), label->text());
    if (needed.width() > room.width() || needed.height() > room.height()) cut << label->text();
  }
  for (auto* button : dock->findChildren<QAbstractButton*>()) {
    const auto* tool = qobject_cast<QToolButton*>(button);
    const bool isIcon = tool && tool->toolButtonStyle() == Qt::ToolButtonIconOnly && !tool->icon().isNull();
    if (button->isVisible() && !isIcon && !button->text().isEmpty() && button->width() < button->sizeHint().width())
      cut << button->text();
  }
  QVERIFY2(cut.isEmpty(), qPrintable(cut.join(QLatin1Char('\n'))));
}

// Empty panels say why they are empty and what to do.
void WholeTest::anEmptyListSaysWhy() {
  QFETCH(QString, name);
  auto* dock = fixture_->raise(qPrintable(name));
  QVERIFY(fixture_->quiet());
  for (auto* list : dock->findChildren<QAbstractItemView*>()) {
    if (!list->isVisible() || qobject_cast<QHeaderView*>(list) || !list->model() || list->model()->rowCount() > 0)
      continue;
    const auto labels = list->viewport()->findChildren<QLabel*>();
    const bool says = std::any_of(labels.begin(), labels.end(),
                                  [](const QLabel* label) { return label->isVisible() && label->text().size() > 8; });
    QVERIFY2(says, qPrintable(list->objectName()));
  }
}

// Where the words of all buttons do not fit, they are lines alone before a button goes to a second row.
void WholeTest::theGraphsControlsStayInOneRow() {
  fixture_->window().listings().graphAction()->setChecked(true);
  for (auto kind : {TraceKind::forward, TraceKind::backward})
    fixture_->window().listings().toggleAction(kind)->setChecked(false);
  auto& pane = fixture_->window().listings().graphPane();
  QTRY_VERIFY(pane.isVisible());
  bool words = false, lines = false;
  for (int width : {1280, 1440, 1800, 2200}) {
    fixture_->window().resize(width, 800);
    QVERIFY(standsStill(pane));
    const auto& button = pane.edgeButton(layout::EdgeKind::data);
    (button.toolButtonStyle() == Qt::ToolButtonIconOnly ? lines : words) = true;
    int top = 0;
    for (const auto* control : pane.findChildren<QToolButton*>())
      if (control->isVisible() && control->parentWidget() == button.parentWidget()) {
        const int middle = control->geometry().center().y();
        QVERIFY2(top == 0 || std::abs(middle - top) < 4,
                 qPrintable(QStringLiteral("%1 at %2").arg(control->text()).arg(width)));
        top = middle;
      }
  }
  QVERIFY(words);
  fixture_->window().resize(1280, 800);
  for (auto kind : {TraceKind::forward, TraceKind::backward})
    fixture_->window().listings().toggleAction(kind)->setChecked(true);
  fixture_->window().listings().graphAction()->setChecked(false);
}

// 85 of 100 of a laptop's screen is what a first start has there: names, the current step and the memory's figures are
// seen.
void WholeTest::aSmallFirstWindowIsWhole() {
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  f.window().resize(1088, 640);
  QVERIFY(f.open(QString::fromStdString(sourcePath("resources/samples/tiny_gpt.pt2"))));
  f.selection().select(f.analysis().backward.ops[12]);
  QVERIFY(f.quiet());
  QVERIFY(standsStill(f.window()));
  QCOMPARE(f.window().width(), 1088);
  for (const auto& [name, least] :
       {std::pair("dock-modules", 140), {"dock-why", 260}, {"dock-memory", 340}, {"dock-values", 340}}) {
    const int width = f.window().findChild<QDockWidget*>(QLatin1String(name))->width();
    QVERIFY2(width >= least,
             qPrintable(QStringLiteral("%1 has %2 of %3").arg(QLatin1String(name)).arg(width).arg(least)));
  }
  const auto* bar = f.window().findChild<QToolBar*>(QStringLiteral("toolbar-run"));
  const auto* position = bar->findChild<QLabel*>(QStringLiteral("position"));
  const auto* button = qobject_cast<QToolButton*>(bar->widgetForAction(f.window().actions().toCursor));
  f.window().actions().resume->trigger();
  QTRY_VERIFY(f.settle() && f.execution().position == f.execution().size);
  QTRY_VERIFY(position->isVisible() && position->width() >= position->sizeHint().width() &&
              bar->sizeHint().width() <= bar->width());
  QCOMPARE(button->toolButtonStyle(), Qt::ToolButtonIconOnly);
  f.window().resize(1600, 800);
  QTRY_COMPARE(button->toolButtonStyle(), Qt::ToolButtonTextBesideIcon);
}

namespace {

/// Modules within modules, each with two numbers.
void fillDeep(QStandardItemModel& model, int levels) {
  auto* parent = model.invisibleRootItem();
  for (int depth = 0; depth < levels; ++depth) {
    auto* name = new QStandardItem(QStringLiteral("attention_%1").arg(depth));
    parent->appendRow({name, new QStandardItem(QStringLiteral("12")), new QStandardItem(QStringLiteral("34"))});
    parent = name;
  }
}

/// A tree whose names come first, and whose numbers have this width.
void showNamesFirst(QTreeView& tree, QStandardItemModel& model, int numberWidth) {
  prepareTree(tree, &model, "names", QStringLiteral("Names"));
  tree.header()->setStretchLastSection(false);
  for (int column : {1, 2}) tree.header()->resizeSection(column, numberWidth);
  new NamesFirst(&tree);
}

}  // namespace

void WholeTest::deepNamesAreSeen() {
  QStandardItemModel model(0, 3);
  fillDeep(model, 9);
  QTreeView tree;
  showNamesFirst(tree, model, 30);
  tree.resize(220, 300);
  tree.show();
  QTRY_COMPARE(tree.header()->length(), tree.viewport()->width());  // the names have what the numbers leave
  tree.expandAll();
  const auto areSeen = [&] {
    for (auto index = model.index(0, 0); index.isValid(); index = model.index(0, 0, index))
      if (tree.visualRect(index).width() < tree.fontMetrics().horizontalAdvance(QStringLiteral("atten"))) return false;
    return true;
  };
  QTRY_VERIFY(areSeen());
  tree.collapseAll();
  QTRY_COMPARE(tree.header()->length(), tree.viewport()->width());
}

// Before a name has less than eight letters, the numbers go, the last first; they come back where there is room again.
void WholeTest::numbersGiveWayToNames() {
  QStandardItemModel model(0, 3);
  fillDeep(model, 4);
  QTreeView tree;
  showNamesFirst(tree, model, 40);
  tree.setIndentation(12);
  const auto letters = [&](int count) { return count * tree.fontMetrics().averageCharWidth(); };
  tree.resize(letters(8) + 8 + 12 * 2 + 2 * 40 + 4, 300);
  tree.show();
  QTRY_COMPARE(tree.header()->length(), tree.viewport()->width());
  QVERIFY(!tree.isColumnHidden(1) && !tree.isColumnHidden(2));
  tree.expandAll();
  QTRY_VERIFY(tree.isColumnHidden(2));
  QVERIFY(!tree.isColumnHidden(1));
  QTRY_COMPARE(tree.header()->length(), tree.viewport()->width());
  tree.resize(tree.width() + 60, 300);
  QTRY_VERIFY(!tree.isColumnHidden(2));
}

void WholeTest::furtherShapesAreANumber() {
  LineText line;
  auto& shape = line.words[TextColumn::shape];
  const auto within = [&](int characters) { return wordWithin(line, TextColumn::shape, characters); };
  shape = QStringLiteral("f32[2, 8, 16]  f32[16]  f32[16]");
  line.shapes = 5;  // four are named at most
  QCOMPARE(within(40), shape);
  QCOMPARE(within(20), QStringLiteral("f32[2, 8, 16] +4"));
  QCOMPARE(leastWord(line, TextColumn::shape), 16);
  // Half a shape would be another one (W47).
  QCOMPARE(within(10), QStringLiteral("f32[\u2026]"));
  line.words[TextColumn::saved] = QStringLiteral("12.4 KiB");
  QCOMPARE(wordWithin(line, TextColumn::saved, 6), QStringLiteral("\u2026"));
  shape = QStringLiteral("f32[2, 8, 16]");
  line.shapes = 1;
  QCOMPARE(within(13), shape);
  QCOMPARE(leastWord(line, TextColumn::shape), 13);
}

// The answers in Why are sentences, which the narrow panel that they start in shows to their end.
void WholeTest::answersOfWhyAreNotCut() {
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  f.window().resize(1280, 800);
  QVERIFY(f.open(QString::fromStdString(sourcePath("resources/samples/tiny_gpt.pt2"))));
  f.raise("dock-why");
  f.window().panel<WhyDock>().showDetails(true);
  f.selection().select(
      *std::find_if(f.analysis().forward.ops.begin(), f.analysis().forward.ops.end(), [&](BoundSymbolId op) {
        const auto outputs = f.analysis().document->outputs(op);
        return std::any_of(outputs.begin(), outputs.end(),
                           [&](ValueId value) { return f.controller().document()->saved.contains(value); });
      }));
  QVERIFY(f.quiet() && standsStill(f.window()));
  const auto* tree = f.window().findChild<QTreeView*>(QStringLiteral("why"));
  int wrapped = 0;
  for (auto row = tree->model()->index(0, 1); row.isValid();
       row = tree->indexBelow(row.siblingAtColumn(0)).siblingAtColumn(1)) {
    const auto cell = tree->visualRect(row);
    const int needed = tree->fontMetrics()
                           .boundingRect(QRect(0, 0, cell.width() - 8, 1000), Qt::TextWordWrap, row.data().toString())
                           .height();
    QVERIFY2(cell.height() >= needed, qPrintable(row.data().toString()));
    wrapped += cell.height() >= 2 * tree->fontMetrics().height();
  }
  QVERIFY(wrapped > 0);
}

// At 1920 pixels both can be read next to each other.
void WholeTest::savedBytesAndOriginsShowAt1920() {
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  QVERIFY(f.open(QString::fromStdString(sourcePath("resources/samples/tiny_gpt.pt2"))));
  f.window().resize(1920, 1080);
  QVERIFY(f.quiet() && standsStill(f.window()));
  const auto& view = f.listing(TraceKind::forward);
  const auto columns = view.columns();
  const qreal character = QFontMetricsF(Theme::codeFont()).horizontalAdvance(QLatin1Char('m'));
  const int saved = columns.right[TextColumn::saved] - columns.left[TextColumn::saved];
  QVERIFY2(saved >= 7 * character, qPrintable(QString::number(saved)));
  QVERIFY(columns.codeEnd - view.textLeft(1) >= 34 * character);
}

void WholeTest::theCountOfRepeatedLayersIsNotCut() {
  const QFontMetricsF metrics(Theme::codeFont());
  const auto brief = QStringLiteral("0\u202610 \u00d711");
  QCOMPARE(briefWithin(brief, metrics, metrics.horizontalAdvance(brief) + 1), brief);
  QCOMPARE(briefWithin(brief, metrics, metrics.horizontalAdvance(brief) - 1), QStringLiteral("\u00d711"));
}

// While code has no room, the column of shapes is no wider than one shape and the number of the others; a
// wide window shows all of them.
void WholeTest::columnsTakeWhatTheCodeLeaves() {
  auto& view = fixture_->listing(TraceKind::backward);
  const qreal character = QFontMetricsF(Theme::codeFont()).horizontalAdvance(QLatin1Char('m'));
  const auto shapes = [&] {
    if (!standsStill(view)) return 0.0;
    const auto columns = view.columns();
    return (columns.right[TextColumn::shape] - columns.left[TextColumn::shape]) / character;
  };
  fixture_->window().resize(1600, 800);
  const auto narrow = shapes();
  QVERIFY2(narrow >= 8 && narrow <= 24, qPrintable(QString::number(narrow)));
  bool isNarrow = false;
  for (int row = 0; row < view.rowCount(); ++row) isNarrow = isNarrow || !view.shownCode(row).breaks.empty();
  QVERIFY(isNarrow);
  fixture_->window().resize(4000, 800);
  QTRY_VERIFY(view.viewport()->width() > 1500);
  QVERIFY(shapes() > narrow + 8);
  fixture_->window().resize(1280, 800);
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::WholeTest)
#include "whole_test.moc"
