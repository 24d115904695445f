// What a person expects of any window: layouts come back, panels lead where their rows do, messages go with what they
// are about, commands act on all that is in sight.
#include <QApplication>
#include <QClipboard>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QScrollBar>
#include <QStatusBar>
#include <QTest>
#include <QToolButton>
#include <QTreeView>

#include "core/derivation/gradient_of.h"
#include "tests/support/source_path.h"
#include "tests/views/test_program.h"
#include "tests/views/user.h"
#include "views/canvases/diff_view.h"
#include "views/docks/inspector_dock.h"
#include "views/docks/modules_dock.h"
#include "views/docks/source_dock.h"
#include "views/models/slice_model.h"
#include "views/settings/settings.h"
#include "views/text/python_colors.h"
#include "views/widgets/window_size.h"

namespace retrograd::views {

class HabitsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void theDefaultLayoutIsThatOfTheFirstStart();
  void aWindowFitsIntoTheScreen();
  void headingsOfTheInspectorFold();
  void aModuleLeadsToModulesAndALineToSource();
  void aClickOutsideClosesTheWholeText();
  void textThatIsCutInTheInspectorIsInItsTooltip();
  void whyOfAGradientLeadsToItsForwardOp();
  void nothingIsEmptyBetweenValuesAndTheirHistogram();
  void aMessageGoesWithItsOpAndMovesNoRow();
  void foldAllFoldsBothSides();
  void theGraphIsReadableAfterFoldingAll();
  void aClickOnAModuleOpensNoListing();
  void theFirstOpIsSelectedWhenAFileOpens();
  void findCountsAndLights();
  void thePaletteSaysNoMatch();
  void theStartPageBeginsWithQuestionsAndARecording();
  void textIsLargerByKey();
  void elementsThatAreNaNAreColoured();
  void panelsAreInGroupsAndHaveKeys();
  void pythonHasColours();
};

namespace {

QString gpt() { return QString::fromStdString(sourcePath("resources/samples/tiny_gpt.pt2")); }

QDockWidget* dockOf(WindowFixture& f, const char* name) {
  return f.window().findChild<QDockWidget*>(QLatin1String(name));
}

/// The row of a tree with this label, at any depth.
QModelIndex rowNamed(const QTreeView& tree, const QString& label, const QModelIndex& parent = {}) {
  const auto* model = tree.model();
  for (int row = 0; row < model->rowCount(parent); ++row) {
    const auto index = model->index(row, 0, parent);
    if (index.data().toString() == label) return index;
    if (const auto below = rowNamed(tree, label, index); below.isValid()) return below;
  }
  return {};
}

void doubleClick(QTreeView& tree, const QModelIndex& row) {
  tree.scrollTo(row);
  const auto at = tree.visualRect(row).center();
  QTest::mouseClick(tree.viewport(), Qt::LeftButton, Qt::NoModifier, at);
  QTest::mouseDClick(tree.viewport(), Qt::LeftButton, Qt::NoModifier, at);
}

}  // namespace

void HabitsTest::theDefaultLayoutIsThatOfTheFirstStart() {
  WindowFixture f(std::make_shared<FakeEngine>(), WindowFixture::Start::asItComes);
  f.window().resize(1500, 900);
  QVERIFY(f.open(QStringLiteral("synthetic5")));
  QVERIFY(f.quiet() && standsStill(f.window()));
  const std::vector names{"dock-modules", "dock-why", "dock-values", "dock-memory"};
  std::vector<QSize> first;
  for (const auto* name : names) first.push_back(dockOf(f, name)->size());
  QVERIFY(first[2].width() > 400);  // Values is a table
  for (const auto key : {Qt::Key_3, Qt::Key_5, Qt::Key_2}) {
    f.press(key, Qt::ControlModifier | Qt::AltModifier);
    QVERIFY(standsStill(f.window()));
    f.press(Qt::Key_1, Qt::ControlModifier | Qt::AltModifier);
    QVERIFY(standsStill(f.window()));
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto now = dockOf(f, names[i])->size();
      // Once panels were behind one another, a row of tabs may be in the height.
      QVERIFY2(std::abs(now.width() - first[i].width()) <= 2 && std::abs(now.height() - first[i].height()) <= 40,
               qPrintable(QStringLiteral("%1: %2 x %3 is %4 x %5")
                              .arg(QLatin1String(names[i]))
                              .arg(first[i].width())
                              .arg(first[i].height())
                              .arg(now.width())
                              .arg(now.height())));
    }
  }
}

