#include "views/window/quick_open.h"

#include <QApplication>
#include <QKeyEvent>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QVBoxLayout>

#include "views/widgets/controls.h"

namespace retrograd::views {
namespace {

constexpr std::size_t most = 200;

/// A row: what it is at the left, more about it at the right and dimmed.
class TwoTexts : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    QStyledItemDelegate::paint(painter, option, index);
    const auto& metrics = option.fontMetrics;
    const auto area = option.rect.adjusted(8, 0, -8, 0);
    const int nameWidth = metrics.horizontalAdvance(index.data(Qt::DisplayRole).toString());
    const int room = area.width() - nameWidth - 24;
    if (room < 40) return;
    const auto detail = metrics.elidedText(index.data(GotoModel::detailRole).toString(), Qt::ElideMiddle, room);
    const bool chosen = option.state & QStyle::State_Selected;
    const auto group = option.state & QStyle::State_Active ? QPalette::Active : QPalette::Inactive;
    auto colour = option.palette.color(group, chosen ? QPalette::HighlightedText : QPalette::Text);
    if (!chosen) colour.setAlphaF(0.65F);
    painter->setPen(colour);
    painter->drawText(area, Qt::AlignRight | Qt::AlignVCenter, detail);
  }

  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    return {QStyledItemDelegate::sizeHint(option, index).width(), option.fontMetrics.height() + 8};
  }
};

}  // namespace

QuickOpen::QuickOpen(ViewContext context, std::function<QList<QAction*>()> commands, QWidget* window)
    : QFrame(window),
      context_(context),
      commands_(std::move(commands)),
      line_(new QLineEdit(this)),
      list_(new QListView(this)),
      model_(new GotoModel(this)) {
  setObjectName(QStringLiteral("quick-open"));
  setFrameShape(QFrame::StyledPanel);
  setAutoFillBackground(true);
  setAccessibleName(tr("Go to or run a command"));
  line_->setAccessibleName(tr("What to go to; > for commands"));
  line_->setPlaceholderText(
      tr("emb.weight, emb.weight.grad, exp_avg of emb.weight, train.py:28, #12, a module; > for commands"));
  line_->setClearButtonEnabled(true);
  line_->installEventFilter(this);
  list_->setAccessibleName(tr("Matches"));
  list_->setModel(model_);
  list_->setItemDelegate(new TwoTexts(list_));
  list_->setUniformItemSizes(true);
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  list_->setFocusPolicy(Qt::NoFocus);  // keys stay with the line, which hands arrows on
  list_->setFocusProxy(line_);         // its chosen row is the one that Enter takes, and looks so
  list_->setFrameShape(QFrame::NoFrame);
  auto* layout = withMargins(new QVBoxLayout(this), {6, 6, 6, 6}, 4);
  none_ = named(new QLabel(tr("No match"), this), "quick-open-none");
  none_->setContentsMargins(4, 0, 4, 2);
  none_->hide();
  layout->addWidget(line_);
  layout->addWidget(none_);
  layout->addWidget(list_);
  connect(line_, &QLineEdit::textChanged, this, &QuickOpen::search);
  connect(list_, &QListView::clicked, this, &QuickOpen::choose);
  connect(context_.controller, &DocumentController::documentChanged, this, [this] {
    places_.reset();
    hide();
  });
  hide();
}

void QuickOpen::open(const QString& text) {
  if (!isVisible()) focusBefore_ = QApplication::focusWidget();
  place();
  show();
  raise();
  line_->setText(text);
  line_->setFocus();
  line_->deselect();
  search();
}

/// In the middle above, where it hides the least of what is looked for.
void QuickOpen::place() {
  const auto room = parentWidget()->rect();
  const int width = std::min(room.width() - 40, 760);
  setGeometry((room.width() - width) / 2, 60, width, height());
}

void QuickOpen::search() {
  const auto text = line_->text();
  if (text.startsWith(QLatin1Char('>'))) showCommands(text.mid(1).trimmed());
  else searchPlaces(text.trimmed());
}

