#include <QAbstractItemModelTester>
#include <QFileInfo>
#include <QTemporaryDir>
#include <QTemporaryFile>
#include <QTest>
#include <QTreeView>

#include <sys/stat.h>

#include <numeric>

#include "tests/support/source_path.h"
#include "tests/views/open_job.h"
#include "tests/views/test_program.h"
#include "tests/views/user.h"
#include "views/jobs/debug_mode_dock.h"
#include "views/models/values_model.h"

namespace retrograd::views {

/// Numbers from outside next to the model's own: recorded norms, and values of collectives that do not run here.
class RecordedTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void J12_recordedNumbersNameTheSecondGelu();
  void J12_aDroppedRecordingIsLookedAtInTheBackground();
  void J9_collectivesArePassedOverWhereTheirValuesAreGiven();
};

void RecordedTest::J12_recordedNumbersNameTheSecondGelu() {
  const auto folder = job("debugmode/");
  if (!QFileInfo::exists(folder + QStringLiteral("model.pt2"))) QSKIP("the samples of jobs are not there");
  WindowFixture f(liveEngine());
  auto* next = command(f, "next-difference");
  QVERIFY(!command(f, "load-recorded")->isEnabled());
  QVERIFY(f.open(folder + QStringLiteral("model.pt2")));
  auto request = f.window().context().controller->document()->request;
  request.data.weights = (folder + QStringLiteral("model.safetensors")).toStdString();
  request.data.batch = (folder + QStringLiteral("batch.safetensors")).toStdString();
  const auto before = f.window().context().controller->document();
  f.window().context().controller->reopen(request);
  QTRY_VERIFY_WITH_TIMEOUT(
      f.window().context().controller->document() && f.window().context().controller->document() != before, 60000);
  QVERIFY(command(f, "load-recorded")->isEnabled());
  QVERIFY(!next->isEnabled());

  auto& dock = f.window().panel<DebugModeDock>();
  f.raise("dock-recorded");
  auto* table = f.window().findChild<QTreeView*>(QStringLiteral("recorded"));
  const QAbstractItemModelTester tester(table->model(), QAbstractItemModelTester::FailureReportingMode::QtTest);
  const auto answered = [&] {
    return !dock.summary().isEmpty() && !dock.summary().startsWith(QStringLiteral("Comparing"));
  };
  dock.load(folder + QStringLiteral("perturbed.json"));
  QVERIFY(QTest::qWaitFor(answered, 60000));
  QVERIFY2(dock.summary().contains(QStringLiteral("first difference is aten::gelu")), qPrintable(dock.summary()));
  QVERIFY2(dock.summary().contains(QStringLiteral("blocks.1")), qPrintable(dock.summary()));
  const auto gelu = table->currentIndex().siblingAtColumn(0);
  QVERIFY2(gelu.data().toString().contains(QStringLiteral("aten::gelu")), qPrintable(gelu.data().toString()));
  QVERIFY(next->isEnabled());
  next->trigger();
  QCOMPARE(f.window().context().selection->op().index, gelu.data(opRole).toInt());
  f.picture("recorded-numbers");
  next->trigger();
  QVERIFY(table->currentIndex().row() > gelu.row());

  dock.load(folder + QStringLiteral("clean.json"));
  QVERIFY(QTest::qWaitFor(answered, 60000));
  QVERIFY2(dock.summary().contains(QStringLiteral("agree")), qPrintable(dock.summary()));
  QVERIFY(!next->isEnabled());

  QFile whole(QString::fromStdString(sourcePath("tests/fuzz/seeds/recorded/clean.json")));
  QTemporaryFile damaged;
  QVERIFY(whole.open(QIODevice::ReadOnly) && damaged.open());
  damaged.write(whole.readAll().left(2000));
  damaged.close();
  dock.load(damaged.fileName());
  QVERIFY(QTest::qWaitFor(answered, 60000));
  QVERIFY2(dock.summary().startsWith(QStringLiteral("! ")), qPrintable(dock.summary()));
  QVERIFY2(dock.summary().contains(QFileInfo(damaged).fileName()), qPrintable(dock.summary()));

  dock.load(folder + QStringLiteral("model.safetensors"));
  QVERIFY(QTest::qWaitFor(answered, 60000));
  QVERIFY2(dock.summary().startsWith(QStringLiteral("! ")), qPrintable(dock.summary()));
  QCOMPARE(table->model()->rowCount(), 0);
}

