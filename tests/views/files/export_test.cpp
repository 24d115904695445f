#include <sys/resource.h>
#include <QImage>
#include <QPainter>
#include <QSet>
#include <QStatusBar>
#include <QSvgRenderer>
#include <QTemporaryDir>
#include <QTest>
#include <QTimer>
#include <csignal>

#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/dialogs/export_dialog.h"
#include "views/engine/pool_job.h"
#include "views/window/graph_pane.h"

namespace retrograd::views {

/// Exports from the window: every format, the graph as it is shown, progress and Cancel, and what cannot be written.
class ExportTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void everyFormatIsOffered();
  void anSvgHoldsTheGraphAsText();
  void aPngIsThePictureOnTheCanvas();
  void aPdfIsOnePageWithFonts();
  void theGraphIsWrittenAsItIsShown();
  void everyFormatWritesItsFile();
  void aProfileRunsTheModelFirst();
  void theWindowGoesOnMeanwhile();
  void cancelLeavesNothing();
  void whatIsInTheWayIsSaid();
  void aFullDiskLosesNothing();
  void aGraphThatIsTooLargeIsRefused();
};

namespace {

class MeasuringEngine : public FakeEngine {
 public:
  std::vector<OpMeasure> measure(const std::shared_ptr<const Analysis>& analysis, const Progress&) override {
    ++runs;
    std::vector<OpMeasure> measures(analysis->joint.ops.size());
    for (auto& one : measures) one.seconds = 1e-5;
    return measures;
  }
  int runs = 0;
};

struct Export {
  explicit Export(std::shared_ptr<Engine> engine = std::make_shared<FakeEngine>()) : f(std::move(engine)) {}
  bool open(int layers = 3) {
    if (!f.open(QStringLiteral("synthetic:%1").arg(layers))) return false;
    f.window().findChild<QAction*>(QStringLiteral("action-export"))->trigger();
    return dialog().isVisible();
  }
  ExportDialog& dialog() { return *f.window().findChild<ExportDialog*>(QStringLiteral("export-dialog")); }
  QString path(const QString& name) const { return folder.filePath(name); }
  /// Writes one trace and waits; the message, empty where the file is there.
  QString write(const QString& format, const QString& name, TraceKind kind = TraceKind::joint) {
    dialog().show();
    dialog().choose(format, {kind}, path(name));
    dialog().start();
    if (!QTest::qWaitFor([&] { return !dialog().busy(); }, 60000)) return QStringLiteral("never ends");
    return dialog().isVisible() ? dialog().message() : QString();
  }
  QByteArray contents(const QString& name) const {
    QFile file(path(name));
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
  }

  WindowFixture f;
  QTemporaryDir folder;
};

QSet<QRgb> colorsOf(const QImage& image) {
  QSet<QRgb> colors;
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x) colors.insert(image.pixel(x, y));
  return colors;
}

}  // namespace

void ExportTest::everyFormatIsOffered() {
  Export e;
  auto* action = e.f.window().findChild<QAction*>(QStringLiteral("action-export"));
  QVERIFY(!action->isEnabled());
  QVERIFY(action->toolTip().contains(QStringLiteral("No file is open")));
  QVERIFY(e.open());
  QStringList offered, known;
  const auto* formats = e.dialog().findChild<QComboBox*>(QStringLiteral("export-format"));
  for (int i = 0; i < formats->count(); ++i) offered << formats->itemData(i).toString();
  for (const auto& format : exportFormats()) known << QString::fromStdString(format.name);
  QCOMPARE(offered, known);
  for (const char* name : {"text", "python", "dot", "csv", "json", "chrome", "svg", "png", "pdf"})
    QVERIFY2(offered.contains(QLatin1String(name)), name);
}

void ExportTest::anSvgHoldsTheGraphAsText() {
  Export e;
  QVERIFY(e.open());
  e.dialog().findChild<QComboBox*>(QStringLiteral("export-groups"))->setCurrentIndex(2);
  QCOMPARE(e.write(QStringLiteral("svg"), QStringLiteral("graph.svg")), QString());
  const auto text = e.contents(QStringLiteral("graph.svg"));
  for (const char* word : {">relu<", "threshold_backward", "f32[8, 10]", "Forward", "Backward", "monospace"})
    QVERIFY2(text.contains(word), word);
  QSvgRenderer renderer(text);
  QVERIFY(renderer.isValid());
  QImage image(renderer.defaultSize(), QImage::Format_RGB32);
  image.fill(Qt::white);
  QPainter painter(&image);
  renderer.render(&painter);
  painter.end();
  QVERIFY(colorsOf(image).size() > 20);
  QVERIFY(e.f.window().statusBar()->currentMessage().contains(QStringLiteral("graph.svg")));
}

