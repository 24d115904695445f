// What a person expects of any window: layouts come back, panels lead where their rows do, messages go with what they
// are about, commands act on all that is in sight.
#include <QHeaderView>
#include <QPlainTextEdit>
#include <QTest>
#include <QTreeView>

#include "tests/support/source_path.h"
#include "tests/views/test_program.h"
#include "tests/views/user.h"
#include "views/docks/inspector_dock.h"
#include "views/docks/modules_dock.h"
#include "views/docks/source_dock.h"
#include "views/settings/settings.h"
#include "views/widgets/window_size.h"

namespace retrograd::views {

class HabitsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void W21_theDefaultLayoutIsThatOfTheFirstStart();
  void W21_aWindowFitsIntoTheScreen();
  void W22_headingsOfTheInspectorFold();
  void W22_aModuleLeadsToModulesAndALineToSource();
  void W22_aClickOutsideClosesTheWholeText();
  void W25_aMessageGoesWithItsOpAndMovesNoRow();
  void W25_foldAllFoldsBothSides();
  void W25_theGraphIsReadableAfterFoldingAll();
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

void HabitsTest::W21_theDefaultLayoutIsThatOfTheFirstStart() {
  WindowFixture f(std::make_shared<FakeEngine>(), WindowFixture::Start::asItComes);
  f.window().resize(1500, 900);
  QVERIFY(f.open(QStringLiteral("synthetic5")));
  QVERIFY(f.quiet() && standsStill(f.window()));
  const std::vector names{"dock-modules", "dock-inspector", "dock-values", "dock-memory"};
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
      QVERIFY2(std::abs(now.width() - first[i].width()) <= 2 && std::abs(now.height() - first[i].height()) <= 2,
               qPrintable(QStringLiteral("%1: %2 x %3 is %4 x %5")
                              .arg(QLatin1String(names[i]))
                              .arg(first[i].width())
                              .arg(first[i].height())
                              .arg(now.width())
                              .arg(now.height())));
    }
  }
}

void HabitsTest::W21_aWindowFitsIntoTheScreen() {
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

void HabitsTest::W22_headingsOfTheInspectorFold() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  f.click(TraceKind::backward, f.analysis().backward.ops[1]);
  f.raise("dock-inspector");
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

void HabitsTest::W22_aModuleLeadsToModulesAndALineToSource() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(gpt()));
  f.click(TraceKind::backward, f.analysis().backward.ops[6]);
  f.raise("dock-inspector");
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

void HabitsTest::W22_aClickOutsideClosesTheWholeText() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  f.click(TraceKind::backward, f.analysis().backward.ops[1]);
  f.raise("dock-inspector");
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

void HabitsTest::W25_aMessageGoesWithItsOpAndMovesNoRow() {
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
  // What is about the file stays.
  f.window().messages().show(MessageBar::Kind::warning, QStringLiteral("of the file"));
  f.click(TraceKind::forward, f.analysis().forward.ops[2]);
  QVERIFY(f.window().messages().isVisible());
}

void HabitsTest::W25_foldAllFoldsBothSides() {
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

void HabitsTest::W25_theGraphIsReadableAfterFoldingAll() {
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

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::HabitsTest)
#include "habits_test.moc"
