#pragma once
#include <QWidget>

#include "core/torch/session/session.h"
#include "views/theme/theme.h"

namespace retrograd::views {

/// Counts of a tensor's elements as bars between its least and greatest, with the number of NaN and Inf next to them.
class HistogramView : public QWidget {
  Q_OBJECT

 public:
  HistogramView(Theme* theme, QWidget* parent = nullptr);
  /// Empty counts show nothing.
  void set(std::vector<std::int64_t> counts, const TensorStatistics& statistics);

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

 private:
  QRect plot() const { return rect().adjusted(0, 2, -6, -fontMetrics().height() - 2); }

  Theme* theme_;
  std::vector<std::int64_t> counts_;
  TensorStatistics statistics_;
};

}  // namespace retrograd::views
