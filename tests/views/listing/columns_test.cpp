// The columns of words next to the code of a listing, and their titles.
#include <QTest>

#include "tests/support/source_path.h"
#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/settings/settings.h"
#include "views/window/listing_header.h"

namespace retrograd::views {

class ColumnsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init();
  void cleanup();
  void W26_theOriginIsHiddenInsideItsOwnGroup();
  void W26_savedBytesHaveAColumnOfTheirOwn();
  void W26_aColumnIsSizedByItsBorder();
  void W26_columnsAreChosen();
  void W26_mostCallsAreWholeAt1600();

 private:
  ListingHeader& header(TraceKind kind) {
    for (auto* each : f_->window().findChildren<ListingHeader*>())
      if (each->accessibleName() == QStringLiteral("Columns of %1").arg(titleText(kind))) return *each;
    qFatal("no header");
  }
  bool rests() { return f_->quiet() && standsStill(f_->window()); }

  std::unique_ptr<WindowFixture> f_;
};

void ColumnsTest::init() {
  f_ = std::make_unique<WindowFixture>(liveEngine(), WindowFixture::Start::asItComes);
  QVERIFY(f_->open(QString::fromStdString(sourcePath("resources/samples/tiny_gpt.pt2"))));
  f_->window().resize(1900, 1000);
  QVERIFY(rests());
}

void ColumnsTest::cleanup() { f_.reset(); }

void ColumnsTest::W26_theOriginIsHiddenInsideItsOwnGroup() {
  auto& view = f_->listing(TraceKind::backward);
  const auto& document = *f_->analysis().document;
  int inside = 0, alone = 0;
  QString title;
  for (int row = 0; row < view.rowCount(); ++row) {
    if (view.isHeader(row)) {
      title = view.textAt(row);
      continue;
    }
    const auto origin = document.boundSymbol(view.opAt(row)).origin.op;
    if (!origin) continue;
    const auto name = operationName(document, origin);
    const auto word = view.wordAt(row, TextColumn::origin);
    const bool isInside = view.textLeft(row) > view.columns().code + 8 && title.contains(name);
    if (isInside) QVERIFY2(!word.contains(name), qPrintable(view.textAt(row)));
    else QVERIFY2(word.contains(name), qPrintable(view.textAt(row)));
    ++(isInside ? inside : alone);
  }
  QVERIFY(inside > 10 && alone > 3);
  // Without groups every line says it.
  view.setGrouping(Grouping::none);
  for (int row = 0; row < view.rowCount(); ++row)
    if (const auto origin = document.boundSymbol(view.opAt(row)).origin.op)
      QVERIFY(view.wordAt(row, TextColumn::origin).contains(operationName(document, origin)));
}

void ColumnsTest::W26_savedBytesHaveAColumnOfTheirOwn() {
  auto& view = f_->listing(TraceKind::forward);
  const auto columns = view.columns();
  QVERIFY(columns.end > columns.saved);
  QVERIFY(!header(TraceKind::forward).rectOf(TextColumn::saved).isEmpty());
  int saved = 0;
  for (int row = 0; row < view.rowCount(); ++row) {
    std::int64_t bytes = 0;
    if (const auto op = view.opAt(row))
      for (auto value : f_->analysis().document->outputs(op))
        if (value) bytes += f_->controller().document()->saved.costOf(value);
    QCOMPARE(view.wordAt(row, TextColumn::saved).isEmpty(), bytes == 0);
    saved += bytes > 0;
  }
  QVERIFY(saved > 5);
}

void ColumnsTest::W26_aColumnIsSizedByItsBorder() {
  auto& view = f_->listing(TraceKind::forward);
  auto& titles = header(TraceKind::forward);
  const auto before = titles.rectOf(TextColumn::shape);
  QVERIFY(!before.isEmpty());
  const QPoint border(before.left(), before.height() / 2);
  QCOMPARE(titles.borderAt(border.x()), std::optional(TextColumn::shape));
  QTest::mousePress(&titles, Qt::LeftButton, Qt::NoModifier, border);
  QTest::mouseMove(&titles, border - QPoint(60, 0));
  QTest::mouseRelease(&titles, Qt::LeftButton, Qt::NoModifier, border - QPoint(60, 0));
  QVERIFY(standsStill(view));
  QTRY_VERIFY2(titles.rectOf(TextColumn::shape).width() > before.width() + 30,
               qPrintable(QString::number(titles.rectOf(TextColumn::shape).width())));
  // All listings have it, and the next start.
  const auto chosen = f_->window().listings().columnChoices()[0].characters;
  QVERIFY(chosen > 0);
  QCOMPARE(kept::textColumns.of(*f_->window().shared().settings).value(QStringLiteral("shape")).toInt(), chosen);
  QVERIFY(header(TraceKind::backward).rectOf(TextColumn::shape).width() > before.width());
  QTest::mouseDClick(&titles, Qt::LeftButton, Qt::NoModifier,
                     QPoint(titles.rectOf(TextColumn::shape).left(), border.y()));
  QTRY_COMPARE(f_->window().listings().columnChoices()[0].characters, 0);
}

void ColumnsTest::W26_columnsAreChosen() {
  auto& view = f_->listing(TraceKind::forward);
  auto* action = f_->window().findChild<QAction*>(QStringLiteral("action-column-shapes"));
  QVERIFY(action && action->isChecked());
  const auto code = view.columns().codeEnd;
  action->trigger();
  QVERIFY(standsStill(view));
  QCOMPARE(view.columns().shape, view.columns().origin);
  QVERIFY(view.columns().codeEnd > code);
  QVERIFY(header(TraceKind::forward).rectOf(TextColumn::shape).isEmpty());
  QVERIFY(!header(TraceKind::forward).accessibleDescription().contains(QStringLiteral("Shape")));
  action->trigger();
  QVERIFY(standsStill(view));
  QVERIFY(view.columns().shape < view.columns().origin);
}

void ColumnsTest::W26_mostCallsAreWholeAt1600() {
  f_->window().resize(1600, 1000);
  QVERIFY(rests());
  for (auto kind : {TraceKind::forward, TraceKind::backward}) {
    const auto& view = f_->listing(kind);
    int whole = 0, all = 0;
    for (int row = 0; row < view.rowCount() && view.isRowVisible(row); ++row) {
      ++all;
      whole += !view.shownCode(row).text.contains(QChar(0x2026));
    }
    QVERIFY2(whole * 100 >= all * 80,
             qPrintable(QStringLiteral("%1 of %2 in %3").arg(whole).arg(all).arg(titleText(kind))));
  }
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::ColumnsTest)
#include "columns_test.moc"
