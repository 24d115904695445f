#include <QAbstractSpinBox>
#include <QCheckBox>
#include <QComboBox>
#include <QDialog>
#include <QHeaderView>
#include <QHelpEvent>
#include <QLabel>
#include <QLayout>
#include <QScreen>
#include <QScrollBar>
#include <QSignalSpy>
#include <QStyle>
#include <QStyleOption>
#include <QTest>
#include <QToolBar>
#include <QToolButton>
#include <QTreeView>
#include <cmath>
#include <set>

#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/canvases/schedule_view.h"
#include "views/models/modules_model.h"
#include "views/numbers/gradient_flow_chart.h"
#include "views/theme/theme_colors.h"
#include "views/theme/tokens.h"
#include "views/widgets/elided_label.h"
#include "views/window/diff_window.h"

namespace retrograd::views {

/// What one sees first: the window as it comes, without settings.
class LookTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void forwardAndBackwardAreSideBySide();
  void codeIsCutInItsMiddle();
  void columnsNeverPushTheCodeOut();
  void theGutterIsNarrow();
  void someDocksAreOpenOthersOnDemand();
  void aTabNamesItsDockAlone();
  void theWindowTakesMostOfTheScreen();
  void selectionIsABarAndGreyWithoutFocus();
  void stepsAreTwoNamedGroups();
  void breakOnNanIsSeenToBeOn();
  void controlsStandOutInAllThemes();
  void controlsOfNarrowDocksAreWhole();
  void modulesShowWholeNumbers();
  void namesTakeTheRoomThatNumbersLeave();
  void aLineThatIsCutHasItsWholeText();
  void windowsFitTheScreen();
  void theChartsSelectionIsSeenInAnInactiveWindow();
  void ratiosHaveAColourOfTheirOwn();
  void barsThatShareAPlaceShowTheGreatest();
  void aMenuHasItsArrowAfterItsName();
};

namespace {

QDockWidget* dock(WindowFixture& f, const char* name) {
  return f.window().findChild<QDockWidget*>(QLatin1String(name));
}

std::unique_ptr<WindowFixture> opened(std::shared_ptr<Engine> engine = std::make_shared<FakeEngine>()) {
  auto f = std::make_unique<WindowFixture>(std::move(engine), WindowFixture::Start::asItComes);
  f->window().resize(1280, 800);
  if (!f->open(QStringLiteral("synthetic:3"))) qFatal("no file");
  return f;
}

QImage imageOf(QWidget& widget) { return widget.grab().toImage(); }

bool hasColor(const QImage& image, const QColor& color) {
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x)
      if (image.pixelColor(x, y).rgb() == color.rgb()) return true;
  return false;
}

double luminance(const QColor& color) {
  const auto linear = [](double part) {
    return part <= 0.04045 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) + 0.0722 * linear(color.blueF());
}

double contrast(const QColor& a, const QColor& b) {
  const auto [low, high] = std::minmax({luminance(a), luminance(b)});
  return (high + 0.05) / (low + 0.05);
}

}  // namespace

// Holds V6: forward and backward side by side, equally wide; joint and computation one key away.
void LookTest::forwardAndBackwardAreSideBySide() {
  const auto f = opened();
  auto& listings = f->window().listings();
  QVERIFY(listings.isShown(TraceKind::forward) && listings.isShown(TraceKind::backward));
  QVERIFY(!listings.isShown(TraceKind::joint) && !listings.isShown(TraceKind::computation) && !listings.isGraphShown());
  QVERIFY(std::abs(f->listing(TraceKind::forward).width() - f->listing(TraceKind::backward).width()) <= 2);
  f->listing(TraceKind::forward).setFocus();
  f->press(Qt::Key_1, Qt::ControlModifier);
  QVERIFY(listings.isShown(TraceKind::joint));
  f->press(Qt::Key_C);
  QVERIFY(listings.isShown(TraceKind::computation));
}

