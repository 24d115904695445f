#include "views/window/filter_box.h"

#include <QApplication>
#include <QHBoxLayout>
#include <QInputMethodEvent>
#include <QKeyEvent>
#include <QTextCharFormat>
#include <QToolButton>
#include <QVBoxLayout>

#include "views/text/format.h"
#include "views/widgets/controls.h"

namespace retrograd::views {
namespace {

constexpr int applyAfter = 120;  // ms without a key
constexpr int mostRows = 12;

/// Underlines characters of a line; none where length is 0.
void underline(QLineEdit& line, int begin, int length, const QColor& color = {}) {
  QList<QInputMethodEvent::Attribute> attributes;
  if (length > 0) {
    QTextCharFormat format;
    format.setUnderlineStyle(QTextCharFormat::WaveUnderline);
    format.setUnderlineColor(color);
    attributes << QInputMethodEvent::Attribute(QInputMethodEvent::TextFormat, begin - line.cursorPosition(), length,
                                               format);
  }
  QInputMethodEvent event(QString(), attributes);
  QCoreApplication::sendEvent(&line, &event);
}

struct Completion {
  int begin = 0, end = 0;
  QStringList words;
};

/// Of both levels: ops of the computation are called otherwise than those of the joint.
Completion completionAt(const Analysis& analysis, const QString& text, int cursor) {
  const auto bytes = text.toUtf8();
  const std::string_view all(bytes.constData(), static_cast<std::size_t>(bytes.size()));
  const auto at = static_cast<std::size_t>(text.left(cursor).toUtf8().size());
  const auto characters = [&](std::size_t count) {
    return static_cast<int>(QString::fromUtf8(bytes.left(static_cast<qsizetype>(count))).size());
  };
  Completion result;
  std::set<std::string> words;
  for (const auto* trace : {&analysis.joint, &analysis.computation().trace}) {
    const auto found = completeFilter(*analysis.document, *trace, all, at);
    result.begin = characters(found.begin);
    result.end = characters(found.end);
    words.insert(found.candidates.begin(), found.candidates.end());
  }
  for (const auto& word : words) result.words << toQt(word);
  return result;
}

}  // namespace

FilterHelp::FilterHelp(QWidget* window)
    : QFrame(window), problem_(textLabel({}, this)), list_(new QListView(this)), model_(new QStringListModel(this)) {
  setObjectName(QStringLiteral("filter-help"));
  setFrameShape(QFrame::StyledPanel);
  setAutoFillBackground(true);
  problem_->setObjectName(QStringLiteral("filter-problem"));
  problem_->setContentsMargins(4, 2, 4, 2);
  list_->setAccessibleName(tr("Words for the filter"));
  list_->setModel(model_);
  list_->setUniformItemSizes(true);
  list_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  list_->setFocusPolicy(Qt::NoFocus);
  list_->setFrameShape(QFrame::NoFrame);
  auto* layout = withMargins(new QVBoxLayout(this), {3, 3, 3, 3}, 2);
  layout->addWidget(problem_);
  layout->addWidget(list_);
  connect(list_, &QListView::clicked, this,
          [this](const QModelIndex& index) { Q_EMIT clicked(index.data().toString()); });
  problem_->hide();
  hide();
}

void FilterHelp::showProblem(const QString& text) {
  problem_->setText(text);
  problem_->setVisible(!text.isEmpty());
}

void FilterHelp::showCandidates(const QStringList& words) {
  model_->setStringList(words);
  list_->setVisible(!words.isEmpty());
}

void FilterHelp::place(const QWidget& line) {
  const int rows = model_->rowCount();
  if (rows == 0 && problem_->text().isEmpty()) return hide();
  const int width = std::max(line.width(), 320);
  const int listHeight = rows == 0 ? 0 : std::min(rows, mostRows) * list_->sizeHintForRow(0) + 4;
  list_->setFixedHeight(listHeight);
  const int problemHeight = problem_->text().isEmpty() ? 0 : problem_->heightForWidth(width - 10) + 2;
  auto corner = line.mapTo(parentWidget(), QPoint(0, line.height() + 1));
  corner.setX(std::min(corner.x(), parentWidget()->width() - width));
  setGeometry(QRect(corner, QSize(width, listHeight + problemHeight + 10)));
  show();
  raise();
}

QString FilterHelp::chosen(bool orFirst) const {
  if (isHidden() || model_->rowCount() == 0) return {};
  const auto current = list_->currentIndex();
  return current.isValid() ? current.data().toString() : orFirst ? model_->index(0).data().toString() : QString();
}

void FilterHelp::move(int by) {
  const int rows = model_->rowCount();
  if (rows == 0) return;
  const auto current = list_->currentIndex();
  const int row = current.isValid() ? std::clamp(current.row() + by, 0, rows - 1) : by > 0 ? 0 : rows - 1;
  list_->setCurrentIndex(model_->index(row));
}

FilterBox::FilterBox(ViewContext context, QMenu* menu, QWidget* window)
    : QWidget(window), context_(context), line_(new QLineEdit(this)), help_(new FilterHelp(window)) {
  named(line_, "filter", tr("Filter of the ops that show"));
  line_->setPlaceholderText(tr("role:gradient module:h.3 bytes>1M not op:view"));
  line_->setToolTip(
      tr("Only ops that pass show in the listings, and the graph dims the others.\nEnter keeps the filter, Esc clears "
         "it and goes back."));
  line_->setClearButtonEnabled(true);
  line_->setMinimumWidth(70);
  line_->installEventFilter(this);
  warning_ = line_->addAction(style()->standardIcon(QStyle::SP_MessageBoxWarning), QLineEdit::TrailingPosition);
  warning_->setVisible(false);
  auto* label = new QLabel(tr("Fi&lter:"), this);
  label->setBuddy(line_);
  auto* button = new QToolButton(this);
  button->setText(tr("Filters"));
  button->setAccessibleName(tr("Menu of filters"));
  button->setToolTip(tr("Filters of the selected op, saved ones and examples"));
  button->setPopupMode(QToolButton::InstantPopup);
  button->setAutoRaise(true);
  button->setFocusPolicy(Qt::TabFocus);
  button->setMenu(menu);
  auto* layout = withMargins(new QHBoxLayout(this), {}, 6);
  layout->addStretch(1);
  layout->addWidget(label);
  layout->addWidget(line_, 3);
  layout->addWidget(button);
  line_->setMaximumWidth(620);
  soon_.setSingleShot(true);
  soon_.setInterval(applyAfter);
  connect(&soon_, &QTimer::timeout, this, &FilterBox::applyNow);
  connect(line_, &QLineEdit::textEdited, this, &FilterBox::edited);
  connect(line_, &QLineEdit::textChanged, this, [this](const QString& text) {
    if (text.isEmpty() && context_.filter->active() && line_->isModified()) edited();  // the clear button
  });
  connect(line_, &QLineEdit::cursorPositionChanged, this, [this] {
    if (help_->isVisible()) complete();
  });
  connect(help_, &FilterHelp::clicked, this, &FilterBox::accept);
  connect(context_.filter, &OpFilter::wordsChanged, this, &FilterBox::showWords);
}

void FilterBox::open() {
  if (!line_->hasFocus()) focusBefore_ = QApplication::focusWidget();
  line_->setFocus(Qt::ShortcutFocusReason);
  line_->selectAll();
}

void FilterBox::edited() {
  const auto problem = OpFilter::problemOf(line_->text());
  if (!problem || problem->end < line_->cursorPosition() || !context_.controller->document()) showProblem(problem);
  soon_.start();
  complete();
}

void FilterBox::judge(const QStringList& words) {
  const auto problem = OpFilter::problemOf(line_->text());
  const int cursor = line_->cursorPosition();
  const bool isBeingWritten =
      problem && !words.isEmpty() && problem->begin <= cursor && cursor <= std::max(problem->begin + 1, problem->end);
  showProblem(isBeingWritten ? std::nullopt : problem);
}

void FilterBox::showProblem(const std::optional<OpFilter::Problem>& problem) {
  const auto text = problem ? tr("Column %1: %2").arg(problem->begin + 1).arg(problem->message) : QString();
  help_->showProblem(text.isEmpty() ? QString() : QStringLiteral("! ") + text);
  underline(*line_, problem ? problem->begin : 0, problem ? std::max(1, problem->end - problem->begin) : 0);
  warning_->setVisible(problem.has_value());
  warning_->setToolTip(tr("Not applied. %1").arg(text));
  if (line_->hasFocus()) help_->place(*line_);
}

void FilterBox::applyNow() {
  soon_.stop();
  context_.filter->apply(line_->text());
}

void FilterBox::complete() {
  const auto& document = context_.controller->document();
  if (!document || !line_->hasFocus()) return;
  job_.start(
      [this, document, text = line_->text(), cursor = line_->cursorPosition()](const Progress&) -> PoolJob::Deliver {
        auto completion = completionAt(*document->analysis, text, cursor);
        // A word that is there in full needs no completion.
        if (completion.words.size() == 1 &&
            completion.words.front() == text.mid(completion.begin, completion.end - completion.begin))
          completion.words.clear();
        return [this, completion] {
          if (!line_->hasFocus()) return;
          wordBegin_ = completion.begin;
          wordEnd_ = completion.end;
          help_->showCandidates(completion.words);
          judge(completion.words);
        };
      });
}

void FilterBox::accept(const QString& word) {
  if (word.isEmpty()) return;
  const bool goesOn = word.endsWith(QLatin1Char(':')) || word.endsWith(QLatin1Char('>'));
  auto text = line_->text();
  const auto put = goesOn || text.mid(wordEnd_).startsWith(QLatin1Char(' ')) ? word : word + QLatin1Char(' ');
  text.replace(wordBegin_, wordEnd_ - wordBegin_, put);
  const int cursor = wordBegin_ + static_cast<int>(put.size());
  help_->list().setCurrentIndex({});
  line_->setText(text);
  line_->setModified(true);
  line_->setCursorPosition(cursor);
  edited();
}

/// The words were changed elsewhere, or by what is typed, which then stays as it is.
void FilterBox::showWords() {
  const auto& words = context_.filter->words();
  if (line_->text().trimmed() == words) return;
  soon_.stop();
  line_->setText(words);
  showProblem({});
}

void FilterBox::leave(bool clear) {
  job_.cancel();
  if (clear) line_->clear();
  showProblem(OpFilter::problemOf(line_->text()));
  help_->hide();
  applyNow();
  context_.filter->keep();
}

bool FilterBox::keyPressed(int key, Qt::KeyboardModifiers modifiers) {
  switch (key) {
    case Qt::Key_Escape:
      leave(true);
      if (focusBefore_) focusBefore_->setFocus();
      else Q_EMIT entered();
      return true;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (const auto word = help_->chosen(false); !word.isEmpty()) {
        accept(word);
      } else if (const auto problem = OpFilter::problemOf(line_->text())) {
        showProblem(problem);
      } else {
        leave(false);
        Q_EMIT entered();
      }
      return true;
    case Qt::Key_Tab:
      // Only what is being written is completed; else the key goes on to the next control.
      if (modifiers != Qt::NoModifier || (wordBegin_ == wordEnd_ && help_->chosen(false).isEmpty())) return false;
      if (const auto word = help_->chosen(true); !word.isEmpty()) {
        accept(word);
        return true;
      }
      return false;
    case Qt::Key_Down:
    case Qt::Key_Up: help_->move(key == Qt::Key_Down ? 1 : -1); return true;
    default: return false;
  }
}

bool FilterBox::eventFilter(QObject* watched, QEvent* event) {
  if (watched != line_) return QWidget::eventFilter(watched, event);
  switch (event->type()) {
    case QEvent::FocusIn: complete(); break;
    case QEvent::FocusOut:
      if (static_cast<QFocusEvent*>(event)->reason() != Qt::PopupFocusReason) leave(false);
      break;
    case QEvent::KeyPress: {
      const auto* key = static_cast<QKeyEvent*>(event);
      if (keyPressed(key->key(), key->modifiers())) return true;
      break;
    }
    default: break;
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace retrograd::views
