#include <QDialog>
#include <QPushButton>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTest>
#include <QToolBar>
#include <QToolButton>
#include <set>

#include "core/page/html.h"
#include "tests/views/pictures.h"
#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/memory/memory_history_view.h"
#include "views/numbers/gradient_flow_chart.h"
#include "views/theme/theme_colors.h"
#include "views/theme/tokens.h"

namespace retrograd::views {

/// What is told apart by colour: marks, controls and charts, in each theme.
class ColorsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void selectionIsABarAndGreyWithoutFocus();
  void breakOnNanIsSeenToBeOn();
  void controlsStandOutInAllThemes();
  void highContrastShowsFocusAndWhatIsDisabledByShape();
  void theChartsSelectionIsSeenInAnInactiveWindow();
  void ratiosHaveAColourOfTheirOwn();
  void barsThatShareAPlaceShowTheGreatest();
  void aMenuHasItsArrowAfterItsName();
  void W47_aCategoryOfMemoryHasOneColour();
};

// W47: in the timeline, in snapshots and in pages.
void ColorsTest::W47_aCategoryOfMemoryHasOneColour() {
  const auto style = QString::fromStdString(std::string(pageStyle()));
  for (const bool dark : {false, true}) {
    Theme theme(*qApp);
    theme.choose(dark ? Theme::Choice::dark : Theme::Choice::light);
    const auto& uses = theme.colors().memory;
    QStringList css;
    for (std::size_t i = 0; i < memoryUseCount; ++i)
      css << QStringLiteral("--u%1: %2;").arg(i).arg(uses.entries[i].name());
    QVERIFY2(style.contains(css.join(QLatin1Char(' '))), qPrintable(css.join(QLatin1Char(' '))));
    const auto of = [&](MemoryCategory category) { return MemoryHistoryView::colorOf(theme, category); };
    QCOMPARE(of(MemoryCategory::activation), uses[MemoryUse::saved]);
    QCOMPARE(of(MemoryCategory::gradient), uses[MemoryUse::gradient]);
    QCOMPARE(of(MemoryCategory::temporary), uses[MemoryUse::forward]);
    std::set<QRgb> all;
    for (std::size_t i = 0; i < memoryCategoryCount; ++i) all.insert(of(static_cast<MemoryCategory>(i)).rgb());
    QCOMPARE(all.size(), memoryCategoryCount);
  }
}

// Execution is an arrow and selection a bar; the selection of a view without focus is grey.
void ColorsTest::selectionIsABarAndGreyWithoutFocus() {
  const auto f = openedAsItComes();
  auto& view = f->listing(TraceKind::forward);
  const auto op = f->analysis().forward.ops[2];
  f->click(TraceKind::forward, op);
  const auto at = view.rowRect(view.rowOf(op)).center();
  const auto grey = controlColorsOf(false, false);
  QCOMPARE(imageOf(*view.viewport()).pixelColor(29, at.y()),
           QApplication::palette().color(QPalette::Active, QPalette::Highlight));
  QCOMPARE(imageOf(*view.viewport()).pixelColor(40, at.y()), f->theme().colors().selected);
  f->listing(TraceKind::backward).setFocus();
  QCOMPARE(imageOf(*view.viewport()).pixelColor(29, at.y()), grey.idleBar);
  QCOMPARE(imageOf(*view.viewport()).pixelColor(40, at.y()), grey.idleSelection);
  // Where execution is the arrow is in the gutter, and the line is not marked by itself.
  const auto next = view.rowRect(view.rowOf(f->execution().current));
  QVERIFY(hasColor(imageOf(*view.viewport()).copy(0, next.top(), 14, next.height()), f->theme().colors().execution));
  QVERIFY(
      !hasColor(imageOf(*view.viewport()).copy(28, next.top(), 300, next.height()), f->theme().colors().executionLine));
}

// Break on NaN is seen to be on, by shape as by colour.
void ColorsTest::breakOnNanIsSeenToBeOn() {
  const auto f = openedAsItComes();
  auto* bar = f->window().findChild<QToolBar*>(QStringLiteral("toolbar-run"));
  auto* action = f->window().actions().breakOnBad;
  auto* button = bar->widgetForAction(action);
  const auto colors = controlColorsOf(false, false);
  QVERIFY(!hasColor(imageOf(*button), colors.checkedFill));
  action->trigger();
  QTRY_VERIFY(action->isChecked());
  const auto image = imageOf(*button);
  QVERIFY(hasColor(image, colors.checkedFill));
  QCOMPARE(image.pixelColor(image.width() / 2, image.height() - 2), colors.checkedLine);
}

