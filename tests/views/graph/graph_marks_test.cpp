#include <QLineEdit>
#include <QSignalSpy>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tests/views/graph_test_base.h"
#include "tests/views/test_program.h"
#include "views/settings/settings.h"
#include "views/text/format.h"
#include "views/text/line_text.h"

namespace retrograd::views {

/// What is drawn on the graph's boxes and edges: kinds of edges, paths, finds, breakpoints, overlays.
class GraphMarksTest : public GraphTestBase {
  Q_OBJECT

 private Q_SLOTS:
  void init() { openLadder(); }
  void edgeKindsAreSwitched();
  void linesSayBytesOrNorms();
  void hoverLightsThePath();
  void findsAreMarkedInPlace();
  void waysLightUp();
  void breakpointAndExecutionShow();
  void overlaysShowInWords();
  void devicesAreReported();
};

void GraphMarksTest::edgeKindsAreSwitched() {
  show(gradientOp(1));
  QVERIFY(standsStill(graph()));
  const auto before = graph().grab().toImage();
  auto& button = fixture_->window().listings().graphPane().edgeButton(layout::EdgeKind::gradient);
  QTest::mouseClick(&button, Qt::LeftButton);
  QVERIFY(!graph().edgesShown(layout::EdgeKind::gradient));
  QVERIFY(graph().grab().toImage() != before);
  QTest::mouseClick(&button, Qt::LeftButton);
  QCOMPARE(graph().grab().toImage(), before);
}

// Holds J's labels: bytes at first, norms of values that a run has, or nothing; the choice is kept.
void GraphMarksTest::linesSayBytesOrNorms() {
  show(gradientOp(1));
  graph().setAllOpen(true);
  QVERIFY(laidOut());
  graph().zoomToFullSize();
  const auto& document = *fixture_->analysis().document;
  const auto& scene = graph().picture()->scene;
  // Lines from one op to one op: what runs along them is what the one makes and the other reads.
  std::vector<std::pair<std::int32_t, std::set<ValueId>>> lines;
  for (std::int32_t i = 0; i < std::ssize(scene.edges); ++i) {
    const auto& edge = scene.edges[static_cast<std::size_t>(i)];
    if (edge.kind == layout::EdgeKind::origin || edge.kind == layout::EdgeKind::saved || edge.from < 0 || edge.to < 0)
      continue;
    const auto from = graph().opOf(edge.from), to = graph().opOf(edge.to);
    if (!from || !to) continue;
    std::set<ValueId> values;
    for (const auto& [a, b] : {std::pair(from, to), std::pair(to, from)})
      for (auto output : document.outputs(a))
        for (auto operand : document.operands(b))
          if (output && output == operand) values.insert(output);
    if (!values.empty()) lines.emplace_back(i, values);
  }
  QVERIFY(lines.size() > 5);
  const auto choose = [&](const char* name) {
    fixture_->window().findChild<QAction*>(QStringLiteral("action-graph-lines-") + QLatin1String(name))->trigger();
  };
  auto& numbers = fixture_->controller().ahead().numbers();
  const auto& open = *fixture_->controller().document();
  numbers.reset(open.analysis, open.program.positions());
  choose("bytes");
  for (const auto& [line, values] : lines) {
    std::int64_t bytes = 0;
    for (auto value : values) bytes += document.meta(value).bytes();
    QCOMPARE(graph().labelOf(line), bytesText(bytes));
  }
  const auto withBytes = graph().grab().toImage();
  choose("norms");
  const auto untold = [&](std::int32_t line) {
    return graph().labelOf(line).isEmpty() || graph().labelOf(line).endsWith(QStringLiteral(" values"));
  };
  for (const auto& [line, values] : lines) QVERIFY2(untold(line), qPrintable(graph().labelOf(line)));
  const auto withoutNorms = graph().grab().toImage();
  QVERIFY(withoutNorms != withBytes);

  RunNews news;
  news.end = numbers.size();
  news.measures.resize(news.end);
  const auto bad = *lines.back().second.begin();
  double next = 1;
  std::map<ValueId, double> norms;
  for (auto op : fixture_->analysis().joint.ops)
    for (auto output : document.outputs(op)) {
      if (!output) continue;
      TensorStatistics statistics;
      statistics.elements = 4;
      statistics.norm = norms[output] = next++;
      statistics.nan = output == bad ? 1 : 0;
      news.values.emplace_back(output, statistics);
    }
  numbers.add(news);
  for (const auto& [line, values] : lines) {
    double squares = 0;
    for (auto value : values) squares += norms[value] * norms[value];
    QCOMPARE(graph().labelOf(line), values.contains(bad) ? QStringLiteral("nan") : numberText(std::sqrt(squares)));
  }
  QVERIFY(graph().grab().toImage() != withoutNorms);
  fixture_->picture(QStringLiteral("graph-norms"));
  choose("nothing");
  for (const auto& [line, values] : lines) QVERIFY(graph().labelOf(line).isEmpty());
  QCOMPARE(kept::graphLines.of(*fixture_->window().shared().settings), static_cast<int>(LineLabel::none));
  auto* again = new MainWindow(fixture_->window().shared());
  QCOMPARE(again->listings().graph().lineLabel(), LineLabel::none);
  delete again;
  choose("bytes");
  // Too small to be read: only what the current box is tied to is labelled.
  graph().zoomBy(0.7, {});
  QVERIFY(
      std::any_of(lines.begin(), lines.end(), [&](const auto& line) { return graph().labelOf(line.first).isEmpty(); }));
}

void GraphMarksTest::hoverLightsThePath() {
  show(gradientOp(2));
  QVERIFY(standsStill(graph()));
  graph().setFocus();
  const auto other = graph().boxOf(gradientOp(3));
  QMouseEvent leave(QEvent::MouseMove, QPointF(3, 3), graph().mapToGlobal(QPointF(3, 3)), Qt::NoButton, Qt::NoButton,
                    {});
  QApplication::sendEvent(&graph(), &leave);
  const auto before = graph().grab().toImage();
  const auto at = graph().boxRect(other).center();
  QMouseEvent hover(QEvent::MouseMove, at, graph().mapToGlobal(at), Qt::NoButton, Qt::NoButton, {});
  QApplication::sendEvent(&graph(), &hover);
  QVERIFY(graph().grab().toImage() != before);
  QEvent left(QEvent::Leave);
  QApplication::sendEvent(&graph(), &left);
  QCOMPARE(graph().grab().toImage(), before);
}

// Holds J's search: results are marked in place, closed groups say how many they hold, and the next one is gone to.
void GraphMarksTest::findsAreMarkedInPlace() {
  graph().setAllOpen(false);
  QVERIFY(laidOut());
  graph().setFocus();
  QSignalSpy done(&graph(), &GraphView::findDone);
  QTest::keyClick(&graph(), Qt::Key_F, Qt::ControlModifier);
  auto* text = fixture_->window().findChild<QLineEdit*>(QStringLiteral("find-text"));
  QVERIFY(text->hasFocus());
  QTest::keyClicks(text, QStringLiteral("addmm"));
  QTest::keyClick(text, Qt::Key_Return);
  QTRY_COMPARE(done.count(), 1);
  const int all = done[0][0].toInt();
  QVERIFY(all > 0);
  QCOMPARE(done[0][1].toInt(), 1);
  QVERIFY(laidOut());
  // The target of a jump shows, and is one of them; the groups that are still closed hold the rest.
  QVERIFY(graph().current() >= 0 && graph().foundIn(graph().current()) > 0);
  QVERIFY(
      shortOpName(*fixture_->analysis().document, graph().opOf(graph().current())).contains(QStringLiteral("addmm")));
  int marked = 0;
  for (int i = 0; i < static_cast<int>(graph().picture()->scene.boxes.size()); ++i)
    if (!graph().picture()->scene.boxes[static_cast<std::size_t>(i)].open) marked += graph().foundIn(i);
  QCOMPARE(marked, all);
  fixture_->picture(QStringLiteral("graph-finds"));
  // They show at every scale, down to that at which a box is a few pixels.
  const auto foundColor = fixture_->window().context().theme->colors().originMark.rgb();
  for (int i = 0; i < 4; ++i) {
    graph().zoomBy(0.4, {});
    const auto image = graph().grab().toImage();
    int pixels = 0;
    for (int y = 0; y < image.height(); ++y)
      for (int x = 0; x < image.width(); ++x) pixels += image.pixel(x, y) == foundColor;
    QVERIFY2(pixels > 0, qPrintable(QString::number(graph().scale())));
  }
  graph().zoomToFullSize();
  QTest::keyClick(text, Qt::Key_Return);
  QTRY_COMPARE(done.count(), 2);
  QCOMPARE(done[1][1].toInt(), 2 % all == 0 ? all : 2);
  QVERIFY(laidOut());
  QTest::keyClick(text, Qt::Key_Escape);
  QCOMPARE(graph().foundIn(graph().current()), 0);
}

// Holds J's paths: all ways from an op to the loss are lit, and what is next to them is not; Esc ends it.
void GraphMarksTest::waysLightUp() {
  graph().setAllOpen(true);
  QVERIFY(laidOut());
  const auto& forward = fixture_->analysis().forward.ops;
  fixture_->selection().select(forward[1]);
  fixture_->window().findChild<QAction*>(QStringLiteral("action-graph-way-from"))->trigger();
  fixture_->selection().select(forward[4]);
  fixture_->window().findChild<QAction*>(QStringLiteral("action-graph-way-to"))->trigger();
  const auto isLit = [&](BoundSymbolId op) {
    const auto& boxes = graph().ways().boxes;
    return std::find(boxes.begin(), boxes.end(), graph().boxOf(op)) != boxes.end();
  };
  QTRY_VERIFY(isLit(forward[1]) && isLit(forward[4]));
  QVERIFY(!isLit(forward[7]) && !isLit(gradientOp(2)));
  QVERIFY(!graph().ways().edges.empty());
  QVERIFY(graph().textOf(graph().boxOf(forward[1])).contains(QStringLiteral("on a lit way")));
  fixture_->picture(QStringLiteral("graph-ways"));
  graph().setFocus();
  QTest::keyClick(&graph(), Qt::Key_Escape);
  QVERIFY(graph().ways().boxes.empty());
}

void GraphMarksTest::breakpointAndExecutionShow() {
  const auto op = gradientOp(2);
  const int box = show(op);
  QTest::mouseClick(&graph(), Qt::LeftButton, {}, middle(box));
  QVERIFY(standsStill(graph()));
  const auto before = graph().grab().toImage();
  graph().setFocus();
  QTest::keyClick(&graph(), Qt::Key_F9);
  QVERIFY(fixture_->window().context().execution->hasBreakpoint(op));
  QVERIFY(graph().grab().toImage() != before);
  fixture_->controller().run().continueForward();
  QVERIFY(fixture_->settle());
  QCOMPARE(fixture_->execution().current, op);
  QVERIFY(QRectF(graph().rect()).intersects(graph().boxRect(graph().boxOf(op))));
  fixture_->picture(QStringLiteral("graph-stopped"));
  fixture_->controller().marks().toggleBreakpoint(op);
  fixture_->controller().run().restart();
  QVERIFY(fixture_->settle());
}

void GraphMarksTest::overlaysShowInWords() {
  const auto op = fixture_->analysis().forward.ops[1];
  const auto box = [&] { return graph().boxOf(op); };
  show(op);
  auto& choice = fixture_->window().listings().graphPane().overlayChoice();
  for (auto overlay : overlays) {
    QVERIFY(standsStill(graph()));
    const auto before = graph().grab().toImage();
    choice.setCurrentIndex(choice.findData(static_cast<int>(overlay)));
    Q_EMIT choice.activated(choice.currentIndex());
    QCOMPARE(graph().overlay(), overlay);
    if (overlay == Overlay::role) continue;
    QVERIFY(QTest::qWaitFor([&] { return graph().overlayShown() && graph().overlayShown()->kind() == overlay; }, 5000));
    QVERIFY(graph().grab().toImage() != before);
    QVERIFY(!graph().overlayShown()->legend().empty());
  }
  QVERIFY(graph().textOf(box()).contains(QStringLiteral("f32")));  // the last is dtype
  graph().setOverlay(Overlay::bytes);
  QVERIFY(graph().textOf(box()).contains(QStringLiteral("320 B")));  // 8 x 10 floats
  fixture_->picture(QStringLiteral("graph-bytes"));
  // The legend is below the graph, not over it.
  const auto lowest = [&] {
    graph().zoomToFit();
    double bottom = 0;
    for (int i = 0; i < static_cast<int>(graph().picture()->scene.boxes.size()); ++i)
      bottom = std::max(bottom, graph().boxRect(i).bottom());
    return bottom;
  };
  const auto withLegend = lowest();
  graph().setOverlay(Overlay::role);
  QVERIFY2(withLegend <= lowest() - 16, qPrintable(QString::number(withLegend)));
  graph().setOverlay(Overlay::role);
  QVERIFY(!graph().overlayShown());
}

void GraphMarksTest::devicesAreReported() {
  const auto op = fixture_->analysis().forward.ops[1];
  show(op);
  graph().setOverlay(Overlay::device);
  QVERIFY(graph().textOf(graph().boxOf(op)).contains(QStringLiteral("cpu")));
  const auto legend = graph().overlayShown()->legend();
  QCOMPARE(legend.size(), std::size_t(1));
  QCOMPARE(legend[0].text, QStringLiteral("cpu"));
  // A group shows what all its ops are on.
  graph().setAllOpen(false);
  QVERIFY(laidOut());
  QVERIFY(graph().textOf(0).contains(QStringLiteral("cpu")));
  graph().setOverlay(Overlay::role);
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::GraphMarksTest)
#include "graph_marks_test.moc"