void HabitsTest::aWindowFitsIntoTheScreen() {
  QWidget large;  // kept on a screen of four times the size
  large.show();
  const auto room = large.screen()->availableGeometry();
  large.setGeometry(QRect(QPoint(room.left() + 40, room.top() + 40), room.size() * 2));
  QWidget window;
  window.show();
  window.restoreGeometry(large.saveGeometry());
  window.resize(room.size() * 2);  // as a window manager and larger docks leave it
  keepWithinScreen(window);
  QVERIFY(room.contains(window.frameGeometry()));
}

void HabitsTest::headingsOfTheInspectorFold() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  f.click(TraceKind::backward, f.analysis().backward.ops[1]);
  f.raise("dock-why");
  auto& tree = *f.window().findChild<QTreeView*>(QStringLiteral("inspector"));
  QTRY_VERIFY(rowNamed(tree, QStringLiteral("Origin")).isValid());
  const auto op = f.selection().op();
  for (const auto* heading : {"Op", "Origin", "Rule"}) {
    const auto row = rowNamed(tree, QLatin1String(heading));
    QVERIFY2(row.isValid(), heading);
    QVERIFY(tree.isExpanded(row));
    doubleClick(tree, row);
    QVERIFY2(!tree.isExpanded(row), heading);
    QVERIFY(!f.window().findChild<QPlainTextEdit*>(QStringLiteral("whole-text")));
    doubleClick(tree, row);
    QVERIFY(tree.isExpanded(row));
  }
  QCOMPARE(f.selection().op(), op);
}

void HabitsTest::aModuleLeadsToModulesAndALineToSource() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(QString::fromStdString(sourcePath("resources/samples/twins.pt2"))));
  BoundSymbolId deep;  // of a module's own function, that another calls
  for (auto op : f.analysis().forward.ops)
    if (const auto& bound = f.analysis().document->boundSymbol(op);
        !deep && bound.module && bound.source && f.analysis().document->source(bound.source).size() > 1)
      deep = op;
  QVERIFY(deep);
  f.click(TraceKind::forward, deep);
  f.raise("dock-why");
  auto& tree = *f.window().findChild<QTreeView*>(QStringLiteral("inspector"));
  QTRY_VERIFY(rowNamed(tree, QStringLiteral("module")).isValid());
  const auto module = rowNamed(tree, QStringLiteral("module"));
  const auto path = module.siblingAtColumn(1).data().toString();
  dockOf(f, "dock-modules")->hide();
  doubleClick(tree, module);
  QVERIFY(f.window().panel<ModulesDock>().inSight());
  auto& modules = *f.window().findChild<QTreeView*>(QStringLiteral("modules"));
  QTRY_COMPARE(modules.currentIndex().data(moduleRole).toString(), path);

  // The outermost frame: not the one that Source shows by itself.
  const auto source = rowNamed(tree, QStringLiteral("Source"));
  QVERIFY(source.isValid());
  const auto* model = tree.model();
  const int last = model->rowCount(source) - 1;
  QVERIFY(last > 0);
  const auto frame = model->index(last, 0, source);
  const auto line = frame.data().toString();
  dockOf(f, "dock-source")->hide();
  doubleClick(tree, frame);
  QVERIFY(f.window().panel<SourceDock>().inSight());
  auto& stack = *f.window().findChild<QTreeView*>(QStringLiteral("source-stack"));
  QTRY_COMPARE(stack.currentIndex().row(), last);
  QVERIFY(stack.currentIndex().siblingAtColumn(1).data().toString() == line ||
          stack.currentIndex().siblingAtColumn(0).data().toString() == line);
}