// Scroll bars, dock buttons and the chosen tab are seen in every look, by contrast computed as for text; the
// scroll bar also as it is painted.
void ColorsTest::controlsStandOutInAllThemes() {
  struct Look {
    Theme::Choice choice;
    bool dark;
    double mark, text;
  };
  for (const auto& look :
       {Look{Theme::Choice::light, false, 3, 4.5}, Look{Theme::Choice::dark, true, 3, 4.5},
        Look{Theme::Choice::highContrast, false, 4.5, 7}, Look{Theme::Choice::highContrast, true, 4.5, 7}}) {
    Theme theme(*qApp, nullptr, [&look] { return look.dark; });
    theme.choose(look.choice);
    const auto c = controlColorsOf(theme.dark(), theme.highContrast());
    const auto palette = QApplication::palette();
    const auto window = palette.color(QPalette::Window), base = palette.color(QPalette::Base);
    const auto stands = [&](const QColor& a, const QColor& b, double least, const char* what) {
      QVERIFY2(contrast(a, b) >= least, qPrintable(QStringLiteral("%1: %2:1 in look %3 %4")
                                                       .arg(QLatin1String(what))
                                                       .arg(contrast(a, b))
                                                       .arg(static_cast<int>(look.choice))
                                                       .arg(look.dark)));
    };
    stands(c.scrollHandle, c.scrollGroove, look.mark, "scroll bar");
    stands(c.scrollHandleHover, c.scrollGroove, look.mark, "scroll bar that is held");
    stands(c.glyph, window, look.mark, "dock button");
    stands(c.glyph, c.checkedFill, look.mark, "dock button under the pointer");
    stands(c.tabAccent, window, look.mark, "chosen tab");
    stands(c.tabAccent, base, look.mark, "chosen tab");
    stands(c.checkedLine, c.checkedFill, look.mark, "button that is on");
    stands(c.checkedLine, window, look.mark, "button that is on");
    stands(c.idleBar, c.idleSelection, look.mark, "bar of a selection without focus");
    stands(palette.color(QPalette::ButtonText), c.checkedFill, look.text, "text of a button that is on");
    stands(c.columnText, base, look.text, "columns");
    stands(c.columnText, theme.colors().gutter, look.text, "number of the last run");
    stands(c.columnText, c.idleSelection, look.text, "columns in a selection without focus");
    for (const auto& ground :
         {theme.colors().selected, theme.colors().origin, theme.colors().derived, theme.colors().sibling})
      stands(c.columnText, ground, look.text, "columns in a marked line");
    for (const bool isBad : {false, true})
      for (const bool isBeyond : {false, true})
        stands(theme.colors().text, ListingView::barColor(theme.colors(), isBad, isBeyond), look.text,
               "number of a line on its bar");
    for (const auto& text : {theme.colors().text, theme.colors().op, theme.colors().literal, theme.colors().comment,
                             theme.colors().ownWords, theme.colors().header})
      stands(text, c.idleSelection, look.text, "code in a selection without focus");
    stands(palette.color(QPalette::Inactive, QPalette::HighlightedText),
           palette.color(QPalette::Inactive, QPalette::Highlight), look.text, "row without focus");
    QScrollBar bar(Qt::Vertical);
    bar.setRange(0, 100);
    bar.setPageStep(50);
    bar.resize(16, 300);
    const auto image = bar.grab().toImage();
    stands(image.pixelColor(8, 40), image.pixelColor(8, 260), look.mark, "scroll bar as painted");
  }
}

// With high contrast the focus is a thick ring in the text's colour, and the ring is dashed where nothing
// can be pressed.
void ColorsTest::highContrastShowsFocusAndWhatIsDisabledByShape() {
  Theme theme(*qApp, nullptr, [] { return false; });
  theme.choose(Theme::Choice::highContrast);
  QWidget window;
  window.resize(300, 120);
  auto* other = new QPushButton(&window);
  auto* button = new QPushButton(QStringLiteral("press"), &window);
  button->setGeometry(100, 40, 120, 40);
  window.show();
  window.activateWindow();
  QVERIFY(QTest::qWaitForWindowActive(&window));
  other->setFocus();
  const auto text = QApplication::palette().color(QPalette::Active, QPalette::WindowText);
  const auto inked = [&](const QImage& image) {  // pixels of the text's colour from the left edge on
    int x = 0;
    while (x < image.width() && image.pixelColor(x, image.height() / 2) == text) ++x;
    return x;
  };
  QCOMPARE(inked(imageOf(*button)), 1);
  button->setFocus();
  QTRY_COMPARE(inked(imageOf(*button)), tokens::focusRing);
  button->setEnabled(false);
  const auto disabled = imageOf(*button);
  const auto line = QApplication::palette().color(QPalette::Disabled, QPalette::WindowText);
  int dashes = 0, gaps = 0;
  for (int x = 0; x < disabled.width(); ++x) {
    dashes += disabled.pixelColor(x, 0) == line;
    gaps += disabled.pixelColor(x, 0) == QApplication::palette().color(QPalette::Window);
  }
  QCOMPARE(dashes + gaps, disabled.width());
  QVERIFY2(dashes > gaps && gaps > disabled.width() / 8, qPrintable(QString::number(gaps)));
}

