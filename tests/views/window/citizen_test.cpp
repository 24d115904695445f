#include <QAccessible>
#include <QLabel>
#include <QMenuBar>
#include <QTabBar>
#include <QTest>
#include <cmath>

#include "tests/views/pictures.h"
#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/parts/keys.h"
#include "views/theme/graph_style.h"

namespace retrograd::views {

/// What people need of a program to be able to use it at all: contrast, and names for those who hear the window.
class CitizenTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void textStandsOutInAllThemes();
  void marksStandOutInAllThemes();
  void highContrastIsHigher();
  void graphsStandOutInHighContrast();
  void theSystemIsFollowed();
  void theSystemsHighContrastIsFollowed();
  void theChoiceIsOfferedAndKept();
  void whatHasTheFocusHasAName();
  void everyCommandHasAKeyOrAPlaceInAMenu();
  void lettersOfMenusAreTakenByNothingElse();
  void theWindowFitsOnALaptop();
};

namespace {

struct Look {
  const char* name;
  Theme::Choice choice;
  bool systemDark;
  double text, mark;  ///< least contrast
};

const std::vector<Look> looks{{"light", Theme::Choice::light, false, 4.5, 3},
                              {"dark", Theme::Choice::dark, false, 4.5, 3},
                              {"light, high contrast", Theme::Choice::highContrast, false, 7, 4.5},
                              {"dark, high contrast", Theme::Choice::highContrast, true, 7, 4.5}};

struct Named {
  const char* name;
  QColor color;
};

void compare(const Look& look, const std::vector<Named>& above, const std::vector<Named>& below, double least) {
  for (const auto& text : above)
    for (const auto& ground : below) {
      const double found = contrast(text.color, ground.color);
      QVERIFY2(found >= least,
               qPrintable(QStringLiteral("%1: %2 on %3 has %4:1")
                              .arg(QLatin1String(look.name), QLatin1String(text.name), QLatin1String(ground.name))
                              .arg(found)));
    }
}

}  // namespace

void CitizenTest::textStandsOutInAllThemes() {
  QCOMPARE(std::round(contrast(Qt::black, Qt::white) * 10), 210.0);
  for (const auto& look : looks) {
    Theme theme(*qApp, nullptr, [&look] { return look.systemDark; });
    theme.choose(look.choice);
    const auto& c = theme.colors();
    compare(look,
            {{"text", c.text},
             {"op", c.op},
             {"value", c.value},
             {"literal", c.literal},
             {"comment", c.comment},
             {"header", c.header},
             {"own words", c.ownWords}},
            {{"background", c.background},
             {"selected", c.selected},
             {"origin", c.origin},
             {"derived", c.derived},
             {"sibling", c.sibling}},
            look.text);
    compare(look, {{"value", c.value}, {"text", c.text}, {"own words", c.ownWords}}, {{"value mark", c.valueMark}},
            look.text);
    compare(look, {{"gutter text", c.gutterText}}, {{"gutter", c.gutter}, {"background", c.background}}, look.text);
    const auto p = QApplication::palette();
    const auto of = [&](QPalette::ColorRole role) { return p.color(QPalette::Active, role); };
    compare(look, {{"window text", of(QPalette::WindowText)}},
            {{"error", c.error}, {"warning", c.warning}, {"note", c.note}, {"window", of(QPalette::Window)}},
            look.text);
    compare(look,
            {{"text", of(QPalette::Text)}, {"faint text", of(QPalette::PlaceholderText)}, {"link", of(QPalette::Link)}},
            {{"base", of(QPalette::Base)},
             {"alternate base", of(QPalette::AlternateBase)},
             {"window", of(QPalette::Window)}},
            look.text);
    compare(look, {{"button text", of(QPalette::ButtonText)}}, {{"button", of(QPalette::Button)}}, look.text);
    compare(look, {{"tooltip text", of(QPalette::ToolTipText)}}, {{"tooltip", of(QPalette::ToolTipBase)}}, look.text);
    compare(look, {{"chosen text", of(QPalette::HighlightedText)}}, {{"highlight", of(QPalette::Highlight)}},
            look.text);
  }
}