void HabitsTest::aClickOutsideClosesTheWholeText() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  f.click(TraceKind::backward, f.analysis().backward.ops[1]);
  f.raise("dock-why");
  auto& tree = *f.window().findChild<QTreeView*>(QStringLiteral("inspector"));
  QTRY_VERIFY(rowNamed(tree, QStringLiteral("runs")).isValid());
  for (const auto* label : {"number", "runs", "role"}) {
    doubleClick(tree, rowNamed(tree, QLatin1String(label)));
    auto* popup = QApplication::activePopupWidget();
    QVERIFY2(popup, label);
    QTest::mouseClick(popup, Qt::LeftButton, Qt::NoModifier, QPoint(-60, -40));
    QTRY_VERIFY(!QApplication::activePopupWidget());
  }
}

void HabitsTest::textThatIsCutInTheInspectorIsInItsTooltip() {
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  f.window().resize(1280, 800);
  QVERIFY(f.open(gpt()));
  const auto& tree = *f.window().findChild<QTreeView*>(QStringLiteral("inspector"));
  int cut = 0, whole = 0;
  for (const auto op : {f.analysis().forward.ops[10], f.analysis().backward.ops[10]}) {
    f.selection().select(op);
    QVERIFY(f.quiet());
    for (auto row = tree.model()->index(0, 0); row.isValid(); row = tree.indexBelow(row))
      for (const auto& cell : {row, row.siblingAtColumn(1)}) {
        const auto text = cell.data().toString();
        const bool fits = tree.visualRect(cell).width() >= tree.sizeHintForIndex(cell).width();
        (fits ? whole : cut) += !text.isEmpty();
        // A heading may say it in other words: the whole call.
        QVERIFY2(fits || !row.parent().isValid() || cell.data(Qt::ToolTipRole).toString().contains(text),
                 qPrintable(text));
      }
  }
  QVERIFY2(whole > cut, qPrintable(QStringLiteral("%1 whole, %2 cut").arg(whole).arg(cut)));
}

void HabitsTest::whyOfAGradientLeadsToItsForwardOp() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(gpt()));
  f.raise("dock-why");
  auto& tree = *f.window().findChild<QTreeView*>(QStringLiteral("why"));
  auto& button = *f.window().findChild<QToolButton*>(QStringLiteral("why-to-forward"));
  const auto& tables = *f.analysis().document;
  ValueId gradient, of;
  for (const auto each : gradientsOfInputs(f.analysis()))
    if (each && tables.boundSymbol(tables.value(each).producer).origin.role == Role::gradient &&
        valueOfGradient(f.analysis(), each))
      gradient = each, of = valueOfGradient(f.analysis(), each);
  QVERIFY(of);
  const auto op = tables.value(gradient).producer;
  f.selection().select(op, gradient);
  QVERIFY(f.quiet());
  QCOMPARE(tree.model()->index(0, 1).data().toString(),
           QStringLiteral("the gradient of ") + toQt(tables.displayName(of)));
  QTest::mouseClick(&button, Qt::LeftButton);
  QCOMPARE(f.selection().op(), f.analysis().links.forwardOf(tables, op));
  QVERIFY(f.quiet());
  QVERIFY(!button.isVisible());  // what the forward makes is asked why it is saved
}

void HabitsTest::nothingIsEmptyBetweenValuesAndTheirHistogram() {
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  f.window().resize(1600, 1000);
  QVERIFY(f.open(gpt()));
  const auto& table = *f.window().findChild<QTreeView*>(QStringLiteral("values"));
  for (const auto op : {f.analysis().forward.ops[10], f.analysis().forward.ops[20], f.analysis().backward.ops[1]}) {
    f.selection().select(op);
    QVERIFY(f.quiet() && standsStill(f.window()));
    const auto last = table.visualRect(table.model()->index(table.model()->rowCount() - 1, 0));
    QVERIFY2(table.viewport()->height() - last.bottom() < 2 * last.height(),
             qPrintable(QStringLiteral("%1 of %2").arg(last.bottom()).arg(table.viewport()->height())));
  }
}

