#pragma once
#include <QKeySequence>
#include <QLineEdit>

namespace retrograd::views {

/// Takes one key, with its modifiers, as it is pressed. Tab goes on; Escape and Backspace empty it, or close the dialog
/// where it is empty.
class KeyEdit : public QLineEdit {
  Q_OBJECT

 public:
  explicit KeyEdit(QWidget* parent = nullptr);
  const QKeySequence& key() const { return key_; }
  void setKey(const QKeySequence& key);

 Q_SIGNALS:
  void keyChanged(const QKeySequence& key);

 protected:
  bool event(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  QKeySequence key_;
};

}  // namespace retrograd::views
