#pragma once
#include <QLabel>

namespace retrograd::views {

/// Plain text in as many lines as it needs. Where there is room for fewer, the last one that fits ends with an ellipsis
/// and the tooltip has the whole text, and so have screen readers.
class WrappedLabel : public QLabel {
 public:
  explicit WrappedLabel(QWidget* parent = nullptr);

  bool isCut() const;
  /// What is painted now, line by line; of a text that is whole its own lines.
  QStringList shownLines() const;
  QSize minimumSizeHint() const override;  ///< one line

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  QRect room() const;
};

}  // namespace retrograd::views
