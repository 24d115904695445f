#include "views/dialogs/searched_table.h"

#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QTableWidget>
#include <QVBoxLayout>

#include "views/widgets/controls.h"

namespace retrograd::views {

SearchedTable::SearchedTable(const QStringList& headers, const QString& name, QWidget* parent)
    : QWidget(parent),
      box_(new QLineEdit(this)),
      table_(new QTableWidget(0, static_cast<int>(headers.size()), this)),
      none_(new QLabel(tr("No match"), this)) {
  named(box_, "search", tr("Search in %1").arg(name));
  box_->setPlaceholderText(tr("Search"));
  box_->setClearButtonEnabled(true);
  table_->setAccessibleName(name);
  table_->setHorizontalHeaderLabels(headers);
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setTabKeyNavigation(false);
  table_->verticalHeader()->hide();
  table_->setShowGrid(false);
  table_->setFrameShape(QFrame::NoFrame);
  table_->verticalHeader()->setDefaultSectionSize(table_->fontMetrics().height() + 8);
  table_->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  table_->horizontalHeader()->setHighlightSections(false);
  none_->setObjectName(QStringLiteral("no-match"));
  none_->hide();
  auto* layout = withMargins(new QVBoxLayout(this), {});
  layout->addWidget(box_);
  layout->addWidget(none_);
  layout->addWidget(table_, 1);
  setFocusProxy(box_);
  connect(box_, &QLineEdit::textChanged, this, &SearchedTable::search);
}

void SearchedTable::add(const QStringList& cells) {
  const int row = table_->rowCount();
  table_->insertRow(row);
  for (int column = 0; column < cells.size(); ++column) {
    auto* cell = new QTableWidgetItem(cells[column]);
    cell->setToolTip(cells[column]);
    table_->setItem(row, column, cell);
  }
}

void SearchedTable::fit() {
  table_->resizeColumnsToContents();
  table_->horizontalHeader()->setSectionResizeMode(table_->columnCount() - 1, QHeaderView::Stretch);
  table_->verticalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);  // a long sentence takes two lines
}

void SearchedTable::search(const QString& text) {
  const auto words = text.split(QLatin1Char(' '), Qt::SkipEmptyParts);
  int shown = 0;
  for (int row = 0; row < table_->rowCount(); ++row) {
    QString all;
    for (int column = 0; column < table_->columnCount(); ++column)
      all += table_->item(row, column)->text() + QLatin1Char(' ');
    const bool matches =
        std::ranges::all_of(words, [&](const QString& word) { return all.contains(word, Qt::CaseInsensitive); });
    table_->setRowHidden(row, !matches);
    shown += matches;
  }
  none_->setVisible(shown == 0);
}

}  // namespace retrograd::views
