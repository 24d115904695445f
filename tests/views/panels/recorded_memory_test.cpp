// Snapshots of CUDA's allocator in the window, over the live engine and real histories.
#include <QComboBox>
#include <QFileDialog>
#include <QLabel>
#include <QListView>
#include <QTest>
#include <QToolButton>
#include <QTreeView>
#include <algorithm>

#include "tests/support/source_path.h"
#include "tests/views/test_program.h"
#include "tests/views/user.h"
#include "views/docks/findings_dock.h"
#include "views/memory/recorded_memory_dock.h"
#include "views/window/start_page.h"

namespace retrograd::views {
namespace {

QString history(const char* name) {
  return QString::fromStdString(sourcePath(("tests/data/memory/" + std::string(name) + ".pickle.xz").c_str()));
}

QString model() { return QString::fromStdString(sourcePath("tests/data/memory/plain.txt")); }

QAction* command(WindowFixture& f, const char* name) {
  return f.window().findChild<QAction*>(QStringLiteral("action-") + QLatin1String(name));
}

/// A window with a snapshot that was opened as a person opens files.
struct OpenHistory {
  explicit OpenHistory(const QString& path, const QString& document = {}, std::shared_ptr<Engine> engine = liveEngine())
      : f(std::move(engine), WindowFixture::Start::asItComes), user(f) {
    f.window().resize(1500, 900);
    if (!document.isEmpty() && !f.open(document)) qFatal("the model does not open");
    f.window().openFile(path);
    if (!f.quiet()) qFatal("the snapshot does not open");
  }
  RecordedMemoryDock& panel() { return f.window().panel<RecordedMemoryDock>(); }
  MemoryHistoryView& chart() { return *f.window().findChild<MemoryHistoryView*>(); }
  AddressMapView& map() { return *f.window().findChild<AddressMapView*>(); }
  QString prediction() { return user.label(QStringLiteral("recorded-memory-prediction")); }
  QStringList groups() { return user.rows(QStringLiteral("memory-groups")); }
  QStringList findings() { return user.rows(QStringLiteral("memory-findings")); }
  void by(const QString& text) {
    user.choose(f.window().findChild<QComboBox*>(QStringLiteral("memory-by")), text);
    if (!f.quiet()) qFatal("it is not grouped");
  }

  WindowFixture f;
  User user;
};

bool has(const QStringList& rows, const QString& text) { return !rows.filter(text).isEmpty(); }

}  // namespace

class RecordedMemoryTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void aSnapshotAloneHasTheWindow();
  void aDroppedSnapshotOpensNextToTheModel();
  void theHistoryIsWalkedByKeyAndMouse();
  void aDamagedSnapshotIsRefusedWithTheReason();
  void theAddressMapFollowsTheMoment();
  void theAddressMapIsWalkedByKeyAndMouse();
  void theTabsAreEnlargedNextToAModel();
  void aRequestThatFailedShowsWhatItCouldHaveHad();
  void aModelIsJoined();
  void aBlockLeadsToItsOpAndBack();
  void leaksAreFindings();
  void twoSnapshotsAreCompared();
  void thePredictionIsExplained();
  void categoriesSumToThePeak();
  void eachCommandSaysWhyItIsNotThere();
};

void RecordedMemoryTest::aSnapshotAloneHasTheWindow() {
  OpenHistory open(history("plain"), {}, std::make_shared<FakeEngine>());
  auto& window = open.f.window();
  QVERIFY(open.panel().inSight());
  QVERIFY(!window.findChild<StartPage*>()->isVisible());
  QTRY_VERIFY(open.panel().height() > window.height() * 2 / 3);
  QCOMPARE(window.windowTitle(), QStringLiteral("plain.pickle.xz - Retrograd"));
  QVERIFY2(open.panel().caption().startsWith(QStringLiteral("plain.pickle.xz: 101 MiB held at the peak (event 837)")),
           qPrintable(open.panel().caption()));
  open.f.picture(QStringLiteral("memory-alone"));
  // A model that opens then has its listings, and the panel stays.
  QVERIFY(open.f.open(QStringLiteral("synthetic3")));
  QVERIFY(open.f.quiet());
  QVERIFY(window.listings().isVisible() && open.panel().inSight());
  command(open.f, "close")->trigger();
  QVERIFY(open.f.quiet());
  QVERIFY(open.panel().inSight() && !window.findChild<StartPage*>()->isVisible());
  command(open.f, "close-memory")->trigger();
  QVERIFY(open.f.quiet());
  QVERIFY(!open.panel().isVisible() && window.findChild<StartPage*>()->isVisible());
}