void HabitsTest::aMessageGoesWithItsOpAndMovesNoRow() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic5")));
  f.click(TraceKind::forward, f.analysis().forward.ops[2]);
  QVERIFY(f.quiet());
  auto& listing = f.listing(TraceKind::forward);
  const auto place = [&] { return listing.viewport()->mapTo(&f.window(), listing.rowRect(3).topLeft()); };
  const auto before = place();
  Q_EMIT f.controller().questions().failed(QStringLiteral("this value is finite"));
  QTRY_VERIFY(f.window().messages().isVisible());
  QVERIFY(standsStill(f.window()));
  QCOMPARE(place(), before);
  f.click(TraceKind::forward, f.analysis().forward.ops[4]);
  QTRY_VERIFY(!f.window().messages().isVisible());
  // A message about the file stays.
  f.window().messages().show(MessageBar::Kind::warning, QStringLiteral("of the file"));
  f.click(TraceKind::forward, f.analysis().forward.ops[2]);
  QVERIFY(f.window().messages().isVisible());
}

void HabitsTest::foldAllFoldsBothSides() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic5")));
  const auto rows = [&](TraceKind kind) { return f.listing(kind).rowCount(); };
  const int forward = rows(TraceKind::forward), backward = rows(TraceKind::backward);
  f.window().findChild<QAction*>(QStringLiteral("action-fold-all"))->trigger();
  QVERIFY(rows(TraceKind::forward) < forward && rows(TraceKind::backward) < backward);
  f.window().findChild<QAction*>(QStringLiteral("action-unfold-all"))->trigger();
  QCOMPARE(rows(TraceKind::forward), forward);
  QCOMPARE(rows(TraceKind::backward), backward);
}

void HabitsTest::theGraphIsReadableAfterFoldingAll() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(gpt()));
  f.press(Qt::Key_4, Qt::ControlModifier);
  auto& graph = f.window().listings().graph();
  QTRY_VERIFY(graph.picture() && !graph.busy());
  graph.setFocus();
  f.press(Qt::Key_Asterisk);
  QTRY_VERIFY(!graph.busy());
  f.press(Qt::Key_F);  // the whole graph, small
  const auto small = graph.scale();
  QVERIFY(small < 0.3);
  f.press(Qt::Key_Slash);
  QTRY_VERIFY(!graph.busy());
  QVERIFY(graph.scale() > small * 1.5);
}

void HabitsTest::aClickOnAModuleOpensNoListing() {
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  QVERIFY(f.open(gpt()));
  QVERIFY(f.quiet());
  auto& modules = *f.window().findChild<QTreeView*>(QStringLiteral("modules"));
  QTRY_VERIFY(modules.model()->rowCount() > 0);
  const auto arranged = f.window().arrangement();
  modules.expandAll();
  auto row = modules.model()->index(0, 0);
  while (row.isValid() && !row.data(moduleRole).toString().contains(QLatin1Char('.'))) row = modules.indexBelow(row);
  QVERIFY(row.isValid());
  const auto path = row.data(moduleRole).toString();
  modules.scrollTo(row);
  QTest::mouseClick(modules.viewport(), Qt::LeftButton, Qt::NoModifier, modules.visualRect(row).center());
  QCOMPARE(f.window().arrangement(), arranged);
  const auto op = f.selection().op();
  QVERIFY(op);
  QVERIFY(f.listing(TraceKind::forward).rowOf(op) >= 0);
  QVERIFY(f.listing(TraceKind::forward).isRowVisible(f.listing(TraceKind::forward).rowOf(op)));
  const auto& document = *f.analysis().document;
  const auto module = document.boundSymbol(op).module ? op : document.boundSymbol(op).origin.op;
  QVERIFY(QString::fromStdString(std::string(document.text(document.boundSymbol(module).module))).startsWith(path));
  // The row stays chosen, and the keyboard is there.
  QVERIFY(f.quiet());
  QCOMPARE(modules.currentIndex().data(moduleRole).toString(), path);
  QVERIFY(modules.hasFocus());
}