// The file's beginning decides whether it is a recording. Here that comes late, from a pipe: the window goes on
// meanwhile.
void RecordedTest::J12_aDroppedRecordingIsLookedAtInTheBackground() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(QString::fromStdString(sourcePath("tests/data/models/mlp/model.pt2"))));
  const auto recording = QString::fromStdString(sourcePath("tests/fuzz/seeds/recorded/clean.json"));
  const QTemporaryDir folder;
  const auto path = folder.filePath(QStringLiteral("norms.json"));
  QCOMPARE(mkfifo(qPrintable(path), 0600), 0);
  User(f).drop(path);  // comes back though nobody has written to the pipe yet
  const auto& dock = f.window().panel<DebugModeDock>();
  QVERIFY(dock.summary().isEmpty());
  QFile pipe(path), whole(recording);
  QVERIFY(whole.open(QIODevice::ReadOnly) && pipe.open(QIODevice::WriteOnly));
  pipe.write(whole.read(4096));
  pipe.close();
  QVERIFY(QFile::remove(path) && QFile::copy(recording, path));
  QTRY_VERIFY_WITH_TIMEOUT(!dock.summary().isEmpty(), 30000);
  QVERIFY(QTest::qWaitFor([&] { return !dock.summary().startsWith(QStringLiteral("Comparing")); }, 60000));
  QVERIFY(f.controller().document()->request.path.ends_with("model.pt2"));
  // Other JSON is opened as any file is, which says what is wrong with it.
  QVERIFY(QFile::remove(path));
  QFile other(path);
  QVERIFY(other.open(QIODevice::WriteOnly) && other.write("{}") == 2);
  other.close();
  User(f).drop(path);
  QTRY_VERIFY_WITH_TIMEOUT(f.window().messages().text().contains(QStringLiteral("norms.json")), 30000);
}

// Holds J9: a collective does not run; what depends on it says so, and is computed where its value is given with the
// inputs.
void RecordedTest::J9_collectivesArePassedOverWhereTheirValuesAreGiven() {
  if (!QFileInfo::exists(job("tp"))) QSKIP("no samples of jobs");
  WindowFixture f(liveEngine());
  QVERIFY(f.open(job("tp/trace")));
  const auto valueNamed = [&](const std::string& name) {
    const auto& document = *f.analysis().document;
    for (const auto op : f.analysis().forward.ops)
      for (const auto output : document.outputs(op))
        if (document.displayName(output) == name) return std::pair(op, output);
    return std::pair(BoundSymbolId(), ValueId());
  };
  const auto shown = [&](const std::string& name) {
    const auto [op, value] = valueNamed(name);
    f.selection().select(op, value);
    const auto* values = f.window().findChild<QTreeView*>(QStringLiteral("values"));
    QString text;
    for (int row = 0; values && row < values->model()->rowCount(); ++row)
      for (int column = 0; column < values->model()->columnCount(); ++column) {
        const auto cell = values->model()->index(row, column);
        text += cell.data().toString() + QLatin1Char(' ') + cell.data(Qt::ToolTipRole).toString() + QLatin1Char('\n');
      }
    return text;
  };
  f.raise("dock-values");
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_F5);
  QVERIFY(f.settle());
  QCOMPARE(f.execution().position, f.execution().size);
  QTRY_VERIFY2(shown("sum_1").contains(
                   QStringLiteral("depends on the opaque op torch.ops._c10d_functional.wait_tensor.default")),
               qPrintable(shown("sum_1")));
  // The long reason is elided, so that names and types stay in sight; its tooltip is whole.
  const auto* values = f.window().findChild<QTreeView*>(QStringLiteral("values"));
  QVERIFY(values->columnWidth(ValuesModel::state) < 20 * values->fontMetrics().averageCharWidth());
  f.picture(QStringLiteral("collective-absent"));
  // The dialog for inputs takes a file with the values.
  QTemporaryFile given;
  QVERIFY(given.open());
  std::vector<float> numbers(128);
  std::iota(numbers.begin(), numbers.end(), 0.F);
  const QByteArray bytes(reinterpret_cast<const char*>(numbers.data()), 512);
  const QByteArray head =
      R"({"wait_tensor":{"dtype":"F32","shape":[8,16],"data_offsets":[0,512]},"wait_tensor_1":{"dtype":"F32","shape":[8,16],"data_offsets":[512,1024]}})";
  const auto size = static_cast<quint64>(head.size());
  given.write(reinterpret_cast<const char*>(&size), 8);
  given.write(head + bytes + bytes);
  given.close();
  auto request = f.controller().document()->request;
  request.inputs = given.fileName().toStdString();
  const auto before = f.controller().document();
  f.controller().reopen(request);
  const auto isOpen = [&] { return f.controller().document() && f.controller().document() != before; };
  QVERIFY2(QTest::qWaitFor(isOpen, 5000), qPrintable(f.window().messages().text()));
  f.listing(TraceKind::forward).setFocus();
  f.press(Qt::Key_F5);
  QVERIFY(f.settle());
  QTRY_VERIFY2(shown("sum_1").contains(QStringLiteral("8128")) /* 0 + 1 + ... + 127 */, qPrintable(shown("sum_1")));
  f.picture(QStringLiteral("collective-given"));
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::RecordedTest)
#include "recorded_test.moc"
