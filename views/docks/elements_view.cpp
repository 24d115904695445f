#include "views/docks/elements_view.h"

#include <QHeaderView>
#include <QVBoxLayout>
#include <limits>

#include "views/widgets/controls.h"
#include "views/widgets/elided_label.h"
#include "views/widgets/item_view.h"

namespace retrograd::views {

ElementsView::ElementsView(Theme* theme, const QString& name, QWidget* parent)
    : QWidget(parent),
      parts_(new QBoxLayout(QBoxLayout::TopToBottom)),
      title_(new ElidedLabel(this)),
      badPlaces_(new WrappedLabel(this)),
      histogram_(new HistogramView(theme, this)),
      slice_(new SliceModel(this)),
      table_(new QTableView(this)),
      image_(new ImageView(theme, slice_, this)),
      stack_(new QStackedWidget(this)),
      leading_(new QWidget(this)),
      leadingLine_(new QHBoxLayout(leading_)) {
  leadingLine_->setContentsMargins(0, 0, 0, 0);
  leadingLine_->addWidget(new QLabel(tr("Slice"), leading_));
  leadingLine_->addStretch(1);
  setObjectName(name);
  const auto recolor = [this, theme] {
    slice_->setBadColor(theme->colors().bad);
    table_->viewport()->update();
  };
  connect(theme, &Theme::changed, this, recolor);
  recolor();
  histogram_->setFixedHeight(74);
  makeTable(name);
  stack_->addWidget(table_);
  stack_->addWidget(image_);
  auto* layout = withMargins(new QVBoxLayout(this), {8, 4, 4, 0}, 4);
  named(badPlaces_, name + QStringLiteral("-bad-places"), tr("Places of NaN and infinities"));
  badPlaces_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  badPlaces_->hide();
  layout->addWidget(title_);
  layout->addWidget(badPlaces_);
  auto* elements = new QVBoxLayout;
  elements->setSpacing(4);
  elements->addWidget(leading_);
  elements->addWidget(stack_, 1);
  parts_->setSpacing(4);
  parts_->addWidget(histogram_);
  parts_->addLayout(elements, 1);
  layout->addLayout(parts_, 1);
}

void ElementsView::makeTable(const QString& name) {
  table_->setObjectName(name + QStringLiteral("-contents"));
  image_->setObjectName(name + QStringLiteral("-image"));
  table_->setAccessibleName(tr("Contents of the chosen value"));
  table_->setModel(slice_);
  table_->setFrameShape(QFrame::NoFrame);
  table_->setShowGrid(false);
  table_->setFont(Theme::codeFont());
  const QFontMetrics metrics(table_->font());
  for (auto* header : {table_->horizontalHeader(), table_->verticalHeader()})
    header->setSectionResizeMode(QHeaderView::Fixed);
  table_->horizontalHeader()->setDefaultSectionSize(metrics.horizontalAdvance(QStringLiteral("-1.23456e-10")) + 10);
  table_->verticalHeader()->setDefaultSectionSize(metrics.height() + 4);
  addCopy(*table_);
}

void ElementsView::show(const QString& title, const ValueDetail& detail) {
  title_->setText(title);
  badPlaces_->setText(QString::fromStdString(detail.badPlaces));
  badPlaces_->setVisible(!detail.badPlaces.empty());
  histogram_->set(detail.histogram, detail.statistics);
  statistics_ = detail.statistics;
  const auto kept = slice_->leading();
  slice_->setData(detail.contents);
  image_->setScale(ColorScale(detail.statistics.min, detail.statistics.max));
  setLeading(kept);  // the slice stays while one steps
  refreshIndices();
}

void ElementsView::clear(const QString& reason) {
  title_->setText(reason);
  badPlaces_->hide();
  histogram_->set({}, {});
  statistics_ = {};
  slice_->setData({});
  refreshIndices();
}

void ElementsView::setWide(bool on) {
  constexpr int width = 150;  // both ends of its axis have their numbers
  parts_->setDirection(on ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom);
  parts_->setAlignment(histogram_, on ? Qt::AlignTop : Qt::Alignment());
  histogram_->setMinimumWidth(on ? width : 0);
}

void ElementsView::setPicture(bool on) { stack_->setCurrentWidget(on ? static_cast<QWidget*>(image_) : table_); }

void ElementsView::setLeading(const std::vector<std::int64_t>& indices) {
  const auto sizes = slice_->leadingSizes();
  if (indices.size() != sizes.size() || indices == slice_->leading()) return;
  for (std::size_t dim = 0; dim < sizes.size(); ++dim)
    if (indices[dim] >= sizes[dim]) return;
  for (std::size_t dim = 0; dim < sizes.size(); ++dim) slice_->setLeading(dim, indices[dim]);
  refreshIndices();
}

bool ElementsView::goTo(const std::vector<std::int64_t>& index) {
  const auto shown = std::min<std::size_t>(index.size(), 2);  // dims of the table
  setLeading({index.begin(), index.end() - static_cast<std::ptrdiff_t>(shown)});
  Q_EMIT leadingChanged(slice_->leading());
  const auto row = shown == 2 ? index[index.size() - 2] : 0, column = shown == 0 ? 0 : index.back();
  if (row >= slice_->rowCount() || column >= slice_->columnCount()) return false;
  const auto cell = slice_->index(static_cast<int>(row), static_cast<int>(column));
  table_->setCurrentIndex(cell);
  table_->scrollTo(cell, QAbstractItemView::PositionAtCenter);
  image_->setCursorAt(cell.row(), cell.column());
  stack_->currentWidget()->setFocus();
  return true;
}

void ElementsView::addElementActions(const QList<QAction*>& actions) {
  table_->addActions(actions);
  image_->addActions(actions);
  image_->setContextMenuPolicy(Qt::ActionsContextMenu);
}

QSpinBox* ElementsView::makeIndex(std::size_t dim) {
  auto* box = new QSpinBox(leading_);
  box->setAccessibleName(tr("Index in dim %1").arg(dim));
  connect(box, &QSpinBox::valueChanged, slice_, [this, dim](int index) {
    slice_->setLeading(dim, index);
    Q_EMIT leadingChanged(slice_->leading());
  });
  leadingLine_->insertWidget(leadingLine_->count() - 1, box);
  return box;
}

void ElementsView::refreshIndices() {
  const auto sizes = slice_->leadingSizes();
  while (indices_.size() > sizes.size()) {
    delete indices_.back();
    indices_.pop_back();
  }
  while (indices_.size() < sizes.size()) indices_.push_back(makeIndex(indices_.size()));
  for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
    auto* box = indices_[dim];
    const QSignalBlocker quiet(box);
    box->setRange(0, static_cast<int>(std::clamp<std::int64_t>(sizes[dim] - 1, 0, std::numeric_limits<int>::max())));
    box->setValue(static_cast<int>(slice_->leading()[dim]));
    box->setToolTip(tr("Index in dim %1, of %2").arg(dim).arg(sizes[dim]));
  }
  leading_->setVisible(!sizes.empty());
}

}  // namespace retrograd::views