// Inspector, Values and Why show it; the way back from the first jump leads to it.
void HabitsTest::theFirstOpIsSelectedWhenAFileOpens() {
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  QVERIFY(f.open(gpt()));
  QVERIFY(f.quiet());
  const auto first = f.analysis().forward.ops.front();
  QCOMPARE(f.selection().op(), first);
  for (const char* tree : {"inspector", "values", "why"}) {
    f.raise(qstrcmp(tree, "values") == 0 ? "dock-values" : "dock-why");
    QTRY_VERIFY2(f.window().findChild<QTreeView*>(QLatin1String(tree))->model()->rowCount() > 0, tree);
  }
  for (const auto kind : {TraceKind::forward, TraceKind::backward})
    QCOMPARE(f.listing(kind).verticalScrollBar()->value(), 0);
  f.window().jumpTo(f.analysis().backward.ops[5]);
  f.press(Qt::Key_Left, Qt::AltModifier);
  QCOMPARE(f.selection().op(), first);
}

void HabitsTest::findCountsAndLights() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic5")));
  auto& forward = f.listing(TraceKind::forward);
  forward.setFocus();
  f.press(Qt::Key_F, Qt::ControlModifier);
  auto* text = f.window().findChild<QLineEdit*>(QStringLiteral("find-text"));
  auto* state = f.window().findChild<QLabel*>(QStringLiteral("find-state"));
  QTest::keyClicks(text, QStringLiteral("addmm"));
  QTest::keyClick(text, Qt::Key_Return);
  QTRY_COMPARE(state->text(), QStringLiteral("1 of 5 in Forward"));
  QTest::keyClick(text, Qt::Key_Return);
  QTRY_COMPARE(state->text(), QStringLiteral("2 of 5 in Forward"));
  int lit = 0;
  for (int row = 0; row < forward.rowCount(); ++row) {
    QCOMPARE(forward.isLit(row), forward.textAt(row).contains(QStringLiteral("addmm")));
    lit += forward.isLit(row);
  }
  QCOMPARE(lit, 5);
  QTest::keyClick(text, Qt::Key_Escape);
  for (int row = 0; row < forward.rowCount(); ++row) QVERIFY(!forward.isLit(row));
}

void HabitsTest::thePaletteSaysNoMatch() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  f.press(Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
  auto* none = f.window().findChild<QLabel*>(QStringLiteral("quick-open-none"));
  QVERIFY(!none->isVisible());
  QTest::keyClicks(QApplication::focusWidget(), QStringLiteral("zzqqxx"));
  QTRY_VERIFY(none->isVisible() && !none->visibleRegion().isEmpty());
  QTest::keyClick(QApplication::focusWidget(), Qt::Key_Escape);
}

void HabitsTest::theStartPageBeginsWithQuestionsAndARecording() {
  WindowFixture f(std::make_shared<FakeEngine>(), WindowFixture::Start::asItComes);
  QStringList questions;
  for (const auto* card : f.window().findChildren<SampleCard*>()) {
    QVERIFY(card->isVisible());
    questions << card->accessibleName();
  }
  for (const auto* question : {"Find this NaN", "Why is this saved?", "Is this backward right?"})
    QVERIFY2(!questions.filter(QLatin1String(question)).isEmpty(), question);
  auto* copy = f.window().findChild<QPushButton*>(QStringLiteral("start-copy-recording"));
  QVERIFY(copy && copy->isVisible());
  copy->setFocus();
  f.press(Qt::Key_Space);
  const auto lines = QApplication::clipboard()->text().split(QLatin1Char('\n'), Qt::SkipEmptyParts);
  QCOMPARE(lines.size(), 3);
  QVERIFY(lines[1].startsWith(QStringLiteral("with retrograd.catch(")));
  f.window().findChild<QPushButton*>(QStringLiteral("start-copy-remote"))->setFocus();
  f.press(Qt::Key_Space);
  QVERIFY(QApplication::clipboard()->text().contains(QStringLiteral("rsync -a")));
}

