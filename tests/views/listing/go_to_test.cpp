#include <QAbstractItemModelTester>
#include <QListView>
#include <QStatusBar>
#include <QTest>
#include <QTreeView>

#include "core/formats/recording/recording.h"
#include "core/notes/note_words.h"
#include "core/stepping/breakpoint.h"
#include "core/trace/source.h"
#include "tests/support/source_path.h"
#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/models/tree_model.h"
#include "views/text/goto_index.h"
#include "views/window/quick_open.h"

namespace retrograd::views {

/// Going to a place by its name, the command palette and cross references, by real keys.
class GoToTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void wordsFit_data();
  void wordsFit();
  void bestPlacesComeFirst();
  void aPlaceIsOneLineAway();
  void aNumberFindsItsOpEverywhere();
  void escapeGivesTheFocusBack();
  void commandsRunByName();
  void aDisabledCommandSaysWhy();
  void referencesLeadToUsers();
  void usesAreSteppedAlong();
  void W45_oneSearchKnowsPyTorchsNames();
};

namespace {

QStringList shown(QuickOpen& quick) {
  QStringList lines;
  const auto& model = *quick.list().model();
  for (int row = 0; row < model.rowCount(); ++row) lines << model.index(row, 0).data().toString();
  return lines;
}

BoundSymbolId firstForward(WindowFixture& f) { return f.analysis().forward.ops.at(1); }

QTreeView& references(WindowFixture& f) { return *f.window().findChild<QTreeView*>(QStringLiteral("references")); }

QStringList sections(WindowFixture& f) {
  QStringList lines;
  const auto& model = *references(f).model();
  const auto section = model.index(0, 0);
  for (int row = 0; row < model.rowCount(section); ++row) lines << model.index(row, 0, section).data().toString();
  return lines;
}

}  // namespace

void GoToTest::wordsFit_data() {
  QTest::addColumn<QString>("word");
  QTest::addColumn<QString>("better");
  QTest::addColumn<QString>("worse");
  QTest::newRow("whole before beginning") << "relu" << "relu" << "relu_1";
  QTest::newRow("beginning before inside") << "lin" << "linear" << "h.linear";
  QTest::newRow("begin of a part before inside") << "fc" << "h.fc" << "hfc";
  QTest::newRow("inside before letters in order") << "ln" << "xlny" << "l.n";
  QTest::newRow("letters in order before nothing") << "lw" << "l.weight" << "weight.l";
  QTest::newRow("without regard to case") << "RELU" << "Relu" << "gelu";
}

void GoToTest::wordsFit() {
  QFETCH(QString, word);
  QFETCH(QString, better);
  QFETCH(QString, worse);
  QVERIFY(fit(word.toStdString(), better.toStdString()) > fit(word.toStdString(), worse.toStdString()));
}

void GoToTest::bestPlacesComeFirst() {
  const std::vector<Place> all{{Place::Kind::op, "t1", "aten.relu  h.0", {}, {}},
                               {Place::Kind::module, "h.0", "module, 2 ops", {}, {}},
                               {Place::Kind::operation, "relu", "aten.relu  h.0", {}, {}},
                               {Place::Kind::op, "t2", "aten.mm  h.1", {}, {}}};
  QCOMPARE(match(all, "relu", 10), (std::vector<std::size_t>{2, 0}));
  QCOMPARE(match(all, "h.0 mm", 10), std::vector<std::size_t>{});
  QCOMPARE(match(all, "aten h.1", 10), std::vector<std::size_t>{3});
  QCOMPARE(match(all, "", 2), (std::vector<std::size_t>{0, 1}));
}

