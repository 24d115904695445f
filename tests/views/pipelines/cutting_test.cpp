#include <QMouseEvent>
#include <QScrollBar>
#include <QTest>
#include <QTimer>

#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/docks/modules_dock.h"
#include "views/stages/stage_plan.h"
#include "views/theme/tokens.h"

namespace retrograd::views {

/// Cutting where one is: at modules, from context menus, and by dragging the borders that the listings show.
class CuttingTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void bordersHaveRoomOfTheirOwn();
  void modulesAreCutAt();
  void aModuleIsCutAtUnderAPolicyToo();
  void aModuleThatIsCutAtSaysSo();
  void menusOfListingAndModulesCut();
  void aBorderInAListingIsDragged();
  void aBorderInTheBackwardIsDraggedTheOtherWay();
  void aBorderStaysWhereItCannotGo();
  void escapeLetsABorderGo();
};

namespace {

StagePlan& plan(WindowFixture& f) { return *f.window().context().stages; }
bool settled(WindowFixture& f) {
  return QTest::qWaitFor([&] { return !plan(f).busy(); }, 10000);
}
Cuts begins(WindowFixture& f) {
  Cuts all;
  for (const auto& stage : plan(f).cut()->split.stages) all.push_back(stage.begin);
  return all;
}
BoundSymbolId op(WindowFixture& f, std::size_t position) { return f.analysis().computation().trace.ops.at(position); }
const BoundSymbol& bound(WindowFixture& f, BoundSymbolId id) { return f.analysis().document->boundSymbol(id); }

/// Four layers (a linear within and a relu), in two stages.
std::unique_ptr<WindowFixture> cutInTwo() {
  auto f = std::make_unique<WindowFixture>();
  f->window().resize(2200, 1000);  // all rows are in sight
  if (!f->open(QStringLiteral("synthetic:4"))) return nullptr;
  CutRequest request;
  request.stages = 2;
  request.balance = Balance::parameters;
  plan(*f).change(request, QStringLiteral("test"));
  return settled(*f) && begins(*f) == Cuts{0, 4} ? std::move(f) : nullptr;
}

QString module(WindowFixture& f, std::size_t position) {
  return QString::fromStdString(std::string(f.analysis().document->text(bound(f, op(f, position)).module)));
}

/// The entry of a menu that `text` is part of, once it has been shown by Qt and filled.
QAction* entry(QMenu* menu, const QString& text) {
  for (auto* action : menu->actions()) {
    if (action->menu()) {
      Q_EMIT action->menu()->aboutToShow();
      if (auto* found = entry(action->menu(), text)) return found;
    }
    if (action->text().remove(QLatin1Char('&')) == text) return action;
  }
  return nullptr;
}

/// Opens the context menu by key, and triggers an entry.
void chooseFromMenu(QWidget* widget, const QString& text, QString* problem) {
  QTimer::singleShot(0, widget, [text, problem] {
    auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
    auto* action = menu ? entry(menu, text) : nullptr;
    if (!action || !action->isEnabled()) *problem = action ? action->toolTip() : QStringLiteral("no such entry");
    else action->trigger();
    if (menu) menu->close();
  });
  QContextMenuEvent event(QContextMenuEvent::Keyboard, QPoint(5, 5), widget->mapToGlobal(QPoint(5, 5)));
  QApplication::sendEvent(widget, &event);
}

void drag(ListingView& listing, const QPoint& from, const QPoint& to, bool drop = true) {
  auto* viewport = listing.viewport();
  QTest::mousePress(viewport, Qt::LeftButton, Qt::NoModifier, from);
  QMouseEvent move(QEvent::MouseMove, QPointF(to), viewport->mapToGlobal(QPointF(to)), Qt::NoButton, Qt::LeftButton,
                   Qt::NoModifier);
  QApplication::sendEvent(viewport, &move);
  if (drop) QTest::mouseRelease(viewport, Qt::LeftButton, Qt::NoModifier, to);
}

/// The upper edge of an op's line, or of the header that it is the first op of, in the band of stages, right of the
/// marks.
QPoint edge(ListingView& listing, BoundSymbolId op) {
  int row = listing.rowOf(op);
  while (row > 0 && listing.isHeader(row - 1)) --row;
  const auto rect = listing.rowRect(row);
  const int line = rect.height() / static_cast<int>(1 + listing.shownCode(row).breaks.size());
  return {std::max(tokens::gutterWidth, line * 3 / 2) + 4, rect.top()};
}

}  // namespace

