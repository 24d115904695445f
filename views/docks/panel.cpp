#include "views/docks/panel.h"

#include <QContextMenuEvent>
#include <QHeaderView>
#include <QTreeView>
#include <QVBoxLayout>

#include "views/widgets/command_key.h"
#include "views/widgets/controls.h"
#include "views/widgets/dock_tree.h"
#include "views/widgets/elided_label.h"
#include "views/widgets/sorted_rows.h"

namespace retrograd::views {
namespace {

const QString columnsKey = QStringLiteral("columns");

QHeaderView* headerOf(QAbstractItemView* list) {
  auto* tree = qobject_cast<QTreeView*>(list);
  return tree ? tree->header() : nullptr;
}

}  // namespace

Panel::Panel(ViewContext context, const char* name, QWidget* parent)
    : QWidget(parent), context_(context), name_(QLatin1String(name)) {
  setObjectName(QStringLiteral("panel-") + name_);
  soon_.setSingleShot(true);
  soon_.setInterval(0);
  connect(&soon_, &QTimer::timeout, this, [this] {
    if (!inSight_) return;
    stale_ = false;
    refresh();
    updateEmptyText();
  });
  connect(context_.controller, &DocumentController::documentAboutToChange, this, [this] {
    soon_.stop();
    for (auto question = questions_.begin(); question != questions_.end(); ++question) {
      if (question->state == QuestionState::asked) context_.controller->questions().cancel(tag(question.key()));
      question->state = QuestionState::none;
    }
    stale_ = true;
    forget();
  });
  connect(context_.controller, &DocumentController::documentChanged, this, &Panel::invalidate);
}

bool Panel::busy() const {
  return soon_.isActive() || std::ranges::any_of(questions_, [](const AskedQuestion& question) {
           return question.state == QuestionState::asked;
         });
}

// A tree widget's model is reset when it goes, which is after this panel and before its connections.
Panel::~Panel() {
  if (list_) disconnect(list_->model(), nullptr, this, nullptr);
}

void Panel::invalidate() {
  stale_ = true;
  if (!inSight_) return;
  if (soon_.interval() > 0) {
    soon_.start();
    return updateEmptyText();
  }
  stale_ = false;
  refresh();
  updateEmptyText();
}

std::shared_ptr<const OpenDocument> Panel::document() const {
  const auto& open = context_.controller->document();
  return open && context_.selection->analysis() == open->analysis ? open : nullptr;
}

void Panel::ask(Asked asked, const QString& question, const QString& title, Questions::Question work, Failed failed) {
  if (!context_.controller->document()) return;
  questions_[question] = {asked, QuestionState::asked};
  const auto answered = [this, question, work = std::move(work)](const QuestionContext& context,
                                                                 const Progress& progress) -> Worker::Deliver {
    return [this, question, deliver = work(context, progress)] {
      questions_[question].state = QuestionState::answered;
      if (deliver) deliver();
      updateEmptyText();
    };
  };
  context_.controller->questions().ask(
      this, tag(question), title, answered, [this, question, failed = std::move(failed)](const QString& message) {
        questions_[question].state = message.isEmpty() ? QuestionState::cancelled : QuestionState::failed;
        if (failed) failed(message);
      });
}

void Panel::askAloud(QLabel* line, const QString& question, const QString& title, const QString& busy,
                     Questions::Question work) {
  line->setText(busy);
  ask(Asked::anyhow, question, title, std::move(work), [line](const QString& message) {
    line->setText(message.isEmpty() ? tr("Cancelled") : QStringLiteral("! ") + message);
  });
}

void Panel::askForUpdates(const std::shared_ptr<const Analysis>& analysis, std::function<void(const Updates&)> told) {
  const auto question = QStringLiteral("updates");
  const auto& numbers = context_.controller->ahead().numbers();
  const bool isAsked = state(question) != QuestionState::none && state(question) != QuestionState::cancelled;
  if (isAsked || !analysis->file.recording || numbers.size() == 0 || numbers.known() < numbers.size()) return;
  ask(Asked::inSight, question, {},
      [analysis, told = std::move(told)](const QuestionContext& context, const Progress& progress) -> Worker::Deliver {
        return [told, updates = context.engine.lastUpdates(analysis, progress)] { told(updates); };
      });
}

void Panel::fillWith(QWidget* widget) {
  auto* layout = withMargins(new QVBoxLayout(this), {});
  layout->addWidget(widget);
}

void Panel::addList(QAbstractItemView* list) {
  lists_ << list;
  list->setContextMenuPolicy(Qt::DefaultContextMenu);
  list->installEventFilter(this);
  list->viewport()->installEventFilter(this);
  connect(list, &QAbstractItemView::activated, this, &Panel::activate);
}

void Panel::selectByClick(QAbstractItemView* list) {
  connect(list, &QAbstractItemView::clicked, this, [this](const QModelIndex& row) {
    const auto value = row.data(valueRole);
    if (const auto op = opOf(row)) context_.selection->select(op, ValueId(value.isValid() ? value.toInt() : -1));
  });
}

void Panel::setList(QAbstractItemView* list) {
  addList(list);
  list_ = list;
  empty_ = named(new WrappedLabel(list_->viewport()), name_ + QStringLiteral("-empty"));
  empty_->setAlignment(Qt::AlignCenter);
  empty_->setMargin(12);
  empty_->setForegroundRole(QPalette::PlaceholderText);
  empty_->setAttribute(Qt::WA_TransparentForMouseEvents);
  empty_->hide();
  const auto* model = list_->model();
  connect(model, &QAbstractItemModel::modelReset, this, &Panel::updateEmptyText);
  connect(model, &QAbstractItemModel::rowsInserted, this, &Panel::updateEmptyText);
  connect(model, &QAbstractItemModel::rowsRemoved, this, &Panel::updateEmptyText);
  updateEmptyText();
}

void Panel::updateEmptyText() {
  if (!list_) return;
  // A list that is about to be filled is not empty yet.
  const bool isDue = stale_ && context_.controller->document();
  const auto text = list_->model()->rowCount() == 0 && !isDue ? emptyText() : QString();
  empty_->setText(text);
  empty_->setGeometry(list_->viewport()->rect());
  empty_->setVisible(!text.isEmpty());
}

QString Panel::unlessClosed(const QString& text) const {
  if (context_.controller->document()) return text;
  const auto key = keyText(*this, "open");
  return tr("No file is open. %1 opens one.").arg(key.isEmpty() ? tr("File > Open") : key);
}

void Panel::activate(const QModelIndex& row) {
  if (const auto op = opOf(row)) Q_EMIT jumpRequested(op);
}

QVariantMap Panel::saveState() const {
  const auto* header = headerOf(list_);
  return header ? QVariantMap{{columnsKey, header->saveState()}} : QVariantMap();
}

void Panel::restoreState(const QVariantMap& state) {
  if (auto* header = headerOf(list_); header && state.contains(columnsKey)) {
    header->restoreState(state.value(columnsKey).toByteArray());
    if (auto* sorted = dynamic_cast<SortedRows*>(list_->model())) sorted->reset();
  }
}

bool Panel::event(QEvent* event) {
  const bool handled = QWidget::event(event);
  if (event->type() == QEvent::ParentChange) {
    followDock();
    for (auto* part : findChildren<Panel*>()) part->followDock();
  }
  if (event->type() == QEvent::Show || event->type() == QEvent::Hide || event->type() == QEvent::ParentChange)
    updateSight();
  return handled;
}

QDockWidget* Panel::dock() const {
  for (auto* around = parentWidget(); around; around = around->parentWidget())
    if (auto* dock = qobject_cast<QDockWidget*>(around)) return dock;
  return nullptr;
}

void Panel::followDock() {
  for (const auto& connection : std::exchange(dockConnections_, {})) disconnect(connection);
  inFront_ = true;
  auto* around = dock();
  if (!around) return;
  inFront_ = false;
  // Of a dock behind a tab, isVisible() says true.
  dockConnections_ << connect(around, &QDockWidget::visibilityChanged, this, [this](bool inFront) {
    inFront_ = inFront;
    updateSight();
  });
}

void Panel::updateSight() {
  const bool now = inFront_ && isVisible();
  if (now == inSight_) return;
  inSight_ = now;
  if (now) {
    if (stale_) invalidate();
    return;
  }
  soon_.stop();
  for (auto question = questions_.begin(); question != questions_.end(); ++question) {
    if (question->asked != Asked::inSight || question->state != QuestionState::asked) continue;
    context_.controller->questions().cancel(tag(question.key()));
    question->state = QuestionState::cancelled;
    stale_ = true;  // its answer is still wanted when the panel is seen again
  }
  leave();
}

bool Panel::eventFilter(QObject* watched, QEvent* event) {
  if (list_ && watched == list_->viewport() && event->type() == QEvent::Resize)
    empty_->setGeometry(list_->viewport()->rect());
  if (event->type() == QEvent::ContextMenu)
    for (auto* list : lists_)
      if (watched == list || watched == list->viewport()) {
        showMenu(list, static_cast<QContextMenuEvent*>(event));
        return true;
      }
  return QWidget::eventFilter(watched, event);
}

void Panel::showMenu(QAbstractItemView* list, QContextMenuEvent* event) {
  const bool mouse = event->reason() == QContextMenuEvent::Mouse;
  const auto under = mouse ? list->indexAt(list->viewport()->mapFromGlobal(event->globalPos())) : QModelIndex();
  const auto row = under.isValid() ? under : list->currentIndex();
  auto* menu = contextMenu(list);
  menu->setToolTipsVisible(true);
  menu->addActions(list->actions());
  Q_EMIT menuAboutToShow(menu, row);
  if (menu->isEmpty()) return delete menu;
  menu->exec(mouse ? event->globalPos() : list->viewport()->mapToGlobal(list->visualRect(row).bottomLeft()));
}

}  // namespace retrograd::views