void CitizenTest::marksStandOutInAllThemes() {
  for (const auto& look : looks) {
    Theme theme(*qApp, nullptr, [&look] { return look.systemDark; });
    theme.choose(look.choice);
    const auto& c = theme.colors();
    compare(look,
            {{"origin mark", c.originMark},
             {"derived mark", c.derivedMark},
             {"execution", c.execution},
             {"execution line", c.executionLine},
             {"breakpoint", c.breakpoint},
             {"bad", c.bad},
             {"saved", c.saved},
             {"plot", c.plot}},
            {{"background", c.background}, {"gutter", c.gutter}}, look.mark);
  }
}

void CitizenTest::highContrastIsHigher() {
  for (bool dark : {false, true}) {
    Theme theme(*qApp, nullptr, [dark] { return dark; });
    theme.choose(Theme::Choice::system);
    const auto before = contrast(theme.colors().comment, theme.colors().background);
    theme.choose(Theme::Choice::highContrast);
    QCOMPARE(theme.dark(), dark);
    QVERIFY(contrast(theme.colors().comment, theme.colors().background) > before + 3);
    QCOMPARE(std::round(contrast(QApplication::palette().color(QPalette::WindowText),
                                 QApplication::palette().color(QPalette::Window))),
             21.0);
  }
}

void CitizenTest::graphsStandOutInHighContrast() {
  for (bool dark : {false, true}) {
    const auto c = graphColors(dark, true);
    const Look look{"graph", Theme::Choice::highContrast, dark, 7, 4.5};
    for (const auto* fill : {&c.forward, &c.backward, &c.accumulation, &c.recompute}) {
      compare(look, {{"text", c.text}, {"faint", c.faint}}, {{"box", fill->fill}}, 7);
      compare(look, {{"outline", fill->line}}, {{"canvas", c.canvas}}, 4.5);
    }
    for (const auto& edge : c.edge) compare(look, {{"edge", edge}}, {{"canvas", c.canvas}}, 4.5);
    compare(look, {{"selected", c.selected}, {"lit", c.lit}}, {{"canvas", c.canvas}}, 4.5);
  }
}

void CitizenTest::theSystemIsFollowed() {
  bool dark = false;
  Theme theme(*qApp, nullptr, [&dark] { return dark; });
  QWidget window;
  window.show();
  const auto systemChanges = [&](bool to) {
    dark = to;
    QEvent event(QEvent::ThemeChange);
    QApplication::sendEvent(window.windowHandle(), &event);
  };
  theme.choose(Theme::Choice::system);
  QVERIFY(!theme.dark());
  systemChanges(true);
  QVERIFY(theme.dark());
  QVERIFY(QApplication::palette().color(QPalette::Window).lightness() < 128);
  theme.choose(Theme::Choice::highContrast);
  QVERIFY(theme.dark());
  systemChanges(false);
  QVERIFY(!theme.dark() && theme.highContrast());
  QCOMPARE(QApplication::palette().color(QPalette::Window), QColor(Qt::white));
  theme.choose(Theme::Choice::dark);
  systemChanges(true);
  systemChanges(false);
  QVERIFY(theme.dark());  // one's own choice stays
}

void CitizenTest::theSystemsHighContrastIsFollowed() {
  const auto before = QApplication::palette();
  const auto isHigh = [](const QColor& text, const QColor& window, Theme::Choice choice) {
    QPalette palette;
    palette.setColor(QPalette::Window, window);
    palette.setColor(QPalette::WindowText, text);
    QApplication::setPalette(palette);  // as a platform sets it before the program has a theme
    Theme theme(*qApp);
    theme.choose(choice);
    return theme.highContrast();
  };
  QVERIFY(isHigh(Qt::black, Qt::white, Theme::Choice::system));
  QVERIFY(isHigh(Qt::white, Qt::black, Theme::Choice::system));
  QVERIFY(isHigh(QColor(0xfcfcfc), QColor(0x050505), Theme::Choice::system));
  QVERIFY(!isHigh(Qt::black, QColor(0xefefef), Theme::Choice::system));  // Fusion's own
  QVERIFY(!isHigh(QColor(0x232629), QColor(0xeff0f1), Theme::Choice::system));
  QVERIFY(!isHigh(Qt::black, Qt::white, Theme::Choice::light));  // a choice of one's own is heeded
  QApplication::setPalette(before);
}