void QuickOpen::showCommands(const QString& query) {
  job_.cancel();
  std::vector<std::pair<int, QAction*>> scored;
  const auto words = query.split(QLatin1Char(' '), Qt::SkipEmptyParts);
  for (auto* action : commands_()) {
    int total = 1;
    for (const auto& word : words) {
      const int points = fit(word.toStdString(), commandText(*action).toStdString());
      if (points == 0) total = 0;
      if (total > 0) total += points;
    }
    if (total > 0) scored.emplace_back(-total, action);
  }
  std::ranges::stable_sort(scored, [](const auto& a, const auto& b) { return a.first < b.first; });
  QList<QAction*> best;
  for (const auto& [points, action] : scored) best << action;
  model_->showCommands(best);
  selectFirst();
}

void QuickOpen::searchPlaces(const QString& query) {
  const auto document = context_.controller->document();
  if (!document) return found({});
  std::vector<std::pair<ValueId, std::string>> names;
  for (const auto& placed : context_.notes->notes())
    if (placed.value && !placed.note.name.empty()) names.emplace_back(placed.value, placed.note.name);
  job_.start([this, document, query = query.toStdString(), known = places_,
              names = std::move(names)](const Progress& progress) -> PoolJob::Deliver {
    const auto all = known ? known : std::make_shared<const std::vector<Place>>(places(*document->analysis, progress));
    std::vector<Place> best;
    const auto add = [&](const std::vector<Place>& places) {
      for (auto i : match(places, query, most, progress)) best.push_back(places[i]);
    };
    add(namedPlaces(*document->analysis, *all, names));  // what someone named is what they look for
    add(*all);
    return [this, all, best = std::move(best)] {
      places_ = all;
      found(best);
    };
  });
}

void QuickOpen::found(std::vector<Place> places) {
  model_->showPlaces(std::move(places));
  selectFirst();
}

void QuickOpen::selectFirst() {
  const int rows = model_->rowCount();
  const bool isAsked = line_->text().remove(QLatin1Char('>')).trimmed().size() > 0;
  none_->setVisible(rows == 0 && isAsked);
  if (rows > 0) list_->setCurrentIndex(model_->index(0, 0));
  const int listHeight = rows == 0 ? 0 : std::min(rows * list_->sizeHintForRow(0), parentWidget()->height() - 220);
  list_->setVisible(rows > 0);
  const int note = none_->isHidden() ? 0 : none_->sizeHint().height() + 4;
  resize(width(), line_->sizeHint().height() + std::min(listHeight, 420) + note + (rows > 0 ? 18 : 14));
}

void QuickOpen::choose() {
  const int row = list_->currentIndex().row();
  const QPointer<QAction> command = model_->command(row);
  const auto* found = model_->place(row);
  const auto target = found ? std::pair{found->op, found->value} : std::pair{BoundSymbolId(), ValueId()};
  if (!command && !found) return;
  hide();
  if (focusBefore_) focusBefore_->setFocus();
  if (command && command->isEnabled()) command->trigger();
  else if (command)
    Q_EMIT refused(commandText(*command) + QStringLiteral(": ") + command->property("reason").toString());
  else Q_EMIT placeChosen(target.first, target.second);
}

bool QuickOpen::eventFilter(QObject* object, QEvent* event) {
  if (object == line_ && event->type() == QEvent::FocusOut && QApplication::focusWidget() != line_ && isVisible() &&
      !isAncestorOf(QApplication::focusWidget()) &&
      static_cast<QFocusEvent*>(event)->reason() != Qt::ActiveWindowFocusReason &&
      static_cast<QFocusEvent*>(event)->reason() != Qt::PopupFocusReason)
    hide();
  if (object == line_ &&
      event->type() == QEvent::ShortcutOverride) {  // Escape and arrows are the line's, not the window's
    event->accept();
    return true;
  }
  if (object != line_ || event->type() != QEvent::KeyPress) return QFrame::eventFilter(object, event);
  auto* key = static_cast<QKeyEvent*>(event);
  switch (key->key()) {
    case Qt::Key_Escape:
      hide();
      if (focusBefore_) focusBefore_->setFocus();
      return true;
    case Qt::Key_Return:
    case Qt::Key_Enter: choose(); return true;
    case Qt::Key_Up:
    case Qt::Key_Down:
    case Qt::Key_PageUp:
    case Qt::Key_PageDown: QApplication::sendEvent(list_, event); return true;
    default: return false;
  }
}

}  // namespace retrograd::views
