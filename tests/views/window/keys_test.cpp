#include <QAbstractItemModelTester>
#include <QCheckBox>
#include <QComboBox>
#include <QDialog>
#include <QLabel>
#include <QLineEdit>
#include <QTabWidget>
#include <QTableWidget>
#include <QTest>

#include "tests/views/menus.h"
#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/parts/keys.h"

namespace retrograd::views {

/// Which key runs what: the keymap, its model, its dialog, and the windows that follow it.
class KeysTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void noTwoCommandsComeWithOneKey();
  void choicesGoBeforeThePresetAndThatBeforeOwnKeys();
  void damagedSettingsAreIgnored();
  void theModelFollows();
  void thePresetNamesCommandsThatAreThere();
  void aKeyIsChangedInTheDialog();
  void keysOfTheListingsAreRefused();
  void searchInWordsAndByKey();
  void wordsAreLookedUp();
  void thePresetSteps();
  void commandsAreNamedWithoutTheirMenus();
  void preferencesHoldAtOnce();
  void pictures();
};

namespace {

struct Kept {
  QTemporaryDir folder;
  QSettings settings{folder.filePath(QStringLiteral("settings.ini")), QSettings::IniFormat};
  Keymap& keymap = Keymap::of(&settings);
};

const QList<KeyCommand> three{
    {QStringLiteral("continue"), QStringLiteral("Continue"), QStringLiteral("Runs on"), Qt::Key_F5},
    {QStringLiteral("copy-all"), QStringLiteral("Copy All"), QStringLiteral("Copies"), Qt::Key_C},
    {QStringLiteral("reload"), QStringLiteral("Reload"), QStringLiteral("Reads again"),
     QKeySequence(Qt::CTRL | Qt::Key_R)}};

KeysDialog* openDialog(MainWindow& window) {
  action(window, "change-keys")->trigger();
  return window.findChild<KeysDialog*>();
}

/// Chooses the command's row, as a search for its words leaves it.
void find(KeysDialog& dialog, const QString& words) {
  dialog.findChild<QLineEdit*>(QStringLiteral("keys-words"))->setText(words);
  auto* table = dialog.findChild<QTableView*>();
  table->setCurrentIndex(table->model()->index(0, 0));
}

void pressIn(KeysDialog& dialog, const char* field, Qt::Key key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
  auto* edit = dialog.findChild<KeyEdit*>(QLatin1String(field));
  edit->setFocus();
  QTest::keyClick(edit, key, modifiers);
}

}  // namespace

void KeysTest::noTwoCommandsComeWithOneKey() {
  WindowFixture f;
  QMap<QKeySequence, QString> seen;
  for (const auto& [name, action] : commandActions(f.window())) {
    const auto own = action->property("ownKey").value<QKeySequence>();
    if (own.isEmpty()) continue;
    QVERIFY2(!seen.contains(own),
             qPrintable(QStringLiteral("%1 is the key of %2 and of %3").arg(own.toString(), seen.value(own), name)));
    seen[own] = name;
    QCOMPARE(action->shortcut(), own);
  }
  QVERIFY(seen.size() > 40);
}

void KeysTest::choicesGoBeforeThePresetAndThatBeforeOwnKeys() {
  Kept kept;
  auto& keymap = kept.keymap;
  const auto keyOf = [&](const char* name) { return keymap.resolve(three).value(QLatin1String(name)).key; };
  QCOMPARE(keyOf("continue"), QKeySequence(Qt::Key_F5));
  keymap.setPreset(KeyPreset::gdb);
  QCOMPARE(keyOf("continue"), QKeySequence(Qt::Key_C));
  QVERIFY(keyOf("copy-all").isEmpty());  // the preset has its key
  QCOMPARE(keymap.resolve(three)[QStringLiteral("copy-all")].lostTo, QStringLiteral("continue"));
  keymap.choose(QStringLiteral("reload"), Qt::Key_C);
  QCOMPARE(keyOf("reload"), QKeySequence(Qt::Key_C));
  QVERIFY(keyOf("continue").isEmpty());
  // Of two choices of one key the later one counts.
  keymap.choose(QStringLiteral("copy-all"), Qt::Key_C);
  QCOMPARE(keyOf("copy-all"), QKeySequence(Qt::Key_C));
  QVERIFY(keyOf("reload").isEmpty());
  keymap.reset(QStringLiteral("copy-all"));
  QCOMPARE(keyOf("continue"), QKeySequence(Qt::Key_C));
  // Another one of the same settings, as after a new start.
  Keymap again(&kept.settings);
  QCOMPARE(again.preset(), KeyPreset::gdb);
  QVERIFY(again.isChosen(QStringLiteral("reload")) && !again.isChosen(QStringLiteral("copy-all")));
  keymap.resetAll();
  keymap.setPreset(KeyPreset::retrograd);
  for (const auto& command : three) QCOMPARE(keymap.resolve(three)[command.name].key, command.own);
}