void RecordedMemoryTest::aDroppedSnapshotOpensNextToTheModel() {
  WindowFixture f(std::make_shared<FakeEngine>(), WindowFixture::Start::asItComes);
  QVERIFY(f.open(QStringLiteral("synthetic3")));
  const auto document = f.controller().document();
  User user(f);
  user.drop(history("checkpoint"));
  QVERIFY(f.quiet());
  QCOMPARE(f.controller().document(), document);
  QVERIFY(f.window().panel<RecordedMemoryDock>().inSight());
  QVERIFY(f.window().panel<RecordedMemoryDock>().caption().startsWith(QStringLiteral("checkpoint.pickle.xz: 86 MiB")));
  // It is among the recent files.
  bool isRecent = false;
  for (auto* action : f.window().findChild<RecentFiles*>()->actions())
    isRecent |= action->text().contains(QStringLiteral("checkpoint.pickle.xz"));
  QVERIFY(isRecent);
}

void RecordedMemoryTest::theHistoryIsWalkedByKeyAndMouse() {
  OpenHistory open(history("plain"), {}, std::make_shared<FakeEngine>());
  auto& chart = open.chart();
  QCOMPARE(chart.current(), std::optional<std::size_t>(837));
  QVERIFY(!chart.accessibleName().isEmpty() && chart.accessibleDescription().contains(QStringLiteral("1929 events")));
  chart.setFocus();
  const auto at = [&](int key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    QTest::keyClick(&chart, static_cast<Qt::Key>(key), modifiers);
    return open.f.quiet() ? chart.current().value_or(9999) : 9999;
  };
  QCOMPARE(at(Qt::Key_Right), 838u);
  QCOMPARE(at(Qt::Key_Left), 837u);
  QCOMPARE(at(Qt::Key_Right, Qt::ControlModifier), 837u + 192);
  QCOMPARE(at(Qt::Key_Home), 0u);
  QCOMPARE(at(Qt::Key_End), 1928u);
  QVERIFY2(open.panel().caption().contains(QStringLiteral("held after event 1928")),
           qPrintable(open.panel().caption()));
  QCOMPARE(at(Qt::Key_P), 837u);
  const auto before = chart.grab().toImage();
  QTest::keyClick(&chart, Qt::Key_Plus);
  QVERIFY(open.f.quiet());
  QVERIFY(chart.range().first > 0 && chart.range().second < 1929);
  QVERIFY(chart.grab().toImage() != before);
  QTest::keyClick(&chart, Qt::Key_0);
  QVERIFY(open.f.quiet());
  QCOMPARE(chart.range(), (std::pair<std::size_t, std::size_t>{0, 1929}));
  const QPoint middle(chart.width() / 2, chart.height() / 2);
  QTest::mouseClick(&chart, Qt::LeftButton, Qt::NoModifier, middle);
  QCOMPARE(chart.current(), chart.positionAt(middle));
  // The blocks of a group are listed alone.
  auto* groups = open.f.window().findChild<QTreeView*>(QStringLiteral("memory-groups"));
  QVERIFY(at(Qt::Key_P) == 837u);
  groups->setFocus();
  groups->setCurrentIndex(groups->model()->index(0, 0));
  QVERIFY(open.f.quiet());
  const auto* blocks = open.f.window().findChild<QTreeView*>(QStringLiteral("memory-blocks"));
  QCOMPARE(blocks->model()->rowCount(), 2);  // the two workspaces
}