void CitizenTest::theChoiceIsOfferedAndKept() {
  WindowFixture f;
  auto* action = f.window().findChild<QAction*>(QStringLiteral("action-theme-contrast"));
  QVERIFY(action);
  action->trigger();
  QVERIFY(f.theme().highContrast() && action->isChecked());
  QCOMPARE(f.window().shared().settings->value(QStringLiteral("theme")).toInt(),
           static_cast<int>(Theme::Choice::highContrast));
}

namespace {

/// Widgets that the focus can come to and that a screen reader has no words for.
QStringList nameless(QWidget& root) {
  QStringList found;
  auto widgets = root.findChildren<QWidget*>();
  widgets.prepend(&root);
  for (auto* widget : widgets) {
    if (widget->focusPolicy() == Qt::NoFocus || widget->focusProxy() ||
        widget->objectName().startsWith(QStringLiteral("qt_spinbox")))
      continue;
    if (qobject_cast<QLineEdit*>(widget) &&
        (qobject_cast<QComboBox*>(widget->parentWidget()) || widget->parentWidget()->inherits("QAbstractSpinBox")))
      continue;  // speaks as its parent
    if (widget->inherits("QComboBoxListView") || widget->inherits("QMenu") || widget->inherits("QMainWindow") ||
        (widget->isHidden() && widget->parentWidget()->inherits("QInputDialog")))
      continue;  // lists of a combo box that is named; the window has a title
    if (const auto* bar = qobject_cast<QTabBar*>(widget); bar && bar->count() == 0)
      continue;  // kept by the main window for later, out of sight
    auto* interface = QAccessible::queryAccessibleInterface(widget);
    if (const auto* box = qobject_cast<QComboBox*>(widget); box && interface) {
      // What Qt gives as its name is the chosen text: a label has to say what it is for, or the description.
      if (!interface->relations(QAccessible::Label).isEmpty() || !box->accessibleDescription().isEmpty()) continue;
      interface = nullptr;
    }
    if (interface && !interface->text(QAccessible::Name).trimmed().isEmpty()) continue;
    QStringList path;
    for (auto* at = widget; at && at != &root; at = at->parentWidget())
      path.prepend(QLatin1String(at->metaObject()->className()) +
                   (at->objectName().isEmpty() ? QString() : QLatin1Char('#') + at->objectName()));
    found << path.join(QStringLiteral(" > "));
  }
  return found;
}

}  // namespace

void CitizenTest::whatHasTheFocusHasAName() {
  WindowFixture f;
  auto missing = nameless(f.window());  // the start page
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  auto& window = f.window();
  window.listings().graphAction()->setChecked(true);
  for (auto* dock : window.docks()) {
    f.raise(dock->objectName().toLatin1().constData());
  }
  const auto trigger = [&](const char* name) {
    window.findChild<QAction*>(QLatin1String("action-") + QLatin1String(name))->trigger();
  };
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  f.click(TraceKind::forward, f.analysis().forward.ops[1]);
  for (const auto* dialog :
       {"keys", "change-keys", "about", "inputs", "layout-save", "find", "go-to", "palette", "export", "compare-traces",
        "comment", "rename", "history-memory", "source-settings", "filter"})
    trigger(dialog);
  window.context().filter->apply(QStringLiteral("op:mm"));
  QTRY_VERIFY(window.findChild<QAction*>(QStringLiteral("action-filter-save"))->isEnabled());
  trigger("filter-save");
  QCOMPARE(window.docks().size(), 23);  // those of parts among them: a new one is walked, too
  missing << nameless(window);
  int dialogs = 0;
  for (auto* dialog : window.findChildren<QDialog*>()) {
    ++dialogs;
    QVERIFY2(!dialog->windowTitle().isEmpty(), dialog->metaObject()->className());
  }
  QVERIFY2(dialogs >= 11, qPrintable(QString::number(dialogs)));
  missing.removeDuplicates();
  QVERIFY2(missing.isEmpty(), qPrintable(missing.join(QLatin1Char('\n'))));
  // The walk finds what has none.
  QPushButton bare(&window);
  QComboBox chosen(&window);
  chosen.addItem(QStringLiteral("its text is no name"));
  QCOMPARE(nameless(window).size(), 2);
}