void KeysTest::damagedSettingsAreIgnored() {
  Kept kept;
  kept.settings.setValue(QStringLiteral("keys/preset"), 17);
  kept.settings.setValue(QStringLiteral("keys/chosen"),
                         QVariantMap{{QStringLiteral("continue"), QStringLiteral("Nonsense+Q")},
                                     {QStringLiteral("reload"), QVariantList{1}},
                                     {QStringLiteral("copy-all"), QStringLiteral("Up")}});
  const auto bindings = kept.keymap.resolve(three);
  QCOMPARE(bindings[QStringLiteral("continue")].key, QKeySequence(Qt::Key_F5));
  QCOMPARE(bindings[QStringLiteral("copy-all")].key, QKeySequence(Qt::Key_C));  // no command can have an arrow
  kept.settings.setValue(QStringLiteral("keys/chosen"), QStringLiteral("x"));
  QVERIFY(!kept.keymap.anyChosen());
}

void KeysTest::theModelFollows() {
  Kept kept;
  KeymapModel model(kept.keymap, three);
  QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
  KeymapFilter filter;
  filter.setSourceModel(&model);
  QAbstractItemModelTester filterTester(&filter, QAbstractItemModelTester::FailureReportingMode::QtTest);
  const auto text = [&](int row, int column) { return model.index(row, column).data().toString(); };
  QCOMPARE(text(0, KeymapModel::keyColumn), QStringLiteral("F5"));
  QCOMPARE(model.holder(Qt::Key_C)->name, QStringLiteral("copy-all"));
  QVERIFY(!model.holder(Qt::Key_C, QStringLiteral("copy-all")));
  kept.keymap.choose(QStringLiteral("continue"), Qt::Key_C);
  QCOMPARE(text(0, KeymapModel::keyColumn), QStringLiteral("C"));
  QCOMPARE(text(0, KeymapModel::sourceColumn), QStringLiteral("you"));
  QVERIFY(text(1, KeymapModel::sourceColumn).contains(QStringLiteral("Continue")));
  filter.setKey(Qt::Key_C);
  QCOMPARE(filter.rowCount(), 1);
  filter.setKey({});
  filter.setWords(QStringLiteral("again READS"));
  QCOMPARE(filter.rowCount(), 1);
  QCOMPARE(filter.index(0, 0).data().toString(), QStringLiteral("Reload"));
}

void KeysTest::thePresetNamesCommandsThatAreThere() {
  WindowFixture f;
  QStringList names;
  for (const auto& [name, action] : commandActions(f.window())) names << name;
  const auto keys = keysOf(KeyPreset::gdb);
  QCOMPARE(QSet<QKeySequence>(keys.begin(), keys.end()).size(), keys.size());
  for (const auto& name : keys.keys()) QVERIFY2(names.contains(name), qPrintable(name));
  QCOMPARE(QSet<QString>(names.begin(), names.end()).size(), names.size());
}

void KeysTest::aKeyIsChangedInTheDialog() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  auto* other = new MainWindow(f.window().shared());
  auto* dialog = openDialog(f.window());
  QVERIFY(dialog && dialog->isVisible());
  find(*dialog, QStringLiteral("step over runs all"));
  pressIn(*dialog, "keys-wanted", Qt::Key_R, Qt::ControlModifier);
  auto* verdict = dialog->findChild<QLabel*>(QStringLiteral("keys-verdict"));
  QVERIFY(verdict->text().contains(QStringLiteral("Reload")));  // whose key it is
  QTest::mouseClick(dialog->findChild<QPushButton*>(QStringLiteral("keys-assign")), Qt::LeftButton);
  for (auto* window : {&f.window(), other}) {
    QCOMPARE(action(*window, "step-over")->shortcut(), QKeySequence(Qt::CTRL | Qt::Key_R));
    QVERIFY(action(*window, "reload")->shortcut().isEmpty());
    QVERIFY(action(*window, "step-over")->toolTip().contains(QStringLiteral("Ctrl+R")));
    QVERIFY(!action(*window, "reload")->toolTip().contains(QStringLiteral("Ctrl+R")));
  }
  // One that is made later has it too, and the key does what it says.
  MainWindow third(f.window().shared());
  third.setAttribute(Qt::WA_DeleteOnClose, false);
  QCOMPARE(action(third, "step-over")->shortcut(), QKeySequence(Qt::CTRL | Qt::Key_R));
  dialog->close();
  QApplication::setActiveWindow(&f.window());
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_R, Qt::ControlModifier);
  QVERIFY(f.settle());
  QVERIFY(f.execution().position > 0);
  // The list of keys shows it.
  f.window().actions().keys->trigger();
  auto* list = f.window().findChild<QDialog*>(QStringLiteral("keys-list"))->findChild<QTableWidget*>();
  const auto rows = list->findItems(QStringLiteral("Ctrl+R"), Qt::MatchExactly);
  QCOMPARE(rows.size(), 1);
  QCOMPARE(list->item(rows[0]->row(), 1)->text(), QStringLiteral("Step Over"));
  // And back.
  Keymap::of(f.window().shared().settings).reset(QStringLiteral("step-over"));
  QCOMPARE(action(*other, "step-over")->shortcut(), QKeySequence(Qt::Key_F10));
  QCOMPARE(action(*other, "reload")->shortcut(), QKeySequence(Qt::CTRL | Qt::Key_R));
  delete other;
}

