// One number for what is saved, wherever it is shown.
#include <QLabel>
#include <QTest>

#include "core/layout/graph_tree.h"
#include "core/questions/partition_wishes.h"
#include "core/questions/why.h"
#include "tests/support/source_path.h"
#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/content/diff_rows.h"
#include "views/content/graph_overlay.h"
#include "views/models/inspector_model.h"
#include "views/session/why_report.h"
#include "views/text/format.h"
#include "views/widgets/elided_label.h"

namespace retrograd::views {

class SavedTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void listingGraphWhyAndCompareAgree_data();
  void listingGraphWhyAndCompareAgree();
  void opsRunAgainHaveOneCount_data();
  void opsRunAgainHaveOneCount();
  void recomputedOpsAreTitledSo();
};

namespace {

void addModels() {
  QTest::addColumn<QString>("path");
  for (const char* path :
       {"resources/samples/tiny_gpt.pt2", "resources/samples/twins.pt2", "tests/data/models/mlp/model.pt2",
        "tests/data/models/batchnorm_train/model.pt2", "tests/data/models/dropout_train/model.pt2",
        "tests/data/models/inplace_views/model.pt2", "tests/data/models/multi_output/model.pt2"})
    QTest::newRow(path) << QString::fromStdString(sourcePath(path));
}

}  // namespace

void SavedTest::listingGraphWhyAndCompareAgree_data() { addModels(); }

void SavedTest::listingGraphWhyAndCompareAgree() {
  QFETCH(QString, path);
  WindowFixture f(liveEngine());
  QVERIFY(f.open(path));
  const auto& open = *f.controller().document();
  const auto& analysis = f.analysis();
  const auto& document = *analysis.document;
  const auto all = open.saved.bytes;

  // Each line names what it adds to the title above the listing.
  std::int64_t lines = 0;
  for (auto op : analysis.forward.ops) {
    std::int64_t ofLine = 0;
    for (auto value : document.outputs(op))
      if (value) ofLine += open.saved.costOf(value);
    QCOMPARE(lineOf(document, op, &open.saved, true).words[TextColumn::saved],
             ofLine > 0 ? bytesText(ofLine) : QString());
    lines += ofLine;
  }
  QCOMPARE(lines, all);
  bool isTitled = all == 0;
  for (const auto* title : f.window().listings().findChildren<ElidedLabel*>())
    isTitled |= title->text().contains(QStringLiteral("saves %1").arg(bytesText(all)));
  QVERIFY(isTitled);

  // The graph: the box of the whole model, and its line across.
  const auto tree = layout::buildTree(document, analysis.joint, &analysis.computation());
  QCOMPARE(tree.node(0).savedBytes, all);
  QCOMPARE(tree.node(0).acrossBytes, all);

  std::int64_t why = 0;
  for (auto value : document.valueIds())
    if (open.saved.costOf(value) > 0) why += whySaved(analysis, value).storageBytes;
  QCOMPARE(why, all);

  const auto answer = liveEngine()->whatIf(analysis, analysis.request.partition, {}, {});
  QCOMPARE(answer.before.savedBytes, all);
  QCOMPARE(answer.after.savedBytes, all);
  ComparedTrace side;
  side.analysis = f.controller().document()->analysis;
  side.trace = &analysis.joint;
  const auto comparison = compareTraces(side, side, {});
  QCOMPARE(comparison->saved[Side::left].bytes, all);
}

void SavedTest::opsRunAgainHaveOneCount_data() { addModels(); }

void SavedTest::opsRunAgainHaveOneCount() {
  QFETCH(QString, path);
  WindowFixture f(liveEngine());
  QVERIFY(f.open(path));
  const auto& analysis = f.analysis();
  int asked = 0;
  for (auto value : analysis.document->valueIds()) {
    if (f.controller().document()->saved.costOf(value) == 0) continue;
    const auto why = whySaved(analysis, value);
    if (!why.recompute.impossible.empty()) continue;
    const auto answer = liveEngine()->whatIf(analysis, recomputing(analysis, value), {}, {});
    QCOMPARE(answer.after.recomputedOps - answer.before.recomputedOps, why.recompute.ops.size());
    if (++asked == 6) break;
  }
}

void SavedTest::recomputedOpsAreTitledSo() {
  WindowFixture f(liveEngine());
  OpenRequest request;
  request.path = sourcePath("resources/samples/tiny_gpt.pt2");
  request.partition.emplace().recompute = {"all"};
  f.controller().open(request);
  QVERIFY(QTest::qWaitFor([&] { return f.controller().document() != nullptr; }, 60000));
  const auto& listing = f.listing(TraceKind::backward);
  int recomputed = 0;
  for (int row = 0; row < listing.rowCount(); ++row) {
    if (!listing.isHeader(row)) continue;
    const bool again = listing.textAt(row).startsWith(QStringLiteral("recompute of "));
    recomputed += again;
    const auto op = listing.opAt(row + 1);
    QVERIFY(op);
    QCOMPARE(again, f.analysis().document->boundSymbol(op).origin.role == Role::recompute);
  }
  QVERIFY(recomputed > 0);
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::SavedTest)
#include "saved_test.moc"