namespace {

void addActions(const QWidget& menu, QSet<const QAction*>& actions) {
  for (const auto* action : menu.actions()) {
    actions.insert(action);
    if (action->menu()) addActions(*action->menu(), actions);
  }
}

QChar letterOf(const QString& text) {
  return QKeySequence::mnemonic(text).isEmpty() ? QChar() : QKeySequence::mnemonic(text).toString().back();
}

/// Letters that Alt reaches among the widgets, with the widgets' texts.
QMultiMap<QChar, QString> lettersIn(const QWidget& root) {
  QMultiMap<QChar, QString> letters;
  const auto add = [&](const QString& text) {
    if (const auto letter = letterOf(text); !letter.isNull()) letters.insert(letter, text);
  };
  for (const auto* button : root.findChildren<QAbstractButton*>())
    if (!button->inherits("QToolButton")) add(button->text());
  for (const auto* label : root.findChildren<QLabel*>())
    if (label->buddy()) add(label->text());
  return letters;
}

}  // namespace

void CitizenTest::everyCommandHasAKeyOrAPlaceInAMenu() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  QSet<const QAction*> inMenus;
  addActions(*f.window().menuBar(), inMenus);
  auto commands = f.window().actions().all();
  for (auto* dock : f.window().docks()) commands << dock->toggleViewAction();
  for (auto kind : {TraceKind::computation, TraceKind::joint, TraceKind::forward, TraceKind::backward})
    commands << f.window().listings().toggleAction(kind);
  QVERIFY(commands.size() > 100);
  for (const auto* command : commands) {
    QVERIFY2(!command->text().isEmpty(), qPrintable(command->objectName()));
    QVERIFY2(inMenus.contains(command) || !command->shortcut().isEmpty(),
             qPrintable(command->objectName() + command->text()));
  }
  // Within each menu a letter leads to one entry.
  QStringList twice;
  for (const auto* menu : f.window().findChildren<QMenu*>()) {
    QMap<QChar, QString> letters;
    for (const auto* action : menu->actions()) {
      const auto letter = letterOf(action->text());
      if (letter.isNull() || !action->isVisible()) continue;
      if (letters.contains(letter))
        twice << menu->title() + QStringLiteral(": ") + action->text() + QStringLiteral(" and ") +
                     letters.value(letter);
      letters.insert(letter, action->text());
    }
  }
  QVERIFY2(twice.isEmpty(), qPrintable(twice.join(QLatin1Char('\n'))));
}

/// Alt with a letter opens a menu, or it presses a button: where it could mean both, it would do neither.
void CitizenTest::lettersOfMenusAreTakenByNothingElse() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  QMap<QChar, QString> menus;
  for (const auto* menu : f.window().menuBar()->actions()) {
    const auto letter = letterOf(menu->text());
    QVERIFY2(!letter.isNull() && !menus.contains(letter), qPrintable(menu->text()));
    menus.insert(letter, menu->text());
  }
  QList<const QWidget*> places{f.window().centralWidget()};
  for (const auto* dock : f.window().docks()) places << dock->widget();
  int letters = 0;
  for (const auto* place : places) {
    const auto found = lettersIn(*place);
    for (const auto letter : found.uniqueKeys()) {
      QVERIFY2(!menus.contains(letter),
               qPrintable(found.value(letter) + QStringLiteral(" and ") + menus.value(letter)));
      QVERIFY2(found.count(letter) == 1, qPrintable(found.values(letter).join(QStringLiteral(", "))));
      ++letters;
    }
  }
  QVERIFY(letters >= 8);
}

void CitizenTest::theWindowFitsOnALaptop() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  QStringList wide;
  for (auto* dock : f.window().docks())
    wide << QStringLiteral("%1 %2x%3")
                .arg(dock->objectName())
                .arg(dock->minimumSizeHint().width())
                .arg(dock->minimumSizeHint().height());
  wide << QStringLiteral("centre %1x%2")
              .arg(f.window().centralWidget()->minimumSizeHint().width())
              .arg(f.window().centralWidget()->minimumSizeHint().height());
  f.window().resize(1280, 720);
  QVERIFY(standsStill(f.window()));
  QVERIFY2(f.window().width() <= 1280 && f.window().height() <= 720,
           qPrintable(QStringLiteral("%1 x %2; %3")
                          .arg(f.window().width())
                          .arg(f.window().height())
                          .arg(wide.join(QStringLiteral(", ")))));
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::CitizenTest)
#include "citizen_test.moc"