void ExportTest::aPngIsThePictureOnTheCanvas() {
  Export e;
  QVERIFY(e.open());
  QCOMPARE(e.write(QStringLiteral("png"), QStringLiteral("graph.png")), QString());
  const QImage once(e.path(QStringLiteral("graph.png")));
  QVERIFY(!once.isNull());
  const auto light = graphColors(false), dark = graphColors(true);
  const auto colors = colorsOf(once);
  for (const auto& color : {light.canvas, light.forward.accent, light.backward.accent})
    QVERIFY(colors.contains(color.rgb()));
  e.dialog().findChild<QCheckBox*>(QStringLiteral("export-dark"))->setChecked(true);
  QCOMPARE(e.write(QStringLiteral("png"), QStringLiteral("dark.png")), QString());
  const QImage other(e.path(QStringLiteral("dark.png")));
  QCOMPARE(other.size(), once.size());
  QVERIFY(colorsOf(other).contains(dark.canvas.rgb()));
  QVERIFY(!colorsOf(other).contains(light.canvas.rgb()));
}

void ExportTest::aPdfIsOnePageWithFonts() {
  Export e;
  QVERIFY(e.open());
  QCOMPARE(e.write(QStringLiteral("pdf"), QStringLiteral("graph.pdf")), QString());
  const auto bytes = e.contents(QStringLiteral("graph.pdf"));
  QVERIFY(bytes.startsWith("%PDF-"));
  QCOMPARE(bytes.count("/Type /Page\n"), 1);
  // Text that can be sought: fonts with a way from glyphs to characters.
  QVERIFY(bytes.contains("/ToUnicode"));
  QVERIFY(bytes.contains("/FontFile2"));
}

void ExportTest::theGraphIsWrittenAsItIsShown() {
  Export e;
  QVERIFY(e.f.open(QStringLiteral("synthetic:12")));
  auto& listings = e.f.window().listings();
  listings.graphAction()->setChecked(true);
  auto& graph = listings.graph();
  QVERIFY(QTest::qWaitFor([&] { return graph.picture() && !graph.busy(); }));
  const auto opened = graph.picture()->scene.boxes.size();
  QCOMPARE(e.write(QStringLiteral("svg"), QStringLiteral("closed.svg")), QString());
  const auto closed = e.contents(QStringLiteral("closed.svg")).count("<text");
  graph.setAllOpen(true);
  QVERIFY(QTest::qWaitFor([&] { return !graph.busy() && graph.picture()->scene.boxes.size() > opened; }));
  graph.setOverlay(Overlay::bytes);
  graph.showEdges(layout::EdgeKind::saved, false);
  QCOMPARE(e.write(QStringLiteral("svg"), QStringLiteral("open.svg")), QString());
  const auto text = e.contents(QStringLiteral("open.svg"));
  QVERIFY(text.count("<text") > closed);
  QVERIFY2(text.contains(">Bytes<"), "the legend of the overlay");
  QVERIFY2(!text.contains(graphColors(false).edge[layout::EdgeKind::saved].name().toUtf8() + "\" stroke-opacity"),
           "saved edges were switched off");
  // Another trace than the one that is shown opens as it does at first.
  QCOMPARE(e.write(QStringLiteral("svg"), QStringLiteral("forward.svg"), TraceKind::forward), QString());
  QVERIFY(!e.contents(QStringLiteral("forward.svg")).contains("backward"));
}

void ExportTest::everyFormatWritesItsFile() {
  Export e(std::make_shared<MeasuringEngine>());
  QVERIFY(e.open());
  for (const auto& format : exportFormats()) {
    if (format.name == "python") continue;  // needs the weights of a real file
    const auto name = QStringLiteral("out-") + QString::fromStdString(format.name);
    QCOMPARE(e.write(QString::fromStdString(format.name), name), QString());
    QVERIFY2(QFileInfo(e.path(name)).size() > 100, format.name.c_str());
  }
  // Pictures show one trace: another one takes its place.
  e.dialog().show();
  e.dialog().choose(QStringLiteral("png"), {TraceKind::joint}, e.path(QStringLiteral("x.png")));
  QTest::mouseClick(e.dialog().findChild<QCheckBox*>(QStringLiteral("export-forward")), Qt::LeftButton, {},
                    QPoint(8, 8));
  QVERIFY(!e.dialog().findChild<QCheckBox*>(QStringLiteral("export-joint"))->isChecked());
}

void ExportTest::aProfileRunsTheModelFirst() {
  const auto engine = std::make_shared<MeasuringEngine>();
  Export e(engine);
  QVERIFY(e.open());
  QCOMPARE(e.write(QStringLiteral("chrome"), QStringLiteral("profile.json")), QString());
  QCOMPARE(engine->runs, 1);
  QVERIFY(e.contents(QStringLiteral("profile.json")).contains("traceEvents"));
  e.dialog().findChild<QCheckBox*>(QStringLiteral("export-times"))->setChecked(false);
  QCOMPARE(e.write(QStringLiteral("csv"), QStringLiteral("table.csv")), QString());
  QCOMPARE(engine->runs, 1);
  // An engine that cannot run says so, and nothing is written.
  Export other;
  QVERIFY(other.open());
  QVERIFY(other.write(QStringLiteral("chrome"), QStringLiteral("profile.json"))
              .contains(QStringLiteral("nothing can be run")));
  QVERIFY(!QFileInfo::exists(other.path(QStringLiteral("profile.json"))));
}