// Holds V6: what does not fit is cut in the middle of the code.
void LookTest::codeIsCutInItsMiddle() {
  const auto f = opened();
  const auto& analysis = f->analysis();
  for (auto op : analysis.joint.ops) {
    const auto line = lineOf(*analysis.document, op, nullptr, true);
    const auto code = line.text.left(line.code());
    QVERIFY(!code.contains(QLatin1Char('#')) && line.text.mid(line.code()).startsWith(QStringLiteral("  # ")));
    QVERIFY(line.text.mid(line.code()).contains(line.shape));
    QCOMPARE(codeWithin(line, static_cast<int>(code.size())).text, code);
    for (int room : {1, 2, 7, 16, 24}) {
      if (room >= code.size()) continue;
      const auto shown = codeWithin(line, room);
      QCOMPARE(shown.text.size(), room);
      const auto cut = shown.text.indexOf(QChar(0x2026));
      QVERIFY(cut >= 0);
      QVERIFY(code.startsWith(shown.text.left(cut)) && code.endsWith(shown.text.mid(cut + 1)));
      if (room >= 7) QVERIFY(shown.text.endsWith(QLatin1Char(')')) && cut > 0);
      int end = 0;  // tokens cover the text in order
      for (const auto& token : shown.tokens) {
        QCOMPARE(token.begin, end);
        end += token.length;
      }
      QCOMPARE(end, room);
    }
  }
}

// Holds V6: shapes and origins are columns at the right that never push the code out.
void LookTest::columnsNeverPushTheCodeOut() {
  const auto f = opened();
  auto& view = f->listing(TraceKind::backward);
  const qreal character = QFontMetricsF(Theme::codeFont()).horizontalAdvance(QLatin1Char('m'));
  bool shapes = false, origins = false, none = false;
  for (int width : {700, 1000, 1280, 1900, 2500}) {
    f->window().resize(width, 800);
    view.setColumn(width == 700 ? OpFigure::time : OpFigure::none);  // numbers take room first
    imageOf(view);
    const auto columns = view.columns();
    shapes = shapes || columns.shape < columns.origin;
    origins = origins || columns.origin < columns.saved;
    none = none || (width == 700 && columns.codeEnd == view.columnRect().left());
    QVERIFY(columns.codeEnd <= columns.shape && columns.shape <= columns.origin &&
            columns.origin <= view.viewport()->width());
    for (int row = 0; row < view.rowCount(); ++row) {
      if (view.isHeader(row)) continue;
      const auto shown = view.shownCode(row);
      for (const auto& part : shown.parts(0, static_cast<int>(shown.text.size())))
        QVERIFY(view.textLeft(row) + (part.column + part.length) * character <= columns.codeEnd + character);
      const auto whole = view.textAt(row);
      if (columns.codeEnd < view.viewport()->width())
        QVERIFY(shown.text.size() >= std::min<qsizetype>(24, whole.indexOf(QStringLiteral("  # "))));
    }
  }
  QVERIFY(shapes && origins && none);
}

// Holds V6: the gutter has 28 pixels.
void LookTest::theGutterIsNarrow() {
  const auto f = opened();
  auto& view = f->listing(TraceKind::forward);
  const auto image = imageOf(*view.viewport());
  const auto border = f->theme().colors().border.rgb();
  int x = 0;
  while (x < image.width() && image.pixelColor(x, image.height() / 3).rgb() != border) ++x;
  QCOMPARE(x, 27);
  view.setNumbers(true);  // they widen it
  QCOMPARE(imageOf(*view.viewport()).pixelColor(x, image.height() / 3).rgb() == border, false);
}