// The line of the selected op would vanish in the grey that lists have for a selection without focus.
void ColorsTest::theChartsSelectionIsSeenInAnInactiveWindow() {
  const auto f = openedAsItComes();
  auto* chart = f->window().findChild<QWidget*>(QStringLiteral("memory-timeline"));
  QVERIFY(chart && chart->isVisible());
  f->click(TraceKind::forward, f->analysis().forward.ops[2]);
  QDialog dialog(&f->window());
  dialog.show();
  dialog.activateWindow();
  QTRY_VERIFY(!f->window().isActiveWindow());
  const auto highlight = QApplication::palette().color(QPalette::Active, QPalette::Highlight);
  QTRY_VERIFY(hasColor(imageOf(*chart), highlight));
  QVERIFY(contrast(highlight, f->theme().colors().background) >= 3);
}

void ColorsTest::ratiosHaveAColourOfTheirOwn() {
  const auto f = openedAsItComes();
  GradientFlowChart chart(&f->theme());
  chart.resize(400, 200);
  chart.show({{QStringLiteral("a"), 1, 10, true}, {QStringLiteral("b"), 1, 0, true}});
  const auto& colors = f->theme().colors();
  const auto image = imageOf(chart);
  for (const auto& color : {colors.plot, colors.derivedMark, colors.originMark}) QVERIFY(hasColor(image, color));
  // A gradient of zero has no ratio on a logarithmic axis: the half of the chart that is its own has no mark.
  QVERIFY(!hasColor(image.copy(image.width() / 2 + 40, 30, image.width() / 2 - 40, image.height() - 30),
                    colors.originMark));
}

// Of a thousand parameters in a narrow chart the one whose gradient explodes is seen, and a click on it leads there.
void ColorsTest::barsThatShareAPlaceShowTheGreatest() {
  const auto f = openedAsItComes();
  GradientFlowChart chart(&f->theme());
  chart.resize(300, 200);
  std::vector<GradientFlowChart::Bar> bars(1000, {QStringLiteral("same"), 1, 1e-3, true});
  bars[617] = {QStringLiteral("exploding"), 1, 1e3, true};
  chart.show(bars);
  QCOMPARE(chart.barAt(chart.barRect(617).center().toPoint()), 617);
  const auto place = [&](std::size_t bar) { return chart.barRect(bar).toAlignedRect().adjusted(-1, 0, 1, 0); };
  const auto& colors = f->theme().colors();
  const auto image = imageOf(chart);
  const auto topHalf = [&](std::size_t bar) {
    return image.copy(place(bar).adjusted(0, 8, 0, -place(bar).height() / 2));
  };
  QVERIFY(hasColor(topHalf(617), colors.derivedMark));
  QVERIFY(!hasColor(topHalf(100), colors.derivedMark));
  QSignalSpy chosen(&chart, &GradientFlowChart::chosen);
  QTest::mouseClick(&chart, Qt::LeftButton, Qt::NoModifier, chart.barRect(617).center().toPoint());
  QCOMPARE(chosen.value(0).value(0).toInt(), 617);
  // As many as have room have one each.
  bars.resize(20);
  chart.show(bars);
  for (int bar = 0; bar < 20; ++bar)
    QCOMPARE(chart.barAt(chart.barRect(static_cast<std::size_t>(bar)).center().toPoint()), bar);
}

void ColorsTest::aMenuHasItsArrowAfterItsName() {
  const auto f = openedAsItComes();
  QToolButton* button = nullptr;
  for (auto* one : f->window().findChildren<QToolButton*>())
    if (one->accessibleName() == QStringLiteral("Menu of filters")) button = one;
  QVERIFY(button);
  const int text = button->fontMetrics().horizontalAdvance(button->text());
  QVERIFY(button->width() >= text + tokens::glyph);
  const auto image = imageOf(*button);
  const auto glyph = controlColorsOf(false, false).glyph;
  const int after = (button->width() + text) / 2;
  QVERIFY(hasColor(
      image.copy(after - tokens::glyph, image.height() / 3, image.width() - after + tokens::glyph, image.height() / 3),
      glyph));
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::ColorsTest)
#include "colors_test.moc"
