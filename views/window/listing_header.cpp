#include "views/window/listing_header.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <cmath>

#include "views/theme/tokens.h"

namespace retrograd::views {
namespace {

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
  connect(listing_, &ListingView::columnsMoved, this, &ListingHeader::describe);
  connect(theme_, &Theme::changed, this, qOverload<>(&QWidget::update));
}

QRect ListingHeader::rectOf(TextColumn column) const {
  const auto places = listing_->columns();
  const int left = places.left[column], right = places.right[column];
  return right > left ? QRect(left + shift(), 0, right - left, height()) : QRect();
}

std::optional<TextColumn> ListingHeader::borderAt(int x) const {
  for (const auto& of : listingColumns())
    if (const auto rect = rectOf(of.column); !rect.isEmpty() && std::abs(x - rect.left()) <= grip) return of.column;
  return {};
}

QStringList ListingHeader::without() const {
  QStringList titles;
  for (const auto column : listing_->columns().without) titles << tr(listingColumns()[column].title);
  if (listing_->lacksRoomForNumbers()) titles << retrograd::views::titleOf(listing_->column());
  return titles;
}

void ListingHeader::describe() {
  QStringList shown{tr("Op")};
  for (const auto& of : listingColumns())
    if (!rectOf(of.column).isEmpty()) shown << tr(of.title);
  if (!listing_->columnRect().isEmpty()) shown << retrograd::views::titleOf(listing_->column());
  const auto missing = without();
  setAccessibleDescription(
      shown.join(QStringLiteral(", ")) +
      (missing.isEmpty() ? QString() : tr("; no room for %1").arg(missing.join(QStringLiteral(", ")))));
  update();
}

bool ListingHeader::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const auto missing = without();
  QString tip =
      tr("Drag the left border of a column to size it, double click it for the usual width; the context menu "
         "chooses columns");
  if (!missing.isEmpty())
    tip = tr("No room for %1: a wider window or fewer listings give it").arg(missing.join(tr(", ")));
  for (const auto& of : listingColumns())
    if (rectOf(of.column).contains(help->pos())) tip = tr(of.tip);
  if (const auto place = numbersRect(); place.contains(help->pos())) tip = tr(figureColumns()[listing_->column()].tip);
  QToolTip::showText(help->globalPos(), tip, this);
  return true;
}

QRect ListingHeader::numbersRect() const {
  const auto column = listing_->columnRect();
  return column.isEmpty() ? QRect() : QRect(column.left() + shift(), 0, column.width() - tokens::tight, height());
}

void ListingHeader::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), theme_->colors().gutter);
  painter.setPen(controlColorsOf(theme_->dark(), theme_->highContrast()).columnText);
  const auto draw = [&](const QRect& place, const QString& text, Qt::Alignment side) {
    painter.drawText(place, side | Qt::AlignVCenter, fontMetrics().elidedText(text, Qt::ElideRight, place.width() - 2));
  };
  const auto places = listing_->columns();
  const auto missing = without();
  const auto title = missing.isEmpty() ? tr("Op") : tr("Op  (no room for %1)").arg(missing.join(QStringLiteral(", ")));
  draw({places.code + shift(), 0, places.codeEnd - places.code, height()}, title, Qt::AlignLeft);
  for (const auto& of : listingColumns())
    if (const auto place = rectOf(of.column); !place.isEmpty()) {
      draw(place, tr(of.title), Qt::AlignLeft);
      painter.fillRect(QRect(place.left() - 5, 3, 1, height() - 6), theme_->colors().border);
    }
  if (const auto place = numbersRect(); !place.isEmpty())
    draw(place, retrograd::views::titleOf(listing_->column()), Qt::AlignRight);
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
