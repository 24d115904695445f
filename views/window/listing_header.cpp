#include "views/window/listing_header.h"

#include <QMouseEvent>
#include <QPainter>
#include <cmath>

#include "views/theme/tokens.h"

namespace retrograd::views {
namespace {

constexpr std::array all{TextColumn::shape, TextColumn::origin, TextColumn::saved};
constexpr int grip = 5;  ///< pixels to each side of a border that take hold of it

}  // namespace

ListingHeader::ListingHeader(ListingView* listing, Theme* theme, QWidget* parent)
    : QWidget(parent), listing_(listing), theme_(theme) {
  setObjectName(QStringLiteral("listing-header"));
  setAccessibleName(tr("Columns of %1").arg(retrograd::views::titleText(listing->kind())));
  setMouseTracking(true);
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
  auto small = font();
  small.setPointSizeF(small.pointSizeF() * tokens::smallType);
  setFont(small);
  setToolTip(
      tr("Drag the left border of a column to size it, double click it for the usual width; the context menu "
         "chooses columns"));
  connect(listing_, &ListingView::columnsMoved, this, &ListingHeader::describe);
  connect(theme_, &Theme::changed, this, qOverload<>(&QWidget::update));
}

QString ListingHeader::titleOf(TextColumn column) {
  switch (column) {
    case TextColumn::shape: return tr("Shape");
    case TextColumn::origin: return tr("Comes From");
    case TextColumn::saved: return tr("Saved");
  }
  return {};
}

QRect ListingHeader::rectOf(TextColumn column) const {
  const auto places = listing_->columns();
  const int left = places.left(column), right = places.right(column);
  return right > left ? QRect(left + shift(), 0, right - left, height()) : QRect();
}

std::optional<TextColumn> ListingHeader::borderAt(int x) const {
  for (auto column : all)
    if (const auto rect = rectOf(column); !rect.isEmpty() && std::abs(x - rect.left()) <= grip) return column;
  return {};
}

void ListingHeader::describe() {
  QStringList shown{tr("Op")};
  for (auto column : all)
    if (!rectOf(column).isEmpty()) shown << titleOf(column);
  setAccessibleDescription(shown.join(QStringLiteral(", ")));
  update();
}

void ListingHeader::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), theme_->colors().gutter);
  painter.setPen(controlColorsOf(theme_->dark(), theme_->highContrast()).columnText);
  const auto draw = [&](const QRect& place, const QString& text) {
    painter.drawText(place, Qt::AlignLeft | Qt::AlignVCenter,
                     fontMetrics().elidedText(text, Qt::ElideRight, place.width() - 2));
  };
  const auto places = listing_->columns();
  draw({places.code + shift(), 0, places.codeEnd - places.code, height()}, tr("Op"));
  for (auto column : all)
    if (const auto place = rectOf(column); !place.isEmpty()) {
      draw(place, titleOf(column));
      painter.fillRect(QRect(place.left() - 5, 3, 1, height() - 6), theme_->colors().border);
    }
}

void ListingHeader::mousePressEvent(QMouseEvent* event) {
  if (event->button() == Qt::LeftButton) dragged_ = borderAt(event->position().toPoint().x());
}

void ListingHeader::mouseMoveEvent(QMouseEvent* event) {
  const int x = event->position().toPoint().x();
  if (!dragged_) return setCursor(borderAt(x) ? Qt::SplitHCursor : Qt::ArrowCursor);
  const auto place = rectOf(*dragged_);
  if (!place.isEmpty()) Q_EMIT widthChosen(*dragged_, listing_->charactersOf(place.right() + 1 - x) - 1);
}

void ListingHeader::mouseDoubleClickEvent(QMouseEvent* event) {
  dragged_.reset();
  if (const auto column = borderAt(event->position().toPoint().x())) Q_EMIT widthChosen(*column, 0);
}

void ListingHeader::contextMenuEvent(QContextMenuEvent* event) { Q_EMIT menuRequested(event->globalPos()); }

}  // namespace retrograd::views
