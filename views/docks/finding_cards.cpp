#include "views/docks/finding_cards.h"

#include <QMouseEvent>
#include <QPainter>

#include "views/findings/findings_model.h"
#include "views/theme/tokens.h"
#include "views/widgets/item_view.h"
#include "views/widgets/light_mark.h"

namespace retrograd::views {
namespace {

constexpr int markSize = 14, stripe = 4;
constexpr int textFlags = Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap;

/// Where the parts of a card are.
struct Card {
  QRect frame, mark, sentence, line, action;
  QString lineText;
};

QFont boldOf(QFont font) {
  font.setBold(true);
  return font;
}

QString cell(const QModelIndex& index, FindingsModel::Column column) {
  return index.siblingAtColumn(column).data().toString();
}

Card layOut(const QRect& area, const QFont& font, const QModelIndex& index) {
  Card card;
  const QFontMetrics bold(boldOf(font)), plain(font);
  card.frame = area.adjusted(tokens::tight, tokens::hair, -tokens::tight, -tokens::hair);
  const int left = card.frame.left() + stripe + tokens::gap;
  card.mark = QRect(left, card.frame.top() + tokens::tight, markSize, markSize);
  const int text = card.mark.right() + tokens::gap, width = card.frame.right() - tokens::gap - text;
  const auto sentence = cell(index, FindingsModel::what);
  const auto size = bold.boundingRect(QRect(0, 0, std::max(width, 40), 10'000), textFlags, sentence);
  card.sentence = QRect(text, card.frame.top() + tokens::tight, width, std::max(size.height(), markSize));
  const int below = card.sentence.bottom() + tokens::hair;
  const auto action = cell(index, FindingsModel::action);
  const int actionWidth = action.isEmpty() ? 0 : plain.horizontalAdvance(action) + tokens::tight;
  card.action = QRect(card.frame.right() - tokens::gap - actionWidth, below, actionWidth, plain.height());
  card.line = QRect(text, below, card.action.left() - tokens::gap - text, plain.height());
  card.lineText = cell(index, FindingsModel::line);
  return card;
}

int heightOf(const Card& card, const QFontMetrics& metrics) {
  const bool hasSecond = !card.lineText.isEmpty() || card.action.width() > 0;
  return card.sentence.bottom() - card.frame.top() + (hasSecond ? metrics.height() + tokens::hair : 0) +
         2 * tokens::tight + 2 * tokens::hair;
}

class CardDelegate : public QStyledItemDelegate {
 public:
  CardDelegate(const Theme* theme, FindingCards* view) : QStyledItemDelegate(view), theme_(theme), view_(view) {}

  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const QRect room(0, 0, view_->viewport()->width(), 0);
    return {room.width() - 1, heightOf(layOut(room, option.font, index), option.fontMetrics)};
  }

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const auto& colors = theme_->colors();
    const auto light = static_cast<Light>(index.data(FindingsModel::lightRole).toInt());
    const auto card = layOut(option.rect, option.font, index);
    const bool chosen = option.state & QStyle::State_Selected;
    painter->save();
    painter->setPen(chosen ? option.palette.color(QPalette::Active, QPalette::Highlight) : colors.border);
    painter->setBrush(chosen ? colors.selected : groundColor(light, colors));
    painter->drawRect(card.frame.adjusted(0, 0, -1, -1));
    painter->fillRect(QRect(card.frame.topLeft(), QSize(stripe, card.frame.height())), markColor(light, colors));
    paintLight(*painter, card.mark, light, colors);
    painter->setPen(colors.text);
    painter->setFont(boldOf(option.font));
    painter->drawText(card.sentence, textFlags, cell(index, FindingsModel::what));
    const auto code = Theme::codeFont();
    painter->setFont(code);
    painter->drawText(card.line, Qt::AlignLeft | Qt::AlignVCenter,
                      QFontMetrics(code).elidedText(card.lineText, Qt::ElideRight, card.line.width()));
    auto link = option.font;
    link.setUnderline(true);
    painter->setFont(link);
    painter->setPen(option.palette.color(QPalette::Active, QPalette::Link));
    painter->drawText(card.action, Qt::AlignLeft | Qt::AlignVCenter, cell(index, FindingsModel::action));
    painter->restore();
  }

 private:
  const Theme* theme_;
  FindingCards* view_;
};

}  // namespace

FindingCards::FindingCards(Theme* theme, QAbstractItemModel* model, QWidget* parent) : QListView(parent) {
  setObjectName(QStringLiteral("findings-list"));
  setAccessibleName(tr("Findings, the most severe first"));
  setModel(model);
  setItemDelegate(new CardDelegate(theme, this));
  setFrameShape(NoFrame);
  setVerticalScrollMode(ScrollPerPixel);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setMouseTracking(true);
  addCopy(*this, FindingsModel::what);
  letTypeAhead(*this);
  connect(theme, &Theme::changed, viewport(), qOverload<>(&QWidget::update));
}

bool FindingCards::isOnAction(const QModelIndex& card, const QPoint& at) const {
  return card.isValid() && layOut(visualRect(card), font(), card).action.contains(at);
}

void FindingCards::mouseReleaseEvent(QMouseEvent* event) {
  QListView::mouseReleaseEvent(event);
  const auto at = event->position().toPoint();
  const auto card = indexAt(at);
  if (event->button() != Qt::LeftButton || !card.isValid()) return;
  if (isOnAction(card, at)) Q_EMIT acted(card);
  else Q_EMIT led(card);
}

void FindingCards::mouseMoveEvent(QMouseEvent* event) {
  QListView::mouseMoveEvent(event);
  const auto at = event->position().toPoint();
  viewport()->setCursor(indexAt(at).isValid() ? Qt::PointingHandCursor : Qt::ArrowCursor);
}

void FindingCards::resizeEvent(QResizeEvent* event) {
  QListView::resizeEvent(event);
  scheduleDelayedItemsLayout();  // sentences take other numbers of lines
}

}  // namespace retrograd::views