void KeysTest::keysOfTheListingsAreRefused() {
  WindowFixture f;
  auto* dialog = openDialog(f.window());
  find(*dialog, QStringLiteral("reload"));
  auto* assign = dialog->findChild<QPushButton*>(QStringLiteral("keys-assign"));
  QVERIFY(!assign->isEnabled());
  pressIn(*dialog, "keys-wanted", Qt::Key_Down);
  QVERIFY(!assign->isEnabled());
  QVERIFY(dialog->findChild<QLabel*>(QStringLiteral("keys-verdict"))
              ->text()
              .contains(QStringLiteral("no command can have it")));
  pressIn(*dialog, "keys-wanted", Qt::Key_F8);
  QVERIFY(assign->isEnabled());
  pressIn(*dialog, "keys-wanted", Qt::Key_Escape);
  QVERIFY(!assign->isEnabled() && dialog->isVisible());
  pressIn(*dialog, "keys-wanted", Qt::Key_Escape);
  QVERIFY(!dialog->isVisible());
}

void KeysTest::searchInWordsAndByKey() {
  WindowFixture f;
  auto* dialog = openDialog(f.window());
  auto* rows = dialog->findChild<QTableView*>()->model();
  const int all = rows->rowCount();
  pressIn(*dialog, "keys-pressed", Qt::Key_F10, Qt::ControlModifier | Qt::ShiftModifier);
  QCOMPARE(rows->rowCount(), 1);
  QCOMPARE(rows->index(0, 0).data().toString(), QStringLiteral("Step Back"));
  pressIn(*dialog, "keys-pressed", Qt::Key_Backspace);
  QCOMPARE(rows->rowCount(), all);
  auto* words = dialog->findChild<QLineEdit*>(QStringLiteral("keys-words"));
  words->setFocus();
  QTest::keyClicks(words, QStringLiteral("undoes operation"));
  QVERIFY(rows->rowCount() >= 2 && rows->rowCount() < all);
}

void KeysTest::wordsAreLookedUp() {
  WindowFixture f;
  f.window().findChild<QAction*>(QStringLiteral("action-words"))->trigger();
  auto* dialog = f.window().findChild<QDialog*>(QStringLiteral("words"));
  auto* table = dialog->findChild<QTableWidget*>();
  const auto rows = table->findItems(QStringLiteral("cotangent"), Qt::MatchExactly);
  QCOMPARE(rows.size(), 1);
  const int cotangent = rows[0]->row();
  QVERIFY(table->item(cotangent, 1)->text().contains(QStringLiteral("gradient")));
  QVERIFY(!table->item(cotangent, 1)->text().contains(QLatin1Char('`')));
  auto* search = dialog->findChild<QLineEdit*>(QStringLiteral("search"));
  QVERIFY(QTest::qWaitForWindowExposed(dialog));
  QTest::keyClicks(search, QStringLiteral("COTANG flows"));
  QVERIFY(!table->isRowHidden(cotangent));
  QVERIFY(table->isRowHidden(table->findItems(QStringLiteral("bubble"), Qt::MatchExactly)[0]->row()));
  auto* none = dialog->findChild<QLabel*>(QStringLiteral("no-match"));
  QVERIFY(none->isHidden());
  QTest::keyClicks(search, QStringLiteral("xyzzy"));
  QVERIFY(!none->isHidden());
  QTest::keyClick(search, Qt::Key_Escape);
  QVERIFY(!dialog->isVisible());
}