void HabitsTest::textIsLargerByKey() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  auto& forward = f.listing(TraceKind::forward);
  forward.setFocus();
  const int row = forward.rowRect(1).height();
  const auto* label = f.window().findChild<QLabel*>(QStringLiteral("position"));
  const auto letters = label->fontMetrics().height();
  const auto size = f.window().size();
  auto* comparison = f.window().findChild<DiffView*>();
  for (int i = 0; i < 4; ++i) f.press(Qt::Key_Equal, Qt::ControlModifier);
  QTRY_VERIFY(comparison->rowRect(0).height() >= QFontMetrics(comparison->viewport()->font()).height());
  QTRY_VERIFY(forward.rowRect(1).height() > row + 3);
  QVERIFY(label->fontMetrics().height() > letters + 3);
  QVERIFY(kept::textSize.of(*f.window().shared().settings) > 0);
  f.press(Qt::Key_Minus, Qt::ControlModifier);
  f.press(Qt::Key_0, Qt::ControlModifier);
  QTRY_COMPARE(forward.rowRect(1).height(), row);
  QCOMPARE(label->fontMetrics().height(), letters);
  QTRY_COMPARE(f.window().size(), size);
}

void HabitsTest::elementsThatAreNaNAreColoured() {
  TensorData data;
  std::vector<float> numbers{1, std::numeric_limits<float>::quiet_NaN(), -2, std::numeric_limits<float>::infinity()};
  data.meta.dtype = DType::f32;
  data.meta.sizes = {4};
  data.meta.strides = {1};
  data.data = reinterpret_cast<const std::byte*>(numbers.data());
  SliceModel model;
  model.setBadColor(Qt::red);
  model.setData(data);
  for (int column = 0; column < 4; ++column)
    QCOMPARE(model.data(model.index(0, column), Qt::ForegroundRole).isValid(), column % 2 == 1);
}

void HabitsTest::panelsAreInGroupsAndHaveKeys() {
  WindowFixture f(std::make_shared<FakeEngine>(), WindowFixture::Start::asItComes);
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  const auto entries = f.window().menu("docks")->actions();
  QStringList groups;
  for (const auto* entry : entries)
    if (entry->isSeparator() && !entry->text().isEmpty()) groups << entry->text();
  QCOMPARE(groups, (QStringList{QStringLiteral("The Selected Op"), QStringLiteral("The Run"),
                                QStringLiteral("The Model"), QStringLiteral("A Job")}));
  QCOMPARE(entries.size(),
           f.window().docks().size() + groups.size() + 2);  // none is lost; a line before the rest, and Close
  auto* source = dockOf(f, "dock-source");
  QVERIFY(source->isHidden());
  f.press(Qt::Key_6, Qt::AltModifier);
  QVERIFY(source->isVisible() && source->isAncestorOf(QApplication::focusWidget()));
  f.press(Qt::Key_1, Qt::AltModifier);
  QCOMPARE(QApplication::focusWidget()->objectName(), QStringLiteral("modules"));
  f.press(Qt::Key_6, Qt::AltModifier);
  f.press(Qt::Key_F4, Qt::ControlModifier);
  QVERIFY(source->isHidden());
  QVERIFY(f.window().listings().active().hasFocus());
  f.press(Qt::Key_F4, Qt::ControlModifier);
  QCOMPARE(f.window().statusBar()->currentMessage(), QStringLiteral("No panel has the keyboard"));
}

void HabitsTest::pythonHasColours() {
  const QStringList lines{QStringLiteral("def forward(self, x):  # a 'comment'"), QStringLiteral("    \"\"\"Words"),
                          QStringLiteral("    more\"\"\" + 'it\\'s' + y2 * 1e-5")};
  QStringList found;
  const auto spans = pythonSpans(lines);
  for (qsizetype i = 0; i < lines.size(); ++i)
    for (const auto& span : spans[static_cast<std::size_t>(i)])
      found << QStringLiteral("%1 %2").arg(static_cast<int>(span.kind)).arg(lines[i].mid(span.begin, span.length));
  const auto as = [](TokenKind kind, const char* text) {
    return QStringLiteral("%1 %2").arg(static_cast<int>(kind)).arg(QLatin1String(text));
  };
  QCOMPARE(found, (QStringList{as(TokenKind::op, "def"), as(TokenKind::header, "forward"),
                               as(TokenKind::comment, "# a 'comment'"), as(TokenKind::literal, "\"\"\"Words"),
                               as(TokenKind::literal, "    more\"\"\""), as(TokenKind::literal, "'it\\'s'"),
                               as(TokenKind::literal, "1e"), as(TokenKind::literal, "5")}));
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::HabitsTest)
#include "habits_test.moc"
