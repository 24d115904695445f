#pragma once
#include <QFrame>
#include <QLabel>

#include "views/canvases/histogram_view.h"
#include "views/session/view_context.h"

namespace retrograd::views {

/// What a value is, next to the pointer: name, shape, dtype, and, as soon as they are known, statistics and a small
/// histogram, as the value was at an op.
class ValueTip : public QFrame {
  Q_OBJECT

 public:
  ValueTip(ViewContext context, QWidget* parent);

  /// Shows at the point, in global coordinates. An operand is shown as it was before the op, what the op makes as it is
  /// after.
  void show(BoundSymbolId op, ValueId value, const QPoint& at);
  void leave();
  ValueId value() const { return value_; }
  QString text() const { return text_->text(); }
  /// Statistics and histogram are there.
  bool isFilled() const { return filled_; }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  struct Answer;
  void fill(const Answer& answer);
  QString heading() const;

  ViewContext context_;
  QLabel* text_;
  HistogramView* histogram_;
  BoundSymbolId op_;
  ValueId value_;
  bool filled_ = false;
};

}  // namespace retrograd::views
