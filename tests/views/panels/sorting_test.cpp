// Columns of trees and tables can be sorted, their widths are kept, and typed letters search.
#include <QAbstractItemModelTester>
#include <QHeaderView>
#include <QKeyEvent>
#include <QTableView>
#include <QTest>
#include <QTreeView>
#include <cmath>

#include "tests/support/source_path.h"
#include "tests/views/panels.h"
#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/docks/values_dock.h"
#include "views/engine/engine.h"
#include "views/models/compare_model.h"
#include "views/models/tree_model.h"
#include "views/models/values_model.h"
#include "views/widgets/sorted_rows.h"

namespace retrograd::views {

class SortingTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void numbersAreSortedAsNumbers();
  void textsAreSortedAsPeopleReadThem();
  void aSortedTableStaysWithItsRows();
  void sortingByKeyboard();
  void restoredWidthsLeaveTitlesThatSort();
  void everyListSearchesByTyping();
  void panelsWithNumbersAreSorted();
};

namespace {

QString sample() { return QString::fromStdString(sourcePath("tests/data/models/mlp/model.pt2")); }

QTreeView& treeOf(WindowFixture& f, const char* name) { return *f.window().findChild<QTreeView*>(QLatin1String(name)); }

void clickTitle(const QTreeView& tree, int column) {
  auto* header = tree.header();
  QTest::mouseClick(header->viewport(), Qt::LeftButton, Qt::NoModifier,
                    {header->sectionViewportPosition(column) + 12, header->height() / 2});
}

QList<double> numbers(const QTreeView& tree, int column) {
  QList<double> all;
  for (int row = 0; row < tree.model()->rowCount(); ++row)
    all << tree.model()->index(row, column).data(sortRole).toDouble();
  return all;
}

/// A table of three numbers, one of which is missing.
class Numbers : public QAbstractTableModel {
 public:
  explicit Numbers(QList<double> numbers, QStringList texts) : numbers_(std::move(numbers)), texts_(std::move(texts)) {}
  int rowCount(const QModelIndex& parent = {}) const override {
    return parent.isValid() ? 0 : static_cast<int>(texts_.size());
  }
  int columnCount(const QModelIndex& parent = {}) const override { return parent.isValid() ? 0 : 1; }
  QVariant data(const QModelIndex& index, int role) const override {
    if (role == sortRole && !numbers_.isEmpty()) return numbers_[index.row()];
    return role == Qt::DisplayRole ? QVariant(texts_[index.row()]) : QVariant();
  }

 private:
  QList<double> numbers_;
  QStringList texts_;
};

QStringList textsOf(const QAbstractItemModel& model) {
  QStringList all;
  for (int row = 0; row < model.rowCount(); ++row) all << model.index(row, 0).data().toString();
  return all;
}

}  // namespace

void SortingTest::numbersAreSortedAsNumbers() {
  Numbers model({1024, 900, qQNaN(), 3e-5}, {"1 KiB", "900 B", "", "3e-5"});
  QTreeView tree;
  tree.setModel(&model);
  auto* rows = new SortedRows(tree);
  const QAbstractItemModelTester tester(rows, QAbstractItemModelTester::FailureReportingMode::QtTest);
  QCOMPARE(textsOf(*rows), (QStringList{"1 KiB", "900 B", "", "3e-5"}));  // as the model has them
  tree.sortByColumn(0, Qt::AscendingOrder);
  QCOMPARE(textsOf(*rows), (QStringList{"3e-5", "900 B", "1 KiB", ""}));
  tree.sortByColumn(0, Qt::DescendingOrder);
  QCOMPARE(textsOf(*rows), (QStringList{"1 KiB", "900 B", "3e-5", ""}));
}

void SortingTest::textsAreSortedAsPeopleReadThem() {
  Numbers model({}, {"layers.10", "layers.2", "Embedding", "layers.1"});
  QTreeView tree;
  tree.setModel(&model);
  auto* rows = new SortedRows(tree);
  tree.sortByColumn(0, Qt::AscendingOrder);
  QCOMPARE(textsOf(*rows), (QStringList{"Embedding", "layers.1", "layers.2", "layers.10"}));
}