void KeysTest::thePresetSteps() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  Keymap::of(f.window().shared().settings).setPreset(KeyPreset::gdb);
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_S);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().position, std::size_t(1));
  f.press(Qt::Key_N);
  QVERIFY(f.settle());
  const auto after = f.execution().position;
  QVERIFY(after > 1);
  f.press(Qt::Key_S, Qt::ShiftModifier);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().position, after - 1);
  // A listing's key that the preset took has another place.
  const bool shown = f.window().listings().isShown(TraceKind::computation);
  f.press(Qt::Key_5, Qt::ControlModifier);
  QCOMPARE(f.window().listings().isShown(TraceKind::computation), !shown);
}

// In the dialog and among all commands a name has no menu around it: it says of what it is a choice, and what it does
// is a sentence.
void KeysTest::commandsAreNamedWithoutTheirMenus() {
  WindowFixture f;
  auto* dialog = openDialog(f.window());
  const auto* model = dialog->findChild<QTableView*>()->model();
  QSet<QString> names;
  for (int row = 0; row < model->rowCount(); ++row) {
    for (int column = 0; column < model->columnCount(); ++column) {
      const auto text = model->index(row, column).data().toString();
      QVERIFY2(!text.contains(QLatin1Char('&')), qPrintable(text));
    }
    names.insert(model->index(row, 0).data().toString());
  }
  QVERIFY(names.contains(QStringLiteral("Theme: Dark")) &&
          names.contains(QStringLiteral("Fold Listings: By Operation")));
  QVERIFY(!names.contains(QStringLiteral("Dark")));
  dialog->close();
}

// One dialog, by Ctrl and comma, for appearance, keys, running, sources and editor, files. What is chosen
// holds at once.
void KeysTest::preferencesHoldAtOnce() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  f.press(Qt::Key_Comma, Qt::ControlModifier);
  auto* dialog = f.window().findChild<QDialog*>(QStringLiteral("preferences"));
  QVERIFY(dialog && dialog->isVisible());
  const auto* pages = dialog->findChild<QTabWidget*>();
  QStringList titles;
  for (int i = 0; i < pages->count(); ++i) titles << pages->tabText(i).remove(QLatin1Char('&'));
  QCOMPARE(titles, (QStringList{"Appearance", "Keys", "Running", "Sources and Editor", "Files"}));
  for (const char* field :
       {"preference-run-on-open", "preference-threads", "preference-history", "preference-editor", "preference-forget"})
    QVERIFY2(dialog->findChild<QWidget*>(QLatin1String(field)), field);
  // The gutter shows ids of ops: it is wider, and the page's box follows the command as the command follows the box.
  const auto before = f.listing(TraceKind::forward).grab().toImage();
  auto* box = dialog->findChild<QCheckBox*>(QStringLiteral("preference-op-numbers"));
  QTest::mouseClick(box, Qt::LeftButton, Qt::NoModifier, QPoint(8, box->height() / 2));
  QVERIFY(box->isChecked() && action(f.window(), "op-numbers")->isChecked());
  QTRY_VERIFY(f.listing(TraceKind::forward).grab().toImage() != before);
  action(f.window(), "op-numbers")->trigger();
  QVERIFY(!box->isChecked());
  // An amount of memory that is none is refused in words.
  auto* memory = dialog->findChild<QComboBox*>(QStringLiteral("preference-history"));
  memory->setEditText(QStringLiteral("much"));
  Q_EMIT memory->lineEdit()->editingFinished();
  QVERIFY(dialog->findChild<QLabel*>(QStringLiteral("preference-problem"))->text().contains(QStringLiteral("'much'")));
  dialog->close();
}

void KeysTest::pictures() {
  WindowFixture f;
  auto* dialog = openDialog(f.window());
  find(*dialog, QStringLiteral("step"));
  pressIn(*dialog, "keys-wanted", Qt::Key_F5);
  const auto folder = qEnvironmentVariable("RETROGRAD_TEST_PICTURES");
  if (folder.isEmpty()) QSKIP("no folder for pictures");
  int number = 0;
  for (auto choice : {Theme::Choice::light, Theme::Choice::dark, Theme::Choice::highContrast}) {
    f.theme().choose(choice);
    QVERIFY(standsStill(*dialog));
    QVERIFY(dialog->grab().save(QStringLiteral("%1/keys-%2.png").arg(folder).arg(number++)));
  }
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::KeysTest)
#include "keys_test.moc"