// One number for an op.
void GoToTest::aNumberFindsItsOpEverywhere() {
  WindowFixture f;
  QVERIFY(f.open("synthetic:3"));
  const auto op = firstForward(f);
  const auto number = QStringLiteral("#%1").arg(op.index);
  f.press(Qt::Key_P, Qt::ControlModifier);
  auto& quick = f.window().quickOpen();
  QTest::keyClicks(&quick.line(), number);
  QTRY_COMPARE(
      shown(quick),
      QStringList{QString::fromStdString(f.analysis().document->displayName(f.analysis().document->outputs(op)[0]))});
  QTest::keyClick(&quick.line(), Qt::Key_Return);
  QTRY_COMPARE(f.selection().op(), op);
  QCOMPARE(parseBreakpoint(f.analysis(), number.toStdString()).op, op);
  QCOMPARE(parseNotePlace(f.analysis(), number.toStdString()).op, op);
  QVERIFY(QString::fromStdString(describe(f.analysis(), parseBreakpoint(f.analysis(), number.toStdString())))
              .contains(number));
  f.press(Qt::Key_P, Qt::ControlModifier);
  QTest::keyClicks(&quick.line(), QStringLiteral("#999999"));
  QTRY_VERIFY(shown(quick).isEmpty());
}

void GoToTest::aPlaceIsOneLineAway() {
  WindowFixture f;
  QVERIFY(f.open("synthetic:3"));
  const auto from = f.analysis().forward.ops.back();
  f.selection().select(from);
  f.press(Qt::Key_P, Qt::ControlModifier);
  auto& quick = f.window().quickOpen();
  QAbstractItemModelTester tester(quick.list().model(), QAbstractItemModelTester::FailureReportingMode::QtTest);
  QVERIFY(quick.isVisible());
  const auto op = firstForward(f);
  const auto name = QString::fromStdString(f.analysis().document->displayName(f.analysis().document->outputs(op)[0]));
  QTest::keyClicks(&quick.line(), name);
  QTRY_COMPARE(shown(quick).value(0), name);
  // The row that Enter takes is marked as a list with the focus marks its row: what is right of its name is read on it.
  const auto row = quick.list().visualRect(quick.list().model()->index(0, 0));
  const auto mark = quick.list().viewport()->grab().toImage().pixelColor(row.center());
  const auto lightnessOf = [](QPalette::ColorGroup group) {
    return QApplication::palette().color(group, QPalette::Highlight).lightness();
  };
  QVERIFY(std::abs(mark.lightness() - lightnessOf(QPalette::Active)) <
          std::abs(mark.lightness() - lightnessOf(QPalette::Inactive)));
  f.picture(QStringLiteral("go-to"));
  QTest::keyClick(&quick.line(), Qt::Key_Return);
  QVERIFY(!quick.isVisible());
  QTRY_COMPARE(f.selection().op(), op);
  f.press(Qt::Key_Left, Qt::AltModifier);  // a jump like others: the way back is noted
  QCOMPARE(f.selection().op(), from);
}

void GoToTest::escapeGivesTheFocusBack() {
  WindowFixture f;
  QVERIFY(f.open("synthetic:2"));
  auto* before = QApplication::focusWidget();
  QVERIFY(before);
  f.press(Qt::Key_P, Qt::ControlModifier);
  auto& quick = f.window().quickOpen();
  QCOMPARE(QApplication::focusWidget(), static_cast<QWidget*>(&quick.line()));
  QTest::keyClick(&quick.line(), Qt::Key_Escape);
  QVERIFY(!quick.isVisible());
  QCOMPARE(QApplication::focusWidget(), before);
}