void SortingTest::aSortedTableStaysWithItsRows() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(sample()));
  f.raise("dock-values");
  const auto& document = *f.analysis().document;
  BoundSymbolId linear;
  for (auto op : f.analysis().forward.ops)
    if (document.operands(op).size() >= 3 && !linear) linear = op;
  QVERIFY(linear);
  f.selection().select(linear);
  auto& table = treeOf(f, "values");
  QTRY_VERIFY(table.model()->rowCount() >= 4 && !std::isnan(numbers(table, ValuesModel::norm).first()));
  const auto before = numbers(table, ValuesModel::norm);
  const int value = table.currentIndex().data(valueRole).toInt();
  clickTitle(table, ValuesModel::norm);
  auto sorted = before;
  std::sort(sorted.begin(), sorted.end());
  QCOMPARE(numbers(table, ValuesModel::norm), sorted);
  QVERIFY(sorted != before);
  QCOMPARE(table.currentIndex().data(valueRole).toInt(), value);  // the chosen row is the same value
  clickTitle(table, ValuesModel::norm);
  std::reverse(sorted.begin(), sorted.end());
  QCOMPARE(numbers(table, ValuesModel::norm), sorted);
  // The choice in a sorted table is the row that it shows there.
  const auto last = table.model()->index(table.model()->rowCount() - 1, 0);
  table.setCurrentIndex(last);
  QTRY_COMPARE(f.selection().value().index, last.data(valueRole).toInt());
  clickTitle(table, ValuesModel::norm);
  QCOMPARE(numbers(table, ValuesModel::norm), before);
}

void SortingTest::sortingByKeyboard() {
  Numbers model({3, 1, 2}, {"c", "a", "b"});
  QTreeView tree;
  tree.setModel(&model);
  auto* rows = new SortedRows(tree);
  tree.setCurrentIndex(rows->index(0, 0));
  QTest::keyClick(&tree, Qt::Key_Up, Qt::AltModifier);
  QCOMPARE(textsOf(*rows), (QStringList{"a", "b", "c"}));
  QTest::keyClick(&tree, Qt::Key_Down, Qt::AltModifier);
  QCOMPARE(textsOf(*rows), (QStringList{"c", "b", "a"}));
  QTest::keyClick(&tree, Qt::Key_Down, Qt::AltModifier);
  QCOMPARE(textsOf(*rows), (QStringList{"c", "a", "b"}));
}

void SortingTest::restoredWidthsLeaveTitlesThatSort() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  auto& panel = f.window().panel<ValuesDock>();
  auto& table = treeOf(f, "values");
  table.header()->setSectionsClickable(false);  // as a state of an earlier version has it
  table.header()->resizeSection(ValuesModel::valueName, 222);
  const auto kept = panel.saveState();
  table.header()->resizeSection(ValuesModel::valueName, 90);
  panel.restoreState(kept);
  QCOMPARE(table.columnWidth(ValuesModel::valueName), 222);
  QVERIFY(table.header()->sectionsClickable());
  QCOMPARE(table.header()->sortIndicatorSection(), -1);
}

void SortingTest::everyListSearchesByTyping() {
  WindowFixture f;
  QVERIFY(f.open(QStringLiteral("synthetic:3")));
  int lists = 0;
  for (auto* tree : f.window().findChildren<QTreeView*>()) {
    if (tree->objectName().isEmpty()) continue;
    QKeyEvent typed(QEvent::ShortcutOverride, Qt::Key_M, Qt::NoModifier, QStringLiteral("m"));
    typed.ignore();
    QApplication::sendEvent(tree, &typed);
    QVERIFY2(typed.isAccepted(), qPrintable(tree->objectName()));
    ++lists;
  }
  QVERIFY(lists > 12);
}

void SortingTest::panelsWithNumbersAreSorted() {
  WindowFixture f;
  for (const char* name :
       {"values", "watches", "references", "notes", "modules", "breakpoints", "compare", "checks", "problems",
        "stages-table", "stages-edges", "stages-shared", "stage-check-table", "trace-table", "gradient-flow"}) {
    const auto* tree = f.window().findChild<QTreeView*>(QLatin1String(name));
    QVERIFY2(tree, name);
    QVERIFY2(tree->isSortingEnabled(), name);
    QVERIFY2(tree->header()->sectionsClickable(), name);
  }
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::SortingTest)
#include "sorting_test.moc"
