#pragma once
#include <QColor>
#include <QScrollBar>
#include <vector>

namespace retrograd::views {

/// A scroll bar that marks places of what it scrolls, as compilers mark errors. A click on a mark brings its place to
/// the middle.
class MarkedScrollBar : public QScrollBar {
  Q_OBJECT

 public:
  struct Mark {
    double place = 0;  ///< from 0, the first row, to 1, the end of the last
    QColor color;
    QString what;  ///< for the tooltip: "error", "first NaN or Inf"
    bool operator==(const Mark&) const = default;
  };

  explicit MarkedScrollBar(QWidget* parent = nullptr);
  void setMarks(std::vector<Mark> marks);
  const std::vector<Mark>& marks() const { return marks_; }
  /// Where a mark is drawn.
  QRect markRect(const Mark& mark) const;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;

 private:
  std::vector<Mark> marks_;
};

}  // namespace retrograd::views