void RecordedMemoryTest::aDamagedSnapshotIsRefusedWithTheReason() {
  QTemporaryDir folder;
  const auto path = folder.filePath(QStringLiteral("cut.pickle"));
  QFile file(path);
  QVERIFY(file.open(QIODevice::WriteOnly));
  file.write(QByteArray::fromHex("80049500"));
  file.close();
  OpenHistory open(path, {}, std::make_shared<FakeEngine>());
  QVERIFY2(open.f.window().messages().text().contains(QStringLiteral("cut.pickle")) &&
               open.f.window().messages().text().contains(QStringLiteral("cut off")),
           qPrintable(open.f.window().messages().text()));
  QVERIFY(open.f.window().messages().isVisible());
  QVERIFY(open.panel().caption().isEmpty());
}

void RecordedMemoryTest::theAddressMapFollowsTheMoment() {
  OpenHistory open(history("plain"), {}, std::make_shared<FakeEngine>());
  auto& map = open.map();
  open.user.clickTab(QStringLiteral("Addresses"));
  QVERIFY(map.isVisible());
  const auto held = [&] {
    std::uint64_t bytes = 0;
    for (const auto& segment : map.picture().layout.segments) bytes += segment.held;
    return bytes;
  };
  QCOMPARE(held(), 105560576u);
  QCOMPARE(map.picture().layout.segments.size(), 15u);
  open.chart().setFocus();
  QTest::keyClick(&open.chart(), Qt::Key_Home);
  QVERIFY(open.f.quiet());
  QCOMPARE(held(), 0u);  // the first event is a segment without a block
  QCOMPARE(map.picture().layout.segments.size(), 1u);
  QTest::keyClick(&open.chart(), Qt::Key_P);
  QVERIFY(open.f.quiet());
  QCOMPARE(held(), 105560576u);
  // A block has the colour of its group, whatever the groups are.
  const auto before = map.grab().toImage();
  open.by(QStringLiteral("By line"));
  QVERIFY(map.grab().toImage() != before);
}

void RecordedMemoryTest::theAddressMapIsWalkedByKeyAndMouse() {
  OpenHistory open(history("plain"), {}, std::make_shared<FakeEngine>());
  auto& map = open.map();
  open.user.clickTab(QStringLiteral("Addresses"));
  map.setFocus();
  QVERIFY(!map.accessibleName().isEmpty() && map.accessibleDescription().isEmpty());
  const auto at = [&](int key) {
    QTest::keyClick(&map, static_cast<Qt::Key>(key));
    return map.current();
  };
  QCOMPARE(at(Qt::Key_Right), 0);
  QCOMPARE(at(Qt::Key_Right), 1);
  QCOMPARE(at(Qt::Key_Left), 0);
  const auto& segments = map.picture().layout.segments;
  QCOMPARE(at(Qt::Key_End), static_cast<int>(segments[0].pieceCount) - 1);
  QCOMPARE(at(Qt::Key_Home), 0);
  const auto isIn = [&](const LaidOutSegment& segment, int piece) {
    const auto at = static_cast<std::size_t>(piece);
    return at >= segment.firstPiece && at < segment.firstPiece + segment.pieceCount;
  };
  QVERIFY(isIn(segments[1], at(Qt::Key_Down)));
  QVERIFY(isIn(segments[0], at(Qt::Key_Up)));
  QCOMPARE(at(Qt::Key_L), static_cast<int>(map.picture().largest.value()));
  QVERIFY2(map.accessibleDescription().contains(QStringLiteral("free, between")),
           qPrintable(map.accessibleDescription()));
  // Zoomed, a block is wider; 0 shows whole rows.
  at(Qt::Key_Home);
  const auto wide = map.pieceRect(map.current()).width();
  at(Qt::Key_Plus);
  QVERIFY(map.pieceRect(map.current()).width() > wide);
  at(Qt::Key_0);
  QCOMPARE(map.pieceRect(map.current()).width(), wide);
  // A click chooses a block here and in the list, and says what it is.
  const auto& pieces = map.picture().layout.pieces;
  const auto largest = std::ranges::max_element(
      pieces, {}, [](const auto& piece) { return piece.allocation == LaidOutPiece::free ? 0 : piece.size; });
  const auto piece = static_cast<int>(largest - pieces.begin());
  map.setCurrent(piece);  // comes into sight
  const auto rect = map.pieceRect(piece);
  map.setCurrent(AddressMapView::none);
  QTest::mouseClick(map.viewport(), Qt::LeftButton, Qt::NoModifier, rect.center().toPoint());
  QCOMPARE(map.current(), piece);
  const auto words = open.user.label(QStringLiteral("memory-address-words"));
  QVERIFY2(words.startsWith(QStringLiteral("32 MiB, workspace, ")) && words.contains(QStringLiteral("freed never")),
           qPrintable(words));
  QCOMPARE(map.accessibleDescription(), words);
  const auto* blocks = open.f.window().findChild<QTreeView*>(QStringLiteral("memory-blocks"));
  QCOMPARE(blocks->currentIndex().siblingAtColumn(0).data().toString(), QStringLiteral("32 MiB"));
  open.f.picture(QStringLiteral("memory-addresses"));
}

