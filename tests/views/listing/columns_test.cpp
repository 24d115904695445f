// The columns of words next to the code of a listing, and their titles.
#include <QScrollBar>
#include <QTest>
#include <filesystem>

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
  void theOriginIsHiddenInsideItsOwnGroup();
  void savedBytesHaveAColumnOfTheirOwn();
  void aColumnIsSizedByItsBorder();
  void columnsAreChosen();
  void numbersAreWholeBeforeCodeIsInOneLine();
  void aColumnWithoutRoomIsNamed();
  void aRunShowsNormsNextToOps();
  void callsAreWholeInThreeListingsAt1600_data();
  void callsAreWholeInThreeListingsAt1600();
  void aLineIsAtTheHeightWhereItIsPainted();

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

void ColumnsTest::theOriginIsHiddenInsideItsOwnGroup() {
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

void ColumnsTest::savedBytesHaveAColumnOfTheirOwn() {
  auto& view = f_->listing(TraceKind::forward);
  const auto columns = view.columns();
  QVERIFY(columns.right[TextColumn::saved] > columns.left[TextColumn::saved]);
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

void ColumnsTest::aColumnIsSizedByItsBorder() {
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
  const auto chosen = f_->window().listings().columnChoices()[TextColumn::shape].characters;
  QVERIFY(chosen > 0);
  QCOMPARE(kept::textColumns.of(*f_->window().shared().settings).value(QStringLiteral("shape")).toInt(), chosen);
  QVERIFY(header(TraceKind::backward).rectOf(TextColumn::shape).width() > before.width());
  QTest::mouseDClick(&titles, Qt::LeftButton, Qt::NoModifier,
                     QPoint(titles.rectOf(TextColumn::shape).left(), border.y()));
  QTRY_COMPARE(f_->window().listings().columnChoices()[TextColumn::shape].characters, 0);
}

void ColumnsTest::columnsAreChosen() {
  auto& view = f_->listing(TraceKind::forward);
  auto* action = f_->window().findChild<QAction*>(QStringLiteral("action-column-shape"));
  QVERIFY(action && action->isChecked());
  const auto code = view.columns().codeEnd;
  action->trigger();
  QVERIFY(standsStill(view));
  QCOMPARE(view.columns().left[TextColumn::shape], view.columns().right[TextColumn::shape]);
  QVERIFY(view.columns().codeEnd > code);
  QVERIFY(header(TraceKind::forward).rectOf(TextColumn::shape).isEmpty());
  QVERIFY(!header(TraceKind::forward).accessibleDescription().contains(QStringLiteral("Shape")));
  action->trigger();
  QVERIFY(standsStill(view));
  QVERIFY(view.columns().left[TextColumn::shape] < view.columns().right[TextColumn::shape]);
}

// W47: shapes and saved bytes have room first, on both sides, and no number is cut.
void ColumnsTest::numbersAreWholeBeforeCodeIsInOneLine() {
  f_->window().resize(1600, 1000);
  QVERIFY(rests());
  for (auto kind : {TraceKind::forward, TraceKind::backward}) {
    auto& view = f_->listing(kind);
    const auto columns = view.columns();
    QVERIFY(columns.right[TextColumn::shape] > columns.left[TextColumn::shape]);
    int wrapped = 0;
    for (int row = 0; row < view.rowCount(); ++row) {
      wrapped += !view.shownCode(row).breaks.empty();
      for (auto column : {TextColumn::shape, TextColumn::saved}) {
        const int characters = view.charactersOf(columns.right[column] - columns.left[column]) - 1;
        if (view.isRowVisible(row) && !view.wordAt(row, column).isEmpty())
          QVERIFY2(!wordWithin(view.lineTextAt(row), column, characters).contains(QChar(0x2026)),
                   qPrintable(view.textAt(row)));
      }
    }
    QVERIFY(wrapped > 0);
  }
  const auto columns = f_->listing(TraceKind::forward).columns();
  QVERIFY(columns.right[TextColumn::saved] > columns.left[TextColumn::saved]);
}

void ColumnsTest::aColumnWithoutRoomIsNamed() {
  auto& listings = f_->window().listings();
  for (auto kind : traceKinds) listings.toggleAction(kind)->setChecked(true);
  f_->window().resize(1280, 800);
  QVERIFY(rests());
  const auto without = header(TraceKind::forward).without();
  QVERIFY(without.contains(QStringLiteral("Comes From")) || without.contains(QStringLiteral("Saved")));
  QVERIFY(
      header(TraceKind::forward).accessibleDescription().contains(QStringLiteral("no room for ") + without.first()));
}

void ColumnsTest::aRunShowsNormsNextToOps() {
  auto& view = f_->listing(TraceKind::forward);
  f_->window().resize(1600, 1000);
  QVERIFY(rests());
  QVERIFY(!view.columnRect().isEmpty());
  QVERIFY(header(TraceKind::forward).accessibleDescription().contains(QStringLiteral("L2 Norm")));
  int known = 0;
  for (int row = 0; row < view.rowCount(); ++row) known += !view.numberAt(row).isEmpty();
  QVERIFY(known > 20);
}

void ColumnsTest::callsAreWholeInThreeListingsAt1600_data() {
  QTest::addColumn<std::string>("file");
  QTest::newRow("tiny_gpt") << sourcePath("resources/samples/tiny_gpt.pt2");
  const auto large = sourcePath("../shared/cases/large/gpt96/model.pt2");
  if (std::filesystem::exists(large)) QTest::newRow("gpt96") << large;
}

void ColumnsTest::callsAreWholeInThreeListingsAt1600() {
  QFETCH(std::string, file);
  QVERIFY(f_->open(QString::fromStdString(file)));
  f_->window().resize(1600, 1000);
  auto& listings = f_->window().listings();
  listings.toggleAction(TraceKind::computation)->setChecked(true);
  QVERIFY(rests());
  for (auto kind : {TraceKind::computation, TraceKind::forward, TraceKind::backward}) {
    auto& view = f_->listing(kind);
    int whole = 0, all = 0, wrapped = 0;
    QStringList cut;
    for (int top = 0, steps = 0;; top = std::min(top + 20, view.verticalScrollBar()->maximum())) {
      view.verticalScrollBar()->setValue(top);
      QVERIFY(standsStill(view));
      for (int row = top; row < view.rowCount() && view.isRowVisible(row); ++row) {
        if (view.isHeader(row)) continue;
        ++all;
        const auto shown = view.shownCode(row);
        if (shown.text.contains(QChar(0x2026))) cut << shown.text;
        else ++whole;
        wrapped += !shown.breaks.empty();
      }
      if (top == view.verticalScrollBar()->maximum() || ++steps == 12) break;
    }
    QVERIFY2(whole * 100 >= all * 95 && wrapped > 0,
             qPrintable(QStringLiteral("%1 of %2 in %3: %4")
                            .arg(whole)
                            .arg(all)
                            .arg(titleText(kind), cut.join(QLatin1Char('\n')))));
  }
}

void ColumnsTest::aLineIsAtTheHeightWhereItIsPainted() {
  f_->window().resize(1600, 1000);
  f_->window().listings().toggleAction(TraceKind::computation)->setChecked(true);
  QVERIFY(rests());
  auto& view = f_->listing(TraceKind::computation);
  int row = 0;
  while (row < view.rowCount() && view.shownCode(row).breaks.empty()) ++row;
  QVERIFY(row < view.rowCount() && view.isRowVisible(row));
  const auto rect = view.rowRect(row), before = view.rowRect(row - 1);
  QCOMPARE(rect.height(), before.height() * static_cast<int>(1 + view.shownCode(row).breaks.size()));
  // A click in the last line selects the row and the value there.
  const auto code = view.shownCode(row);
  const auto last = code.tokens.end() - 2;  // before the bracket
  const auto part = code.parts(last->begin, last->length).back();
  QCOMPARE(part.line, static_cast<int>(code.breaks.size()));
  const int character = view.charactersOf(1000) > 0 ? 1000 / view.charactersOf(1000) : 8;
  const QPoint at(view.textLeft(row) + part.column * character + 3, rect.bottom() - before.height() / 2);
  QTest::mouseClick(view.viewport(), Qt::LeftButton, Qt::NoModifier, at);
  QCOMPARE(f_->window().context().selection->op(), view.opAt(row));
  QCOMPARE(view.rowAtY(rect.bottom()), row);
  QCOMPARE(view.rowAtY(rect.bottom() + 1), row + 1);
  // The last row can be reached, and a page leaves no row unseen.
  QTest::keyClick(&view, Qt::Key_End);
  QVERIFY(view.isRowVisible(view.rowCount() - 1));
  QTest::keyClick(&view, Qt::Key_Home);
  int bottom = 0;
  while (view.isRowVisible(bottom + 1)) ++bottom;
  QTest::keyClick(&view, Qt::Key_PageDown);
  QVERIFY(view.cursorRow() <= bottom + 1);
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::ColumnsTest)
#include "columns_test.moc"
