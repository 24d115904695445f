#include <QAbstractSpinBox>
#include <QCheckBox>
#include <QComboBox>
#include <QHeaderView>
#include <QHelpEvent>
#include <QLabel>
#include <QScreen>
#include <QStyle>
#include <QStyleOption>
#include <QTest>
#include <QToolBar>
#include <QToolButton>
#include <QTreeView>
#include <cmath>
#include <set>

#include "tests/views/pictures.h"
#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/canvases/schedule_view.h"
#include "views/models/modules_model.h"
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
  void stepsAreTwoNamedGroups();
  void controlsOfNarrowDocksAreWhole();
  void modulesShowWholeNumbers();
  void namesTakeTheRoomThatNumbersLeave();
  void aLineThatIsCutHasItsWholeText();
  void aSentenceThatIsCutEndsWithAnEllipsis();
  void windowsFitTheScreen();
};

namespace {

QDockWidget* dock(WindowFixture& f, const char* name) {
  return f.window().findChild<QDockWidget*>(QLatin1String(name));
}

}  // namespace

// Forward and backward side by side, equally wide; joint and computation one key away.
void LookTest::forwardAndBackwardAreSideBySide() {
  const auto f = openedAsItComes();
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

// What does not fit is cut in the middle of the code.
void LookTest::codeIsCutInItsMiddle() {
  const auto f = openedAsItComes();
  const auto& analysis = f->analysis();
  for (auto op : analysis.joint.ops) {
    const auto line = lineOf(*analysis.document, op, nullptr, true);
    const auto code = line.text.left(line.code());
    QVERIFY(!code.contains(QLatin1Char('#')) && line.text.mid(line.code()).startsWith(QStringLiteral("  # ")));
    QVERIFY(line.text.mid(line.code()).contains(line.words[TextColumn::shape]));
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

// Shapes and origins are columns at the right that never push the code out.
void LookTest::columnsNeverPushTheCodeOut() {
  const auto f = openedAsItComes();
  auto& view = f->listing(TraceKind::backward);
  const qreal character = QFontMetricsF(Theme::codeFont()).horizontalAdvance(QLatin1Char('m'));
  bool shapes = false, origins = false, none = false;
  for (int width : {700, 1000, 1280, 1900, 2500}) {
    f->window().resize(width, 800);
    view.setColumn(width == 700 ? OpFigure::time : OpFigure::none);  // numbers take room first
    imageOf(view);
    const auto columns = view.columns();
    const auto shows = [&](TextColumn column) { return columns.left[column] < columns.right[column]; };
    shapes = shapes || shows(TextColumn::shape);
    origins = origins || shows(TextColumn::origin);
    none = none || (width == 700 && !columns.without.empty());
    QVERIFY(columns.codeEnd <= columns.left[TextColumn::shape] && columns.end <= view.viewport()->width());
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

// The gutter has 28 pixels.
void LookTest::theGutterIsNarrow() {
  const auto f = openedAsItComes();
  auto& view = f->listing(TraceKind::forward);
  const auto image = imageOf(*view.viewport());
  const auto border = f->theme().colors().border.rgb();
  int x = 0;
  while (x < image.width() && image.pixelColor(x, image.height() / 3).rgb() != border) ++x;
  QCOMPARE(x, 27);
  view.setNumbers(true);  // they widen it
  QCOMPARE(imageOf(*view.viewport()).pixelColor(x, image.height() / 3).rgb() == border, false);
}

// Modules, Why, Values and Memory are open; the others when they are asked for or have
// something to say, and remember that.
void LookTest::someDocksAreOpenOthersOnDemand() {
  auto engine = std::make_shared<FakeEngine>();
  engine->badAt = 5;
  const auto f = openedAsItComes(engine);
  std::set<QString> open;
  for (auto* each : f->window().docks())
    if (!each->isHidden()) open.insert(each->objectName());
  QCOMPARE(open, (std::set<QString>{QStringLiteral("dock-modules"), QStringLiteral("dock-why"),
                                    QStringLiteral("dock-values"), QStringLiteral("dock-memory")}));
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

// A tab bar names a dock, its title bar then not again.
void LookTest::aTabNamesItsDockAlone() {
  const auto f = openedAsItComes();
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
  QVERIFY(title(*dock(*f, "dock-values")));
  dock(*f, "dock-watches")->show();  // behind it
  QVERIFY(!title(*dock(*f, "dock-values")));
  QVERIFY(title(*dock(*f, "dock-why")));
  dock(*f, "dock-watches")->hide();
  QVERIFY(title(*dock(*f, "dock-values")));
}

// The window takes 85 % of the screen at its first start.
void LookTest::theWindowTakesMostOfTheScreen() {
  WindowFixture f(std::make_shared<FakeEngine>(), WindowFixture::Start::asItComes);
  const auto screen = f.window().screen()->availableGeometry().size();
  QCOMPARE(f.window().height(), screen.height() * 85 / 100);
  // Tool bars and panels may need more than that of a narrow screen, never more than there is.
  QVERIFY(f.window().width() >= screen.width() * 85 / 100 && f.window().width() <= screen.width());
}

// Back and forward steps are two groups with their names and one order; Continue is labelled.
void LookTest::stepsAreTwoNamedGroups() {
  const auto f = openedAsItComes();
  auto* bar = f->window().findChild<QToolBar*>(QStringLiteral("toolbar-run"));
  QStringList order;
  for (auto* action : bar->actions()) {
    auto* widget = bar->widgetForAction(action);
    if (auto* label = qobject_cast<QLabel*>(widget); label && label->objectName().isEmpty()) order << label->text();
    const auto name = action->objectName().remove(QStringLiteral("action-"));
    if (name.startsWith(QStringLiteral("step-")) || name.startsWith(QStringLiteral("continue"))) order << name;
  }
  const QStringList steps{"continue", "step-over", "step-into", "step-out"};
  QStringList wanted{QStringLiteral("Run back")};
  for (const auto& step : steps) wanted << step + QStringLiteral("-back");
  QCOMPARE(order, wanted << QStringLiteral("Run") << steps);
  auto* resume = f->window().actions().resume;
  auto* button = qobject_cast<QToolButton*>(bar->widgetForAction(resume));
  QCOMPARE(button->toolButtonStyle(), Qt::ToolButtonTextBesideIcon);
  QCOMPARE(button->text(), QStringLiteral("Continue"));
  QVERIFY(resume->toolTip().startsWith(button->text()));
  f->window().actions().stepOver->trigger();
  QTRY_VERIFY(f->settle() && f->execution().position > 0);
  QCOMPARE(button->text(), QStringLiteral("Continue"));
}

// No control of a dock is narrower than its text where the window is small, none covers another, and the schedule's
// cells have room next to their table.
void LookTest::controlsOfNarrowDocksAreWhole() {
  const auto f = openedAsItComes();
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
  const auto all = tree->model()->index(0, ModulesModel::ops);
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
  QTRY_COMPARE(areWhole(), ModulesModel::columns - 2);  // updates are of a recorded step
}

// Names of parameters take the room that the numbers leave.
void LookTest::namesTakeTheRoomThatNumbersLeave() {
  const auto f = openedAsItComes();
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

void LookTest::aSentenceThatIsCutEndsWithAnEllipsis() {
  WrappedLabel label;
  label.setText(QStringLiteral("one two three four five six seven eight nine ten\neleven twelve"));
  const int width = label.fontMetrics().horizontalAdvance(QStringLiteral("one two three four"));
  label.resize(width, label.heightForWidth(width));
  QVERIFY(!label.isCut());
  QCOMPARE(label.shownLines().join(QLatin1Char(' ')),
           QString(label.text()).replace(QLatin1Char('\n'), QLatin1Char(' ')));
  label.resize(width, 2 * label.fontMetrics().lineSpacing());
  QVERIFY(label.isCut());
  QCOMPARE(label.shownLines().size(), 2);
  QVERIFY(label.shownLines().last().endsWith(QChar(0x2026)));
  QVERIFY(!label.shownLines().first().contains(QChar(0x2026)));
  QVERIFY(label.minimumSizeHint().height() >= label.fontMetrics().height());
}

void LookTest::windowsFitTheScreen() {
  const auto f = openedAsItComes();
  const auto screen = f->window().screen()->availableGeometry().size();
  const auto* comparison = f->window().findChild<DiffWindow*>();
  QVERIFY(comparison);
  QVERIFY(comparison->width() <= screen.width() * tokens::firstShare &&
          comparison->height() <= screen.height() * tokens::firstShare);
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::LookTest)
#include "look_test.moc"
