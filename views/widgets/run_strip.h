#pragma once
#include <QTimer>
#include <QWidget>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/judge/claim.h"
#include "views/session/view_context.h"

namespace retrograd::views {

/// The run as a timeline: a lane for each part of a step (forward, backward, clip, optimizer), steps and micro-batches
/// after each other; in them how far execution is, the selected op, breakpoints, findings, NaN and Inf, and the peak of
/// memory. The wheel zooms, with Shift it moves. A drag selects a range and says its ops, time and bytes. A click leads
/// to the op there, near a mark to that of the mark; Left and Right lead from mark to mark, + and - zoom, 0 shows all.
/// Hidden where there is nothing to run.
class RunStrip : public QWidget {
  Q_OBJECT

 public:
  explicit RunStrip(ViewContext context, QWidget* parent = nullptr);

  enum class Kind : std::uint8_t { bad, breakpoint, finding, peak, execution };  ///< the first are nearest to a person
  struct Mark {
    Kind kind = Kind::bad;
    std::size_t position = 0;
    Severity severity = Severity::note;  ///< of a finding
  };
  /// By position.
  const std::vector<Mark>& marks() const { return marks_; }
  /// After which op memory has its peak.
  void setPeak(std::optional<std::size_t> position);
  /// The ops that something was found at, with how bad it is.
  void setFindings(std::vector<std::pair<BoundSymbolId, Severity>> findings);

  enum class Lane : std::uint8_t { forward, backward, clip, optimizer, other };
  /// The lanes that there are, from the top.
  const std::vector<Lane>& lanes() const { return lanes_; }
  Lane laneOf(std::size_t position) const;
  /// Of a recorded step "step 0, backward".
  const std::string& titleOf(std::size_t position) const;

  int xOf(std::size_t position) const;
  /// The op under a point: of the nearest mark within reach, else of the place.
  BoundSymbolId opAt(const QPointF& point) const;
  /// The first position in sight and the one behind the last.
  std::pair<double, double> shown() const { return {from_, to_}; }
  /// The positions that a drag selected, the second one behind the last.
  const std::optional<std::pair<std::size_t, std::size_t>>& range() const { return range_; }
  /// "ops 12 to 40: 29 ops, 1.2 ms, 4 KiB allocated"; empty without a range, and while it is being summed.
  const QString& rangeText() const { return rangeText_; }

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return {60, sizeHint().height()}; }

 Q_SIGNALS:
  void chosen(retrograd::BoundSymbolId op);
  /// What the selected range amounts to; empty when there is none any more.
  void rangeSaid(const QString& text);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;

 private:
  struct Stretch {
    std::size_t begin = 0;
    Lane lane = Lane::forward;
    std::string title;
  };
  /// What a range amounts to, summed in slices: a range of a million ops takes longer than an event may.
  struct Sum {
    std::size_t next = 0, measured = 0;
    double seconds = 0, bytes = 0;
  };

  std::size_t size() const;
  void documentChanged();
  void findStretches();
  void collect();
  const Stretch& stretchAt(std::size_t position) const;
  std::size_t endOf(std::size_t stretch) const;
  QRect laneRect(Lane lane) const;
  double placeAt(double x) const;
  const Mark* markAt(double x) const;
  void goToMark(bool forward);
  void show(double from, double to);
  void zoom(double factor, double around);
  void select(std::optional<std::pair<std::size_t, std::size_t>> range);
  void sumSlice();
  QString tipAt(const QPointF& point) const;
  void paintLanes(class QPainter& painter) const;
  void paintStretch(QPainter& painter, std::size_t stretch) const;
  void paintRange(QPainter& painter) const;
  void paintMark(QPainter& painter, const Mark& mark) const;

  const ViewContext context_;
  std::optional<std::size_t> peak_;
  std::vector<std::pair<BoundSymbolId, Severity>> findings_;
  std::vector<Mark> marks_;
  std::vector<Stretch> stretches_;
  std::vector<Lane> lanes_;
  int left_ = 0;  ///< of the lanes, right of their names
  double from_ = 0, to_ = 0;
  std::optional<QPointF> pressed_;
  bool dragging_ = false;
  std::optional<std::pair<std::size_t, std::size_t>> range_;
  Sum sum_;
  QTimer summing_;
  QString rangeText_;
};

}  // namespace retrograd::views
