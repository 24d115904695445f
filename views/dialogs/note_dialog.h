#pragma once
#include <QDialog>

namespace retrograd::views {

/// Asks for the text of a note. Enter accepts; in a comment Shift+Enter begins a new line.
class NoteDialog : public QDialog {
  Q_OBJECT

 public:
  enum class Kind { comment, name };
  /// `what`: what it is about, as the person reads it.
  NoteDialog(Kind kind, const QString& what, const QString& text, QWidget* parent);

 Q_SIGNALS:
  void chosen(const QString& text);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  QString text() const;

  QWidget* edit_ = nullptr;
};

}  // namespace retrograd::views