// The border between two stages covers no line.
void CuttingTest::bordersHaveRoomOfTheirOwn() {
  const auto f = cutInTwo();
  QVERIFY(f);
  auto& listing = f->listing(TraceKind::forward);
  int borders = 0, bottom = -1;
  for (int row = listing.verticalScrollBar()->value(); row < listing.rowCount() && listing.isRowVisible(row); ++row) {
    const auto rect = listing.rowRect(row);
    const int room = rect.top() - bottom - 1;
    QVERIFY2(room == 0 || room >= rect.height() / 2, qPrintable(QString::number(room)));
    borders += room > 0 ? 1 : 0;
    QCOMPARE(listing.rowAtY(rect.center().y()), row);
    QCOMPARE(listing.rowAtY(rect.top()), row);
    bottom = rect.bottom();
  }
  QCOMPARE(borders, 1);
  // The end of the listing can be reached all the same.
  listing.verticalScrollBar()->setValue(listing.verticalScrollBar()->maximum());
  QVERIFY(listing.isRowVisible(listing.rowCount() - 1));
}

void CuttingTest::modulesAreCutAt() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:4")));
  const auto third = module(f, 5).toStdString();
  QVERIFY(!third.empty());
  QVERIFY(plan(f).noCutReason(third, false).isEmpty());
  plan(f).cutAtModule(third, false);
  QVERIFY(settled(f));
  QVERIFY(QTest::qWaitFor([&] { return plan(f).hasMarks() && !plan(f).busy(); }, 5000));
  QCOMPARE(begins(f), (Cuts{0, 4}));
  QCOMPARE(plan(f).request().at, (std::vector<std::string>{third}));
  plan(f).cutAtModule(third, true);
  QVERIFY(settled(f));
  QCOMPARE(begins(f), (Cuts{0, 4, 6}));
  QCOMPARE(plan(f).history().undoText(), QStringLiteral("Cut after %1").arg(QString::fromStdString(third)));
  plan(f).undo();
  QVERIFY(settled(f));
  QCOMPARE(begins(f), (Cuts{0, 4}));
}

void CuttingTest::aModuleIsCutAtUnderAPolicyToo() {
  const auto f = cutInTwo();
  QVERIFY(f);
  plan(*f).cutAtModule(module(*f, 2).toStdString(), false);
  QVERIFY(settled(*f));
  QCOMPARE(begins(*f), (Cuts{0, 2, 4}));
  QCOMPARE(plan(*f).request().stages, std::size_t(0));
}

void CuttingTest::aModuleThatIsCutAtSaysSo() {
  const auto f = cutInTwo();
  QVERIFY(f);
  QVERIFY(!plan(*f).noCutReason(module(*f, 4).toStdString(), false).isEmpty());
  QVERIFY(!plan(*f).noCutReason(module(*f, 0).toStdString(), false).isEmpty());  // nothing comes before
  QVERIFY(plan(*f).noCutReason(std::string("no.such.module"), false).contains(QStringLiteral("no.such.module")));
  QVERIFY(plan(*f).noCutReason(std::string(), false).contains(QStringLiteral("in no module")));
}

