#pragma once
#include <QWidget>
#include <optional>
#include <vector>

#include "views/session/view_context.h"

namespace retrograd::views {

/// The whole run as one line, forward and backward: how far execution is, the selected op, breakpoints, NaN and Inf,
/// and the peak of memory. A click leads to the op there, near a mark to that of the mark; Left and Right lead from
/// mark to mark. Hidden where there is nothing to run.
class RunStrip : public QWidget {
  Q_OBJECT

 public:
  explicit RunStrip(ViewContext context, QWidget* parent = nullptr);

  enum class Kind : std::uint8_t { bad, breakpoint, peak, execution };  ///< the first ones are nearest to a person
  struct Mark {
    Kind kind = Kind::bad;
    std::size_t position = 0;
  };
  /// By position.
  const std::vector<Mark>& marks() const { return marks_; }
  /// After which op memory has its peak.
  void setPeak(std::optional<std::size_t> position);
  int xOf(std::size_t position) const;
  /// The op under a point: of the nearest mark within reach, else of the place.
  BoundSymbolId opAt(const QPointF& point) const;

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return {60, sizeHint().height()}; }

 Q_SIGNALS:
  void chosen(retrograd::BoundSymbolId op);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;

 private:
  std::size_t size() const;
  void documentChanged();
  void collect();
  const Mark* markAt(double x) const;
  void goToMark(bool forward);
  QString tipAt(const QPointF& point) const;
  void paintGround(class QPainter& painter) const;
  void paintMark(QPainter& painter, const Mark& mark) const;

  const ViewContext context_;
  std::optional<std::size_t> peak_;
  std::vector<Mark> marks_;
};

}  // namespace retrograd::views