void RecordedMemoryTest::theTabsAreEnlargedNextToAModel() {
  OpenHistory open(history("plain"), QStringLiteral("synthetic3"), std::make_shared<FakeEngine>());
  open.user.clickTab(QStringLiteral("Addresses"));
  const auto before = open.map().size();
  auto& button = *open.f.window().findChild<QToolButton*>(QStringLiteral("memory-enlarge"));
  QTest::mouseClick(&button, Qt::LeftButton);
  QVERIFY(!open.chart().isVisible());
  QTRY_VERIFY2(open.map().height() >= 150 && open.map().width() > 3 * before.width() / 2,
               qPrintable(QStringLiteral("%1 x %2").arg(open.map().width()).arg(open.map().height())));
  button.setFocus();
  QTest::keyClick(&button, Qt::Key_Space);
  QVERIFY(open.chart().isVisible());
  QTRY_COMPARE(open.map().size(), before);
}

void RecordedMemoryTest::aRequestThatFailedShowsWhatItCouldHaveHad() {
  OpenHistory open(history("oom"), model());
  QVERIFY2(open.panel().caption().contains(QStringLiteral("held when a request failed")),
           qPrintable(open.panel().caption()));
  QVERIFY2(has(open.findings(),
               QStringLiteral("the device had 16 MiB free where a new segment takes 20 MiB; the largest free piece "
                              "has 3.5 MiB")),
           qPrintable(open.findings().join(QLatin1Char('\n'))));
  open.user.clickTab(QStringLiteral("Addresses"));
  QCOMPARE(open.map().current(), static_cast<int>(open.map().picture().largest.value()));
  const auto words = open.user.label(QStringLiteral("memory-address-words"));
  QVERIFY2(words.startsWith(
               QStringLiteral("3.5 MiB free, the most that the request for 4.0 MiB could have: between 2.0 MiB of ")),
           qPrintable(words));
  open.f.picture(QStringLiteral("memory-oom"));
  // At another moment it is a free piece as any.
  command(open.f, "memory-peak")->trigger();
  QVERIFY(open.f.quiet());
  QCOMPARE(open.map().picture().wanted, 0u);
}

