#pragma once
#include <QAbstractScrollArea>
#include <QCache>
#include <QImage>
#include <array>

#include "views/models/diff_rows.h"
#include "views/theme.h"

namespace retrograd::views {

/// Colours of a comparison's rows. Each kind has a sign too, and what differs within a row a darker ground.
struct DiffColors {
  QColor onlyLeft, onlyRight, changed, moved, gap;             ///< grounds of rows
  QColor onlyLeftMark, onlyRightMark, changedMark, movedMark;  ///< signs, and words that differ
};
DiffColors diffColors(bool dark);
/// The mark's colour of a kind of row; invalid for what is the same.
QColor markOf(const DiffColors& colors, DiffRow::Kind kind);

/// Two traces side by side in one canvas: what answers to one another stands in one row, what stands on one side alone is across from a gap,
/// so that both scroll in step by construction. At the right edge, where in the whole something differs. Text is made for the rows on screen
/// only.
class DiffView : public QAbstractScrollArea {
  Q_OBJECT

 public:
  explicit DiffView(Theme* theme, QWidget* parent = nullptr);

  void show(DiffRows rows);
  const DiffRows& rows() const { return rows_; }
  /// What to say where there is nothing to show: how to choose, what is being done, what went wrong.
  void setMessage(const QString& message);
  const QString& message() const { return message_; }
  void showOnlyDifferences(bool on);

  /// The row of the keyboard; -1 where there is none.
  int cursor() const { return cursor_; }
  /// The side that the keyboard is on.
  Side side() const { return side_; }
  /// The op under the cursor: of its side, else of the other one.
  std::pair<Side, BoundSymbolId> opUnderCursor() const;
  void setCursor(int visible, Side side);
  /// Puts the cursor on the op where the side has it, unfolding what hides it; says nothing of it.
  void reveal(Side side, BoundSymbolId op);
  /// To the next block of differences, or the one before; returns whether there is one.
  bool step(bool forward);

  QRect rowRect(int visible) const;   ///< in viewport coordinates
  QRect overviewRect() const;
  /// The text of a row on one side as painted.
  QString textAt(int visible, Side side) const;

 Q_SIGNALS:
  /// The cursor was moved by a person.
  void cursorMoved();
  /// Enter or a double click.
  void activated(retrograd::Side side, retrograd::BoundSymbolId op);
  /// Esc.
  void cancelled();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;
  bool viewportEvent(QEvent* event) override;

 private:
  struct Prepared {
    LineText line;
    std::vector<bool> changed;
  };
  void updateMetrics();
  /// Forgets what was prepared of rows that have come or gone.
  void rowsChanged();
  void updateScrollBars();
  int visibleRows() const { return std::max(1, viewport()->height() / rowHeight_); }
  int halfWidth() const { return (viewport()->width() - overviewWidth) / 2; }
  int gutterWidth() const;
  int rowAtY(int y) const;
  Side sideAtX(int x) const { return x < halfWidth() ? Side::left : Side::right; }
  void moveTo(int visible);
  void ensureVisible(int visible, bool centre);
  void scrollToOverview(int y);
  const Prepared& prepared(int visible, Side side) const;
  QString copyText() const;
  void paintRow(QPainter& painter, int visible, int top) const;
  void paintSide(QPainter& painter, int visible, Side side, const QRect& rect) const;
  void paintText(QPainter& painter, int visible, Side side, const QRect& rect, const QColor& mark) const;
  void paintFold(QPainter& painter, int visible, const QRect& rect) const;
  void paintOverview(QPainter& painter) const;
  QImage makeOverview() const;
  void announce();

  static constexpr int overviewWidth = 14;

  Theme* theme_;
  DiffRows rows_;
  QString message_;
  int cursor_ = -1;
  Side side_ = Side::left;
  int rowHeight_ = 16, ascent_ = 12;
  qreal charWidth_ = 8;
  mutable int widestText_ = 0;                                 ///< characters
  mutable std::array<QCache<int, Prepared>, 2> texts_;         ///< by side and visible row
  mutable QImage overview_;                                    ///< of all rows; null: to be made
};

/// Tells screen readers the row under the cursor; call once before the first window.
void installDiffAccessibility();

}  // namespace retrograd::views
