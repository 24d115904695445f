// One number for what is saved, of every model that lies with the tests and, where there are some, next to the
// checkout.
#include <QDirIterator>
#include <QTest>
#include <filesystem>

#include "core/base/error.h"
#include "core/layout/graph_tree.h"
#include "core/questions/why.h"
#include "core/torch/checking/bench.h"
#include "tests/support/source_path.h"
#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/content/diff_rows.h"
#include "views/models/modules_model.h"
#include "views/text/format.h"
#include "views/text/line_text.h"

namespace retrograd::views {

/// It opens what is below 400 KiB, and of a folder with many models each sixteenth;
/// RETROGRAD_ALL_CASES=1: all of them.
class SavedModelsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void everyViewHasTheSameNumber_data();
  void everyViewHasTheSameNumber();
};

namespace {

constexpr qint64 largest = qint64(400) << 10;
constexpr int many = 60, each = 16;

bool all() { return qEnvironmentVariableIntValue("RETROGRAD_ALL_CASES") != 0; }

QStringList modelsBelow(const QString& folder) {
  QMap<QString, QStringList> byGroup;  // the folder in which the models' own folders are
  QDirIterator files(folder, {"*.pt2", "*.pt", "*.retrograd"}, QDir::Files, QDirIterator::Subdirectories);
  while (files.hasNext()) {
    const QFileInfo file(files.next());
    if (file.size() <= largest || all()) byGroup[QDir::cleanPath(file.dir().filePath(".."))] << file.filePath();
  }
  QStringList chosen;
  for (auto& models : byGroup) {
    models.sort();
    for (qsizetype i = 0; i<models.size(); i += models.size()> many && !all() ? each : 1) chosen << models[i];
  }
  return chosen;
}

std::shared_ptr<const OpenDocument> opened(const std::string& path) {
  auto open = std::make_shared<OpenDocument>();
  open->request.path = path;
  open->analysis = liveEngine()->open(open->request, {}, {});
  for (auto kind : {TraceKind::computation, TraceKind::joint, TraceKind::forward, TraceKind::backward})
    open->traces[kind] = indexTrace(open->analysis, kind);
  open->saved = savedValues(*open->analysis);
  return open;
}

/// What the lines of the listing say, of all and of those that are in no module.
struct Lines {
  std::int64_t all = 0, outside = 0;
  bool areWorded = true;
};

Lines linesOf(const OpenDocument& open) {
  const auto& document = *open.analysis->document;
  Lines lines;
  for (auto op : open.analysis->forward.ops) {
    std::int64_t ofLine = 0;
    for (auto value : document.outputs(op)) ofLine += value ? open.saved.costOf(value) : 0;
    lines.areWorded &= lineOf(document, op, &open.saved, true).words[TextColumn::saved] ==
                       (ofLine > 0 ? bytesText(ofLine) : QString());
    lines.all += ofLine;
    if (!document.boundSymbol(op).module) lines.outside += ofLine;
  }
  return lines;
}

/// Of all boxes, that each has what those in it have.
bool boxesAddUp(const layout::GraphTree& tree) {
  for (std::int32_t i = 0; i < tree.size(); ++i) {
    std::int64_t below = 0;
    for (auto child = i + 1; child < tree.node(i).end; child = tree.next(child)) below += tree.node(child).savedBytes;
    if (tree.node(i).childCount > 0 && below != tree.node(i).savedBytes) return false;
  }
  return true;
}

std::int64_t modulesOf(const OpenDocument& open) {
  const auto modules = ModulesModel::modulesOf(open);
  std::int64_t bytes = 0;
  for (const int top : modules.root.parts) bytes += modules.all[static_cast<std::size_t>(top)].saved;
  return bytes;
}

std::int64_t compared(const OpenDocument& open) {
  ComparedTrace side;
  side.analysis = open.analysis;
  side.trace = &open.analysis->joint;
  return compareTraces(side, side, {})->saved[Side::left].bytes;
}

}  // namespace

void SavedModelsTest::everyViewHasTheSameNumber_data() {
  QTest::addColumn<QString>("path");
  for (const char* folder : {"tests/data", "resources/samples", "../shared/cases"}) {
    const auto root = QString::fromStdString(sourcePath(folder));
    if (QFileInfo(root).isDir())
      for (const auto& path : modelsBelow(root))
        QTest::newRow(qPrintable(QLatin1String(folder) + path.mid(root.size()))) << path;
  }
}

void SavedModelsTest::everyViewHasTheSameNumber() {
  QFETCH(QString, path);
  std::shared_ptr<const OpenDocument> open;
  try {
    open = opened(path.toStdString());
  } catch (const Error& error) {
    QVERIFY2(!path.contains(QStringLiteral("tests/data/models")), error.what());
    QSKIP(qPrintable(QString::fromUtf8(error.what()).section(QLatin1Char('\n'), 0, 0)));
  }
  const auto& analysis = *open->analysis;
  if (!analysis.derived()) QSKIP("no backward could be derived");
  const auto bytes = open->saved.bytes;

  const auto lines = linesOf(*open);
  QVERIFY(lines.areWorded);
  QCOMPARE(lines.all, bytes);
  const auto tree = layout::buildTree(*analysis.document, analysis.joint, &analysis.computation());
  QCOMPARE(tree.node(0).savedBytes, bytes);
  QCOMPARE(tree.node(0).acrossBytes, bytes);
  QVERIFY(boxesAddUp(tree));
  std::int64_t why = 0;
  for (auto value : analysis.document->valueIds())
    if (open->saved.costOf(value) > 0) why += whySaved(analysis, value).storageBytes;
  QCOMPARE(why, bytes);
  QCOMPARE(modulesOf(*open) + lines.outside, bytes);
  QCOMPARE(compared(*open), bytes);
  QCOMPARE(liveEngine()->whatIf(analysis, analysis.request.partition, {}, {}).before.savedBytes, bytes);
  QCOMPARE(bench([&] { return open->analysis; }, 1).savedStorageBytes, bytes);
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::SavedModelsTest)
#include "saved_models_test.moc"