void CuttingTest::menusOfListingAndModulesCut() {
  const auto f = cutInTwo();
  QVERIFY(f);
  f->click(TraceKind::forward, f->analysis().forward.ops.front());
  QString problem;
  chooseFromMenu(&f->listing(TraceKind::forward), QStringLiteral("Cut After %1").arg(module(*f, 1)), &problem);
  QCOMPARE(problem, QString());
  QVERIFY(settled(*f));
  QCOMPARE(begins(*f), (Cuts{0, 2, 4}));
  f->selection().select(op(*f, 7));
  auto* modules = f->window().findChild<QTreeView*>(QStringLiteral("modules"));
  QTRY_VERIFY(modules->currentIndex().isValid());  // its rows are listed aside
  chooseFromMenu(modules, QStringLiteral("Cut Before %1").arg(module(*f, 7)), &problem);
  QCOMPARE(problem, QString());
  QVERIFY(settled(*f));
  QCOMPARE(begins(*f), (Cuts{0, 2, 4, 6}));
  // What cannot be done again is disabled and says why.
  chooseFromMenu(modules, QStringLiteral("Cut Before %1").arg(module(*f, 7)), &problem);
  QVERIFY(problem.contains(QStringLiteral("already")));
}

void CuttingTest::aBorderInAListingIsDragged() {
  const auto f = cutInTwo();
  QVERIFY(f);
  auto& listing = f->listing(TraceKind::forward);
  const auto& ops = f->analysis().forward.ops;
  const auto firstOf = [&](std::int32_t position) {
    for (auto one : ops)
      if (plan(*f).cut()->position(one) == position) return one;
    return BoundSymbolId();
  };
  const auto before = listing.cursorRow();
  drag(listing, edge(listing, firstOf(4)), edge(listing, firstOf(6)));
  QVERIFY(settled(*f));
  QCOMPARE(begins(*f), (Cuts{0, 6}));
  QCOMPARE(plan(*f).history().undoText(), QStringLiteral("Move the cut before stage 1"));
  QCOMPARE(listing.cursorRow(), before);  // dragging selects nothing
  plan(*f).undo();
  QVERIFY(settled(*f));
  QCOMPARE(begins(*f), (Cuts{0, 4}));
}

void CuttingTest::aBorderInTheBackwardIsDraggedTheOtherWay() {
  const auto f = cutInTwo();
  QVERIFY(f);
  auto& listing = f->listing(TraceKind::backward);
  BoundSymbolId border, target;
  for (auto one : f->analysis().backward.ops) {
    const auto position = plan(*f).cut()->position(one);
    if (!border && position >= 0 && position < 4) border = one;  // the first op of stage 0
    if (!target && position >= 0 && position < 2) target = one;  // the first of the first layer
  }
  drag(listing, edge(listing, border), edge(listing, target));
  QVERIFY(settled(*f));
  QCOMPARE(begins(*f), (Cuts{0, 2}));
}

void CuttingTest::aBorderStaysWhereItCannotGo() {
  const auto f = cutInTwo();
  QVERIFY(f);
  auto& listing = f->listing(TraceKind::joint);
  const auto& joint = f->analysis().joint;
  BoundSymbolId border;
  for (auto one : joint.ops)
    if (!border && plan(*f).cut()->stageOf(one) == 1) border = one;
  drag(listing, edge(listing, border), edge(listing, joint.ops.front()));  // a stage without ops
  QVERIFY(settled(*f));
  QCOMPARE(begins(*f), (Cuts{0, 4}));
  // Next to the band there is nothing to take hold of: this sets a breakpoint.
  auto beside = edge(listing, border);
  beside.setX(4);
  drag(listing, beside, edge(listing, joint.ops.front()));
  QCOMPARE(begins(*f), (Cuts{0, 4}));
}

void CuttingTest::escapeLetsABorderGo() {
  const auto f = cutInTwo();
  QVERIFY(f);
  auto& listing = f->listing(TraceKind::forward);
  listing.setFocus();
  BoundSymbolId border;
  for (auto one : f->analysis().forward.ops)
    if (!border && plan(*f).cut()->stageOf(one) == 1) border = one;
  const auto to = edge(listing, f->analysis().forward.ops.back());
  drag(listing, edge(listing, border), to, false);
  QTest::keyClick(&listing, Qt::Key_Escape);
  QTest::mouseRelease(listing.viewport(), Qt::LeftButton, Qt::NoModifier, to);
  QVERIFY(settled(*f));
  QCOMPARE(begins(*f), (Cuts{0, 4}));
  QVERIFY(!plan(*f).history().undoText().contains(QStringLiteral("Move")));
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::CuttingTest)
#include "cutting_test.moc"
