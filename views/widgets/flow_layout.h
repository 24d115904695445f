#pragma once
#include <QLayout>
#include <vector>

namespace retrograd::views {

/// Controls in a row, as wide as they want to be; what does not fit goes on in the row below. What is left of a row
/// goes to those that expand.
class FlowLayout : public QLayout {
 public:
  explicit FlowLayout(QWidget* parent) : QLayout(parent) {}
  ~FlowLayout() override;

  void addItem(QLayoutItem* item) override { items_.push_back(item); }
  int count() const override { return static_cast<int>(items_.size()); }
  QLayoutItem* itemAt(int index) const override { return index >= 0 && index < count() ? items_[index] : nullptr; }
  QLayoutItem* takeAt(int index) override;
  Qt::Orientations expandingDirections() const override { return Qt::Horizontal; }
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override;
  QSize sizeHint() const override;
  QSize minimumSize() const override;
  void setGeometry(const QRect& rect) override;

 private:
  /// Puts the items into rows of this width, or only measures; returns the height of all rows.
  int arrange(const QRect& rect, bool puts) const;

  std::vector<QLayoutItem*> items_;
};

}  // namespace retrograd::views
