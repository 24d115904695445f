#include "views/docks/value_panel.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QSpinBox>
#include <QVBoxLayout>
#include <limits>

namespace retrograd::views {
namespace {

/// The selected cells as tab-separated lines.
void copyCells(const QTableView& table) {
  QMap<int, QMap<int, QString>> cells;
  for (const auto& index : table.selectionModel()->selectedIndexes()) cells[index.row()][index.column()] = index.data().toString();
  QStringList lines;
  for (const auto& row : cells) lines << QStringList(row.values()).join(QLatin1Char('\t'));
  QApplication::clipboard()->setText(lines.join(QLatin1Char('\n')));
}

}  // namespace

ValuePanel::ValuePanel(Theme* theme, const QString& name, QWidget* parent)
    : QWidget(parent), title_(new QLabel(this)), histogram_(new HistogramView(theme, this)), slice_(new SliceModel(this)), table_(new QTableView(this)),
      image_(new ImageView(theme, slice_, this)), stack_(new QStackedWidget(this)), leading_(new QWidget(this)), leadingLabel_(new QLabel(tr("Slice"), leading_)) {
  setObjectName(name);
  title_->setTextFormat(Qt::PlainText);
  title_->setMinimumWidth(1);
  histogram_->setFixedHeight(74);
  makeTable(name);
  stack_->addWidget(table_);
  stack_->addWidget(image_);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(8, 4, 4, 0);
  layout->setSpacing(4);
  layout->addWidget(title_);
  layout->addWidget(histogram_);
  layout->addWidget(leading_);
  layout->addWidget(stack_, 1);
}

void ValuePanel::makeTable(const QString& name) {
  table_->setObjectName(name + QStringLiteral("-contents"));
  image_->setObjectName(name + QStringLiteral("-image"));
  table_->setAccessibleName(tr("Contents of the chosen value"));
  table_->setModel(slice_);
  table_->setFrameShape(QFrame::NoFrame);
  table_->setShowGrid(false);
  table_->setFont(Theme::codeFont());
  const QFontMetrics metrics(table_->font());
  for (auto* header : {table_->horizontalHeader(), table_->verticalHeader()}) header->setSectionResizeMode(QHeaderView::Fixed);
  table_->horizontalHeader()->setDefaultSectionSize(metrics.horizontalAdvance(QStringLiteral("-1.23456e-10")) + 10);
  table_->verticalHeader()->setDefaultSectionSize(metrics.height() + 4);
  auto* copyAction = new QAction(tr("Copy"), table_);
  copyAction->setShortcut(QKeySequence::Copy);
  copyAction->setShortcutContext(Qt::WidgetShortcut);
  table_->addAction(copyAction);
  table_->setContextMenuPolicy(Qt::ActionsContextMenu);
  connect(copyAction, &QAction::triggered, this, [this] { copyCells(*table_); });
}

void ValuePanel::show(const QString& title, const ValueDetail& detail) {
  title_->setText(title);
  histogram_->set(detail.histogram, detail.statistics);
  const auto kept = slice_->leading();
  slice_->setData(detail.contents);
  image_->setScale(ColorScale(detail.statistics.min, detail.statistics.max));
  setLeading(kept);  // the slice stays while one steps
  makeSpinBoxes();
}

void ValuePanel::clear(const QString& reason) {
  title_->setText(reason);
  histogram_->set({}, {});
  slice_->setData({});
  makeSpinBoxes();
}

void ValuePanel::setPicture(bool on) { stack_->setCurrentWidget(on ? static_cast<QWidget*>(image_) : table_); }

void ValuePanel::setLeading(const std::vector<std::int64_t>& indices) {
  const auto sizes = slice_->leadingSizes();
  if (indices.size() != sizes.size() || indices == slice_->leading()) return;
  for (std::size_t dim = 0; dim < sizes.size(); ++dim)
    if (indices[dim] >= sizes[dim]) return;
  for (std::size_t dim = 0; dim < sizes.size(); ++dim) slice_->setLeading(dim, indices[dim]);
  makeSpinBoxes();
}

void ValuePanel::makeSpinBoxes() {
  for (auto* old : leading_->findChildren<QSpinBox*>()) delete old;
  delete leading_->layout();
  auto* layout = new QHBoxLayout(leading_);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(leadingLabel_);
  const auto sizes = slice_->leadingSizes();
  for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
    auto* box = new QSpinBox(leading_);
    box->setRange(0, static_cast<int>(std::clamp<std::int64_t>(sizes[dim] - 1, 0, std::numeric_limits<int>::max())));
    box->setValue(static_cast<int>(slice_->leading()[dim]));
    box->setAccessibleName(tr("Index in dim %1").arg(dim));
    box->setToolTip(tr("Index in dim %1, of %2").arg(dim).arg(sizes[dim]));
    connect(box, &QSpinBox::valueChanged, slice_, [this, dim](int index) {
      slice_->setLeading(dim, index);
      Q_EMIT leadingChanged(slice_->leading());
    });
    layout->addWidget(box);
  }
  layout->addStretch(1);
  leading_->setVisible(!sizes.empty());
}

}  // namespace retrograd::views
