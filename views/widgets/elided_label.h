#pragma once
#include <QEvent>
#include <QLabel>
#include <QStyle>
#include <QStylePainter>

namespace retrograd::views {

/// A line of plain text that takes the width there is and cuts its middle where that is too little; the tooltip then
/// has the whole text, and so have screen readers. An explanation is in the tooltip always.
class ElidedLabel : public QLabel {
 public:
  explicit ElidedLabel(QWidget* parent = nullptr) : QLabel(parent) {
    setTextFormat(Qt::PlainText);
    setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  }

  void setExplanation(const QString& text) { explanation_ = text; }

  /// What is painted now.
  QString shownText() const { return fontMetrics().elidedText(text(), Qt::ElideMiddle, contentsRect().width()); }

 protected:
  bool event(QEvent* event) override {
    if (event->type() == QEvent::ToolTip) {
      QStringList lines{shownText() == text() ? QString() : text(), explanation_};
      lines.removeAll(QString());
      setToolTip(lines.join(QLatin1Char('\n')));
    }
    return QLabel::event(event);
  }
  void paintEvent(QPaintEvent*) override {
    QStylePainter painter(this);
    painter.drawItemText(contentsRect(), static_cast<int>(Qt::AlignLeft | Qt::AlignVCenter), palette(), isEnabled(),
                         shownText(), foregroundRole());
  }

 private:
  QString explanation_;
};

/// Plain text in as many lines as it needs. Where there is room for fewer, the last one that fits ends with an ellipsis
/// and the tooltip has the whole text, and so have screen readers.
class WrappedLabel : public QLabel {
 public:
  explicit WrappedLabel(QWidget* parent = nullptr);

  bool isCut() const { return !text().isEmpty() && heightForWidth(width()) > height(); }
  /// What is painted now, line by line; of a text that is whole its own lines.
  QStringList shownLines() const;
  /// One line.
  QSize minimumSizeHint() const override { return {0, fontMetrics().height() + height() - room().height()}; }

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  QRect room() const { return contentsRect().adjusted(margin(), margin(), -margin(), -margin()); }
};

}  // namespace retrograd::views