// Holds V7: Modules, Inspector with Why, Values and Memory are open; the others when they are asked for or have
// something to say, and remember that.
void LookTest::someDocksAreOpenOthersOnDemand() {
  auto engine = std::make_shared<FakeEngine>();
  engine->badAt = 5;
  const auto f = opened(engine);
  std::set<QString> open;
  for (auto* each : f->window().docks())
    if (!each->isHidden()) open.insert(each->objectName());
  QCOMPARE(open, (std::set<QString>{QStringLiteral("dock-modules"), QStringLiteral("dock-inspector"),
                                    QStringLiteral("dock-why"), QStringLiteral("dock-values"),
                                    QStringLiteral("dock-memory")}));
  const auto op = f->analysis().forward.ops[2];
  f->click(TraceKind::forward, op);
  f->press(Qt::Key_X);
  QVERIFY(!dock(*f, "dock-references")->isHidden());
  QVERIFY(dock(*f, "dock-findings")->isHidden());
  f->window().findChild<QAction*>(QStringLiteral("action-check-run"))->trigger();
  QTRY_VERIFY(!dock(*f, "dock-findings")->isHidden());
  QTRY_VERIFY(!dock(*f, "dock-findings")->visibleRegion().isEmpty());
  const auto arranged = f->window().arrangement();
  f->window().resetLayout();
  QVERIFY(dock(*f, "dock-findings")->isHidden());
  QVERIFY(f->window().arrange(arranged));
  QVERIFY(!dock(*f, "dock-findings")->isHidden());
}

// Holds V7: a tab bar names a dock, its title bar then not again.
void LookTest::aTabNamesItsDockAlone() {
  const auto f = opened();
  const auto title = [](QDockWidget& dock) {
    QStyleOptionDockWidget option;
    option.initFrom(&dock);
    option.rect = QRect(0, 0, 200, 24);
    option.title = QStringLiteral("MMMM");
    QImage image(200, 24, QImage::Format_RGB32);
    image.fill(dock.palette().color(QPalette::Window));
    QPainter painter(&image);
    dock.style()->drawControl(QStyle::CE_DockWidgetTitle, &option, &painter, &dock);
    painter.end();
    std::set<QRgb> colors;
    for (int x = 4; x < 80; ++x) colors.insert(image.pixel(x, 12));
    return colors.size() > 2;
  };
  QVERIFY(!title(*dock(*f, "dock-inspector")));  // Why is behind it
  QVERIFY(title(*dock(*f, "dock-values")));
  dock(*f, "dock-why")->hide();
  QVERIFY(title(*dock(*f, "dock-inspector")));
}

// Holds V8: the window takes 85 % of the screen at its first start.
void LookTest::theWindowTakesMostOfTheScreen() {
  WindowFixture f(std::make_shared<FakeEngine>(), WindowFixture::Start::asItComes);
  const auto screen = f.window().screen()->availableGeometry().size();
  QCOMPARE(f.window().height(), screen.height() * 85 / 100);
  // Tool bars and panels may need more than that of a narrow screen, never more than there is.
  QVERIFY(f.window().width() >= screen.width() * 85 / 100 && f.window().width() <= screen.width());
}

