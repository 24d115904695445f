#pragma once
#include <QWidget>
#include <memory>
#include <optional>

#include "views/stages/stage_cut.h"
#include "views/theme/theme.h"

namespace retrograd::views {

/// The model from left to right, as long as its ops' load, parted into its stages: equal stages are equally long, and
/// ticks below show where equal ones would end. Each border is labelled with what crosses it. Borders are dragged; Left
/// and Right choose a stage, Ctrl+Left and Ctrl+Right move where it begins by one op, Enter leads to it.
class StageBar : public QWidget {
  Q_OBJECT

 public:
  explicit StageBar(Theme* theme, QWidget* parent = nullptr);

  /// Null shows nothing.
  void show(std::shared_ptr<const StageCut> cut);
  void setCurrent(int stage);
  int current() const { return current_; }
  QRect stageRect(int stage) const;
  /// The stage whose beginning is under a point; -1 where none is.
  int borderAt(const QPointF& point) const;
  int stageAt(const QPointF& point) const;
  /// Where in the computation's ops a point lies; the nearest place between two ops.
  std::size_t positionAt(qreal x) const;

  QSize sizeHint() const override { return {400, barTop + barHeight + footHeight()}; }
  QSize minimumSizeHint() const override { return {120, barTop + barHeight + footHeight()}; }

 Q_SIGNALS:
  /// Chosen by click or key.
  void picked(int stage);
  /// Enter or a double click.
  void activated(int stage);
  void cutMoved(int stage, std::size_t position);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  bool event(QEvent* event) override;

 private:
  static constexpr int barTop = 4, barHeight = 30, side = 8;
  int footHeight() const { return fontMetrics().height() + 10; }
  int stages() const { return cut_ ? cut_->stages() : 0; }
  int xOf(std::size_t position) const;
  std::size_t begin(int stage) const { return stage < stages() ? cut_->split.stages[stage].begin : cut_->ops().size(); }
  QString label(int stage, bool full) const;
  QString tipAt(const QPointF& point) const;
  void paintStage(QPainter& painter, int stage) const;
  void paintBorders(QPainter& painter) const;
  void pick(int stage);
  void moveBy(int ops);

  Theme* theme_;
  std::shared_ptr<const StageCut> cut_;
  std::vector<double> sums_;  ///< load before each position; one longer than the ops
  int current_ = -1;
  int dragged_ = -1;  ///< stage whose beginning is dragged
  std::optional<std::size_t> target_;
};

}  // namespace retrograd::views