void RecordedMemoryTest::aBlockLeadsToItsOpAndBack() {
  OpenHistory open(history("plain"), model());
  auto& map = open.map();
  auto& selection = *open.f.window().context().selection;
  open.user.clickTab(QStringLiteral("Addresses"));
  map.setFocus();
  // The block that blocks.1.up made: a click on it selects the op.
  const auto& shown = open.panel().memory().shown();
  const auto& join = *shown.recorded->join;
  const auto& pieces = map.picture().layout.pieces;
  const auto found = std::ranges::find_if(pieces, [&](const LaidOutPiece& piece) {
    if (piece.allocation < 0) return false;
    const auto traced = join.allocations[static_cast<std::size_t>(piece.allocation)].traced;
    return traced >= 0 && join.trace.allocations[static_cast<std::size_t>(traced)].module == "blocks.1.up";
  });
  QVERIFY(found != pieces.end());
  const auto piece = static_cast<int>(found - pieces.begin());
  map.setCurrent(piece);
  const auto at = map.pieceRect(piece).center().toPoint();
  map.setCurrent(AddressMapView::none);
  QTest::mouseClick(map.viewport(), Qt::LeftButton, Qt::NoModifier, at);
  const auto op = selection.op();
  QVERIFY(op);
  const auto& document = *open.f.controller().document()->analysis->document;
  QCOMPARE(QString::fromStdString(document.opName(op)), QStringLiteral("torch.ops.aten.addmm.default"));
  QCOMPARE(QString::fromStdString(std::string(document.text(document.boundSymbol(op).module))),
           QStringLiteral("blocks.1.up"));
  // And back: what the op made is underlined, and a command shows it.
  const auto before = map.grab().toImage();
  selection.select({});
  QVERIFY(open.f.quiet());
  QVERIFY(map.grab().toImage() != before);
  QVERIFY(!command(open.f, "memory-of-op")->isEnabled());
  selection.select(op);
  QVERIFY(command(open.f, "memory-of-op")->isEnabled());
  open.user.clickTab(QStringLiteral("Blocks (172)"));
  command(open.f, "memory-of-op")->trigger();
  QVERIFY(open.f.quiet());
  QVERIFY(map.isVisible());
  QCOMPARE(open.chart().current().value(), 792u);  // the event that made it
  QCOMPARE(map.picture().layout.pieces[static_cast<std::size_t>(map.current())].size, 2097152u);
  open.f.picture(QStringLiteral("memory-of-op"));
  // A view of it has no memory of its own: it leads to the same block.
  const auto output = document.outputs(op)[0];
  BoundSymbolId view;
  for (const auto each : open.f.controller().document()->analysis->joint.ops)
    if (const auto outputs = document.outputs(each);
        each != op && outputs.size() == 1 && document.isTensor(outputs[0]) && document.value(outputs[0]).storage)
      if (document.storage(document.value(outputs[0]).storage).first == output) view = each;
  QVERIFY(view);
  selection.select(view);
  QVERIFY(command(open.f, "memory-of-op")->isEnabled());
}

void RecordedMemoryTest::aModelIsJoined() {
  OpenHistory open(history("plain"), model());
  QVERIFY2(open.panel().caption().contains(QStringLiteral("Joined: 0 B exact, 36 MiB aligned")),
           qPrintable(open.panel().caption()));
  open.by(QStringLiteral("By what it is held for"));
  QVERIFY2(has(open.groups(), QStringLiteral("saved for aten.gelu_backward of blocks.0")),
           qPrintable(open.groups().join(QLatin1Char('\n'))));
  auto* tabs = open.f.window().findChild<QTreeView*>(QStringLiteral("memory-blocks"));
  open.user.clickTab(QStringLiteral("Blocks (172)"));
  QVERIFY(tabs->isVisible());
  QVERIFY(has(open.user.rows(QStringLiteral("memory-blocks")), QStringLiteral("aten.addmm of blocks.0.up")));
  open.f.picture(QStringLiteral("memory-joined"));
  // Without the model it is as it was.
  command(open.f, "close")->trigger();
  QVERIFY(open.f.quiet());
  QVERIFY2(open.panel().caption().contains(QStringLiteral("No model is open")), qPrintable(open.panel().caption()));
  QVERIFY(open.prediction().isEmpty());
}

void RecordedMemoryTest::leaksAreFindings() {
  OpenHistory open(history("leak"), model());
  QVERIFY2(has(open.findings(), QStringLiteral("train.py:34 in main is still held")),
           qPrintable(open.findings().join(QLatin1Char('\n'))));
  // Also in the panel of all findings, from where a key leads back.
  open.f.raise("dock-findings");
  auto* list = open.f.window().findChild<QListView*>(QStringLiteral("findings-list"));
  const auto found = list->model()->match(list->model()->index(0, 1), Qt::DisplayRole,
                                          QStringLiteral("train.py:34 in main"), 1, Qt::MatchContains);
  QVERIFY(!found.isEmpty());
  list->setFocus();
  list->setCurrentIndex(found.front());
  QTest::keyClick(list, Qt::Key_Return);
  QTRY_VERIFY(open.panel().inSight());
  // Enter on the finding shows its line.
  auto* own = open.f.window().findChild<QTreeView*>(QStringLiteral("memory-findings"));
  const auto leak = own->model()->match(own->model()->index(0, 0), Qt::DisplayRole, QStringLiteral("leak"));
  QVERIFY(!leak.isEmpty());
  own->setFocus();
  own->setCurrentIndex(leak.front());
  QTest::keyClick(own, Qt::Key_Return);
  QVERIFY(open.f.quiet());
  const auto* groups = open.f.window().findChild<QTreeView*>(QStringLiteral("memory-groups"));
  QCOMPARE(groups->currentIndex().siblingAtColumn(0).data().toString(), QStringLiteral("train.py:34 in main"));
  open.f.picture(QStringLiteral("memory-leak"));
}

