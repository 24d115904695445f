#include "views/dialogs/note_dialog.h"

#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QVBoxLayout>

#include "views/theme/theme.h"
#include "views/widgets/controls.h"

namespace retrograd::views {

NoteDialog::NoteDialog(Kind kind, const QString& what, const QString& text, QWidget* parent) : QDialog(parent) {
  const bool isComment = kind == Kind::comment;
  setAttribute(Qt::WA_DeleteOnClose);
  setObjectName(QStringLiteral("note-dialog"));
  setWindowTitle(isComment ? tr("Comment") : tr("Name"));
  auto* about = new QLabel(this);
  about->setTextFormat(Qt::PlainText);
  about->setFont(Theme::codeFont());
  constexpr int width = 560;
  about->setText(QFontMetrics(about->font()).elidedText(what, Qt::ElideRight, width - 30));
  auto* hint = new QLabel(isComment ? tr("Shift+Enter begins a new line; an empty comment removes it.")
                                    : tr("Shown instead of the value's own name; an empty one restores that."),
                          this);
  if (isComment) {
    auto* edit = new QPlainTextEdit(text, this);
    edit->setTabChangesFocus(true);
    edit->setFixedHeight(edit->fontMetrics().lineSpacing() * 5 + 12);
    edit->moveCursor(QTextCursor::End);
    edit_ = edit;
  } else {
    auto* edit = new QLineEdit(text, this);
    constexpr int longest = 200;
    edit->setMaxLength(longest);
    edit->selectAll();
    edit_ = edit;
  }
  named(edit_, "note-text", windowTitle());
  edit_->installEventFilter(this);
  auto* buttons = dialogButtons(QDialogButtonBox::Ok | QDialogButtonBox::Cancel, this);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(about);
  layout->addWidget(edit_);
  layout->addWidget(hint);
  layout->addWidget(buttons);
  connect(this, &QDialog::accepted, this, [this] { Q_EMIT chosen(this->text()); });
  resize(width, sizeHint().height());
  edit_->setFocus();
}

QString NoteDialog::text() const {
  const auto* several = qobject_cast<const QPlainTextEdit*>(edit_);
  return (several ? several->toPlainText() : static_cast<const QLineEdit*>(edit_)->text()).trimmed();
}

bool NoteDialog::eventFilter(QObject* watched, QEvent* event) {
  if (watched == edit_ && event->type() == QEvent::KeyPress) {
    const auto* key = static_cast<QKeyEvent*>(event);
    const bool isEnter = key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter;
    if (isEnter && !(key->modifiers() & Qt::ShiftModifier)) {
      accept();
      return true;
    }
  }
  return QDialog::eventFilter(watched, event);
}

}  // namespace retrograd::views