void ExportTest::theWindowGoesOnMeanwhile() {
  Export e;
  QVERIFY(e.open(400));
  e.dialog().findChild<QComboBox*>(QStringLiteral("export-groups"))->setCurrentIndex(2);
  int ticks = 0, reports = 0;
  QTimer timer;
  connect(&timer, &QTimer::timeout, this, [&] { ++ticks; });
  timer.start(5);
  auto* bar = e.dialog().findChild<QProgressBar*>();
  connect(bar, &QProgressBar::valueChanged, this, [&] { ++reports; });
  QCOMPARE(e.write(QStringLiteral("svg"), QStringLiteral("large.svg")), QString());
  QVERIFY2(ticks > 5, qPrintable(QString::number(ticks)));
  QVERIFY(reports > 1);
}

void ExportTest::cancelLeavesNothing() {
  Export e;
  QVERIFY(e.open(1500));
  auto& dialog = e.dialog();
  dialog.findChild<QComboBox*>(QStringLiteral("export-groups"))->setCurrentIndex(2);
  dialog.choose(QStringLiteral("pdf"), {TraceKind::joint}, e.path(QStringLiteral("large.pdf")));
  dialog.start();
  QVERIFY(dialog.busy());
  const auto* progress = dialog.findChild<QProgressBar*>();
  QTRY_VERIFY(progress->value() > progress->minimum());
  QVERIFY(dialog.busy());
  QTest::keyClick(&dialog, Qt::Key_Escape);
  QVERIFY(!dialog.busy());
  QVERIFY(dialog.isVisible());
  QVERIFY(dialog.message().startsWith(QStringLiteral("Cancelled")));
  QVERIFY(QTest::qWaitFor([&] { return PoolJob::pool().activeThreadCount() == 0; }, 10000));
  QCOMPARE(QDir(e.folder.path()).entryList(QDir::Files | QDir::Hidden).size(), 0);
  QTest::keyClick(&dialog, Qt::Key_Escape);
  QVERIFY(!dialog.isVisible());
}

void ExportTest::whatIsInTheWayIsSaid() {
  Export e;
  QVERIFY(e.open());
  auto& dialog = e.dialog();
  auto* button = dialog.findChild<QPushButton*>(QStringLiteral("export-start"));
  dialog.choose(QStringLiteral("svg"), {TraceKind::joint}, QString());
  QVERIFY(!button->isEnabled());
  QVERIFY(!button->toolTip().isEmpty());
  dialog.choose(QStringLiteral("svg"), {TraceKind::joint}, e.folder.path());
  QVERIFY(!button->isEnabled());
  const auto said = e.write(QStringLiteral("svg"), QStringLiteral("no/such/folder/graph.svg"));
  QVERIFY2(said.contains(QStringLiteral("no/such/folder")) && said.contains(QStringLiteral("No such file")),
           qPrintable(said));
  QFile there(e.path(QStringLiteral("there.svg")));
  QVERIFY(there.open(QIODevice::WriteOnly));
  dialog.choose(QStringLiteral("svg"), {TraceKind::joint}, there.fileName());
  QVERIFY(button->isEnabled());
  QVERIFY(dialog.message().contains(QStringLiteral("replaced")));
}

void ExportTest::aFullDiskLosesNothing() {
  Export e;
  QVERIFY(e.open());
  QFile there(e.path(QStringLiteral("graph.svg")));
  QVERIFY(there.open(QIODevice::WriteOnly) && there.write("before") == 6);
  there.close();
  // As a full disk does it, a limit on the size of files makes write() fail.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{1000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const auto said = e.write(QStringLiteral("svg"), QStringLiteral("graph.svg"));
  setrlimit(RLIMIT_FSIZE, &before);
  QVERIFY2(said.contains(QStringLiteral("graph.svg")) && said.contains(QStringLiteral("cannot write")),
           qPrintable(said));
  QCOMPARE(e.contents(QStringLiteral("graph.svg")), QByteArray("before"));
  QCOMPARE(QDir(e.folder.path()).entryList(QDir::Files | QDir::Hidden).size(), 1);
}

void ExportTest::aGraphThatIsTooLargeIsRefused() {
  Export e;
  QVERIFY(e.open(9000));
  e.dialog().findChild<QComboBox*>(QStringLiteral("export-groups"))->setCurrentIndex(2);
  for (const char* format : {"svg", "png"}) {
    const auto said = e.write(QLatin1String(format), QStringLiteral("graph"));
    QVERIFY2(said.contains(QStringLiteral("close groups")), qPrintable(said));
    QVERIFY(!QFileInfo::exists(e.path(QStringLiteral("graph"))));
  }
  // As it opens at first it is small.
  e.dialog().findChild<QComboBox*>(QStringLiteral("export-groups"))->setCurrentIndex(1);
  QCOMPARE(e.write(QStringLiteral("svg"), QStringLiteral("graph.svg")), QString());
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::ExportTest)
#include "export_test.moc"