// Holds V8: execution is an arrow and selection a bar; the selection of a view without focus is grey.
void LookTest::selectionIsABarAndGreyWithoutFocus() {
  const auto f = opened();
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

// Holds V8: back and forward steps are two groups with their names; Run and Continue are labelled.
void LookTest::stepsAreTwoNamedGroups() {
  const auto f = opened();
  auto* bar = f->window().findChild<QToolBar*>(QStringLiteral("toolbar-run"));
  QStringList order;
  for (auto* action : bar->actions()) {
    auto* widget = bar->widgetForAction(action);
    if (auto* label = qobject_cast<QLabel*>(widget); label && label->objectName().isEmpty()) order << label->text();
    if (action->objectName() == QStringLiteral("action-step-over-back")) order << QStringLiteral("<");
    if (action->objectName() == QStringLiteral("action-step-over")) order << QStringLiteral(">");
  }
  QCOMPARE(order,
           (QStringList{QStringLiteral("Back"), QStringLiteral("<"), QStringLiteral("Forward"), QStringLiteral(">")}));
  auto* resume = f->window().actions().resume;
  auto* button = qobject_cast<QToolButton*>(bar->widgetForAction(resume));
  QCOMPARE(button->toolButtonStyle(), Qt::ToolButtonTextBesideIcon);
  QCOMPARE(button->text(), QStringLiteral("Run"));
  f->window().actions().stepOver->trigger();
  QTRY_VERIFY(f->settle() && f->execution().position > 0);
  QCOMPARE(button->text(), QStringLiteral("Continue"));
}

// Holds V8: Break on NaN is seen to be on, by shape as by colour.
void LookTest::breakOnNanIsSeenToBeOn() {
  const auto f = opened();
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

// Holds V11: scroll bars, dock buttons and the chosen tab are seen in every look, by contrast computed as for text; the
// scroll bar also as it is painted.
void LookTest::controlsStandOutInAllThemes() {
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

// No control of a dock is narrower than its text where the window is small, none covers another, and the schedule's
// cells have room next to their table.
void LookTest::controlsOfNarrowDocksAreWhole() {
  const auto f = opened();
  for (const char* name : {"dock-stages", "dock-schedule", "dock-compare"}) {
    auto* panel = f->raise(name);
    QVERIFY(panel);
    QVERIFY(standsStill(*panel));
    int seen = 0;
    std::vector<QRect> places;
    for (auto* control : panel->findChildren<QWidget*>()) {
      const bool isControl =
          qobject_cast<QAbstractSpinBox*>(control) || qobject_cast<QComboBox*>(control) ||
          qobject_cast<QCheckBox*>(control) ||
          (qobject_cast<QToolButton*>(control) && !qobject_cast<QToolButton*>(control)->text().isEmpty()) ||
          (qobject_cast<QLabel*>(control) && qobject_cast<QLabel*>(control)->buddy() != nullptr);
      if (!isControl || !control->isVisible()) continue;
      ++seen;
      QVERIFY2(control->width() >= control->sizeHint().width(), qPrintable(QStringLiteral("%1 has %2 of %3 pixels")
                                                                               .arg(control->objectName())
                                                                               .arg(control->width())
                                                                               .arg(control->sizeHint().width())));
      const QRect place(control->mapTo(panel, QPoint(0, 0)), control->size());
      QVERIFY(panel->rect().contains(place));
      const auto what = QStringLiteral("%1: %2 at %3")
                            .arg(QLatin1String(name), QLatin1String(control->metaObject()->className()))
                            .arg(place.x());
      for (const auto& other : places) QVERIFY2(!place.intersects(other), qPrintable(what));
      places.push_back(place);
    }
    QVERIFY2(seen >= 4, name);
  }
  // Nor of the graph next to three listings, where none covers another.
  for (auto* action : {f->window().listings().toggleAction(TraceKind::joint), f->window().listings().graphAction()})
    action->setChecked(true);
  const auto& pane = f->window().listings().graphPane();
  QTRY_VERIFY(pane.isVisible() && pane.width() < 300);
  std::vector<QRect> places;
  for (auto* control : pane.findChildren<QWidget*>()) {
    if (!control->isVisible() || !(qobject_cast<QComboBox*>(control) || qobject_cast<QToolButton*>(control))) continue;
    QTRY_VERIFY(control->width() >= control->sizeHint().width());
    const QRect place(control->mapTo(&pane, QPoint(0, 0)), control->size());
    QVERIFY(pane.rect().contains(place));
    for (const auto& other : places) QVERIFY(!place.intersects(other));
    places.push_back(place);
  }
  QVERIFY(places.size() >= 9);
  const auto* cells = f->window().findChild<ScheduleView*>();
  const auto* table = f->window().findChild<QWidget*>(QStringLiteral("schedule-ranks"));
  QVERIFY2(3 * cells->width() >= table->width(),
           qPrintable(QStringLiteral("%1 next to %2").arg(cells->width()).arg(table->width())));
}

// Numbers of a large model are not cut, in the narrow panel that they start in and in a wide one.
void LookTest::modulesShowWholeNumbers() {
  WindowFixture f(std::make_shared<FakeEngine>(), WindowFixture::Start::asItComes);
  f.window().resize(1280, 720);
  QVERIFY(f.open(QStringLiteral("synthetic:1200")));
  const auto* tree = f.window().findChild<QTreeView*>(QStringLiteral("modules"));
  QTRY_VERIFY(tree->model()->rowCount() > 0);
  const auto all = tree->model()->index(0, ModulesModel::forward);
  QVERIFY(all.data().toInt() >= 1000);
  const auto areWhole = [&] {
    int shown = 0;
    for (int column = ModulesModel::time; column < ModulesModel::columns; ++column) {
      const auto cell = all.siblingAtColumn(column);
      if (tree->isColumnHidden(column)) continue;
      if (tree->visualRect(cell).width() < tree->sizeHintForIndex(cell).width()) return 0;
      ++shown;
    }
    return shown;
  };
  QTRY_VERIFY(areWhole() >= 1);
  auto* dock = f.window().findChild<QDockWidget*>(QStringLiteral("dock-modules"));
  f.window().resize(2000, 720);
  f.window().resizeDocks({dock}, {600}, Qt::Horizontal);
  QTRY_COMPARE(areWhole(), ModulesModel::columns - 1);
}

// Holds V9: names of parameters take the room that the numbers leave.
void LookTest::namesTakeTheRoomThatNumbersLeave() {
  const auto f = opened();
  f->window().resize(2400, 900);
  auto* panel = f->raise("dock-gradient-flow");
  QVERIFY(panel);
  const auto* table = panel->findChild<QTreeView*>(QStringLiteral("gradient-flow"));
  QTRY_VERIFY(table->viewport()->width() > 500);
  QTRY_COMPARE(table->header()->length(), table->viewport()->width());
}

void LookTest::aLineThatIsCutHasItsWholeText() {
  ElidedLabel label;
  const auto text = QStringLiteral("linear_6  f32[2, 16, 128]  16 KiB");
  label.setText(text);
  const auto tip = [&] {
    QHelpEvent event(QEvent::ToolTip, QPoint(1, 1), label.mapToGlobal(QPoint(1, 1)));
    QApplication::sendEvent(&label, &event);
    return label.toolTip();
  };
  label.resize(label.fontMetrics().horizontalAdvance(text) + 2, 20);
  QCOMPARE(label.shownText(), text);
  QCOMPARE(tip(), QString());
  label.resize(label.width() / 2, 20);
  QVERIFY(label.shownText().contains(QChar(0x2026)) && label.shownText().startsWith(QLatin1Char('l')) &&
          label.shownText().endsWith(QLatin1Char('B')));
  QCOMPARE(tip(), text);
  QCOMPARE(label.text(), text);
  label.setExplanation(QStringLiteral("what it means"));
  QCOMPARE(tip(), text + QStringLiteral("\nwhat it means"));
}

void LookTest::windowsFitTheScreen() {
  const auto f = opened();
  const auto screen = f->window().screen()->availableGeometry().size();
  const auto* comparison = f->window().findChild<DiffWindow*>();
  QVERIFY(comparison);
  QVERIFY(comparison->width() <= screen.width() * tokens::firstShare &&
          comparison->height() <= screen.height() * tokens::firstShare);
}

// The line of the selected op would vanish in the grey that lists have for a selection without focus.
void LookTest::theChartsSelectionIsSeenInAnInactiveWindow() {
  const auto f = opened();
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

void LookTest::ratiosHaveAColourOfTheirOwn() {
  const auto f = opened();
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
void LookTest::barsThatShareAPlaceShowTheGreatest() {
  const auto f = opened();
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

void LookTest::aMenuHasItsArrowAfterItsName() {
  const auto f = opened();
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

WINDOW_TEST(retrograd::views::LookTest)
#include "look_test.moc"