void RecordedMemoryTest::twoSnapshotsAreCompared() {
  OpenHistory open(history("plain"), model());
  command(open.f, "compare-memory")->trigger();
  auto* dialog = open.f.window().findChild<QFileDialog*>();
  QVERIFY(dialog);
  Q_EMIT dialog->fileSelected(history("checkpoint"));
  dialog->close();
  QVERIFY(open.f.quiet());
  QVERIFY2(open.panel().caption().contains(QStringLiteral("checkpoint.pickle.xz: peak 86 MiB (\u221214 MiB)")),
           qPrintable(open.panel().caption()));
  QVERIFY2(has(open.groups(), QStringLiteral("activation")), qPrintable(open.groups().join(QLatin1Char('\n'))));
  // The differences sum to that of the peaks.
  const auto* groups = open.f.window().findChild<QTreeView*>(QStringLiteral("memory-groups"));
  double sum = 0;
  for (int row = 0; row < groups->model()->rowCount(); ++row)
    sum += groups->model()->index(row, 1).data(sortRole).toDouble();
  QCOMPARE(sum, 90430976.0 - 105560576.0);
  open.f.picture(QStringLiteral("memory-pair"));
  command(open.f, "close-memory")->trigger();
  QVERIFY(open.f.quiet());
  QVERIFY(open.panel().caption().startsWith(QStringLiteral("plain.pickle.xz: 101 MiB held")));
}

void RecordedMemoryTest::thePredictionIsExplained() {
  {
    OpenHistory alone(history("plain"), {}, std::make_shared<FakeEngine>());
    QVERIFY(alone.prediction().isEmpty());
  }
  {
    OpenHistory foreign(history("plain"), QString::fromStdString(sourcePath("resources/samples/tiny_gpt.pt2")));
    QVERIFY2(foreign.panel().caption().contains(QStringLiteral("Nothing in it agrees with the open model")),
             qPrintable(foreign.panel().caption()));
    QVERIFY(foreign.prediction().isEmpty());
  }
  OpenHistory open(history("plain"), model());
  QVERIFY2(open.prediction().contains(QStringLiteral("recorded: 101 MiB")) &&
               open.prediction().contains(QStringLiteral("rounding by the allocator")),
           qPrintable(open.prediction()));
}

void RecordedMemoryTest::categoriesSumToThePeak() {
  OpenHistory open(history("aot"), {}, std::make_shared<FakeEngine>());
  for (const auto* by : {"By category", "By line", "By module"}) {
    open.by(QLatin1String(by));
    const auto* groups = open.f.window().findChild<QTreeView*>(QStringLiteral("memory-groups"));
    double sum = 0;
    for (int row = 0; row < groups->model()->rowCount(); ++row)
      sum += groups->model()->index(row, 1).data(sortRole).toDouble();
    QCOMPARE(sum, 105560576.0);
  }
  open.f.picture(QStringLiteral("memory-aot"));
}

void RecordedMemoryTest::eachCommandSaysWhyItIsNotThere() {
  WindowFixture f(std::make_shared<FakeEngine>(), WindowFixture::Start::asItComes);
  for (const auto* name : {"compare-memory", "close-memory", "memory-peak", "memory-failed"}) {
    QVERIFY(!command(f, name)->isEnabled());
    QVERIFY(command(f, name)->statusTip().contains(QStringLiteral("No memory snapshot is open")));
  }
  QVERIFY(command(f, "open-memory")->isEnabled());
  f.window().openFile(history("plain"));
  QVERIFY(f.quiet());
  QVERIFY(command(f, "compare-memory")->isEnabled());
  QVERIFY(command(f, "memory-failed")->statusTip().contains(QStringLiteral("No request of this history failed")));
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::RecordedMemoryTest)
#include "recorded_memory_test.moc"
