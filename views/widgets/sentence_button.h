#pragma once
#include <QAbstractButton>

namespace retrograd::views {

/// A line of text that is a button: elided where there is no room, whole in its tooltip, underlined under the pointer.
class SentenceButton : public QAbstractButton {
  Q_OBJECT

 public:
  explicit SentenceButton(QWidget* parent = nullptr);
  void setSentence(const QString& text, bool leads);
  /// In as many lines as it takes, instead of one that is elided.
  void setWraps();
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return {leastWidth, sizeHint().height()}; }
  bool hasHeightForWidth() const override { return wraps_; }
  int heightForWidth(int width) const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void enterEvent(QEnterEvent* event) override;
  void leaveEvent(QEvent* event) override;

 private:
  static constexpr int leastWidth = 40;
  bool wraps_ = false;
};

}  // namespace retrograd::views