void GoToTest::commandsRunByName() {
  WindowFixture f;
  QVERIFY(f.open("synthetic:2"));
  QVERIFY(f.settle());
  f.press(Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
  auto& quick = f.window().quickOpen();
  QCOMPARE(quick.line().text(), QStringLiteral(">"));
  QTest::keyClicks(&quick.line(), QStringLiteral("step into"));
  QCOMPARE(shown(quick).value(0), QStringLiteral("Step Into"));
  f.picture(QStringLiteral("commands"));
  QTest::keyClick(&quick.line(), Qt::Key_Return);
  QTRY_COMPARE(f.execution().position, std::size_t{1});
}

void GoToTest::aDisabledCommandSaysWhy() {
  WindowFixture f;
  f.press(Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
  auto& quick = f.window().quickOpen();
  QTest::keyClicks(&quick.line(), QStringLiteral("step into"));
  QTest::keyClick(&quick.line(), Qt::Key_Return);
  QVERIFY(f.window().statusBar()->currentMessage().contains(QStringLiteral("No file is open")));
}

void GoToTest::referencesLeadToUsers() {
  WindowFixture f;
  QVERIFY(f.open("synthetic:3"));
  const auto relu = f.analysis().forward.ops.at(2);
  f.selection().select(relu, f.analysis().document->outputs(relu)[0]);
  f.press(Qt::Key_X);
  QAbstractItemModelTester tester(references(f).model(), QAbstractItemModelTester::FailureReportingMode::QtTest);
  QTRY_VERIFY(sections(f).join(QLatin1Char(' ')).contains(QStringLiteral("read by")));
  QVERIFY(sections(f).contains(QStringLiteral("made by")));
  QVERIFY(sections(f)
              .join(QLatin1Char(' '))
              .contains(QStringLiteral("saved for")));  // threshold_backward reads relu's result
  f.picture(QStringLiteral("references"));
  const int row = static_cast<int>(sections(f).indexOf(QRegularExpression(QStringLiteral("^read by.*"))));
  auto& tree = references(f);
  const auto index = tree.model()->index(row, 0, tree.model()->index(0, 0));
  tree.setCurrentIndex(index);
  tree.setFocus();
  QTest::keyClick(&tree, Qt::Key_Return);
  QTRY_VERIFY(f.selection().op() && f.selection().op() != relu);
}

void GoToTest::usesAreSteppedAlong() {
  WindowFixture f;
  QVERIFY(f.open("synthetic:3"));
  const auto relu = f.analysis().forward.ops.at(2);
  const auto value = f.analysis().document->outputs(relu)[0];
  f.selection().select(relu, value);
  f.press(Qt::Key_X);
  QTRY_VERIFY(sections(f).size() > 2);
  f.press(Qt::Key_BracketRight);
  const auto next = f.selection().op();
  QVERIFY(next != relu);
  QCOMPARE(f.selection().value(), value);
  QTRY_VERIFY(sections(f).size() > 2);
  QTRY_COMPARE(references(f).currentIndex().data(opRole).toInt(), next.index);  // the row says where you are
  f.press(Qt::Key_BracketLeft);
  QCOMPARE(f.selection().op(), relu);
}

void GoToTest::W45_oneSearchKnowsPyTorchsNames() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(QString::fromStdString(sourcePath("tests/data/recordings/step"))));
  QVERIFY(f.quiet());
  const auto& recording = *f.analysis().file.recording;
  auto& quick = f.window().quickOpen();
  const auto find = [&](const QString& words) {
    f.press(Qt::Key_P, Qt::ControlModifier);
    QTest::keyClicks(&quick.line(), words);
    return QTest::qWaitFor([&] { return shown(quick).value(0).contains(words, Qt::CaseInsensitive); }, 5000);
  };
  const auto go = [&] {
    QTest::keyClick(&quick.line(), Qt::Key_Return);
    return f.selection().op();
  };
  QVERIFY(find(QStringLiteral("last.weight")));
  QCOMPARE(shown(quick).value(0), QStringLiteral("last.weight"));
  QVERIFY(go());
  QVERIFY(find(QStringLiteral("last.weight.grad")));
  QVERIFY(go());
  QCOMPARE(f.selection().value(), recording.gradients.at("last.weight"));
  QVERIFY(find(QStringLiteral("exp_avg of last.weight")));
  QCOMPARE(recording.op(go()).phase, Phase::optimizer);
  QVERIFY(find(QStringLiteral("optimizer")));
  QCOMPARE(recording.op(go()).phase, Phase::optimizer);
  QVERIFY(find(QStringLiteral("train.py:")));
  const auto line = shown(quick).value(0);
  const auto* frame = shownFrame(sourceOf(*f.analysis().document, go()));
  QVERIFY(frame && line.endsWith(QString::number(frame->line)));
  f.press(Qt::Key_P, Qt::ControlModifier);
  QTest::keyClicks(&quick.line(), QString::number(f.analysis().forward.ops.at(3).index));
  QTRY_VERIFY(!shown(quick).isEmpty());
  QTest::qWait(100);
  QCOMPARE(go(), f.analysis().forward.ops.at(3));
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::GoToTest)
#include "go_to_test.moc"
