#pragma once
#include <QCache>
#include <QImage>

#include "core/base/enum_array.h"
#include "views/canvases/code_view.h"
#include "views/content/diff_rows.h"

namespace retrograd::views {

/// The mark's colour of a kind of row; invalid for what is the same.
QColor markOf(const DiffColors& colors, DiffRow::Kind kind);

/// Two traces side by side in one canvas: matching lines are in one row, a line on one side alone
/// is across from a gap, so that both scroll in step by construction. At the right edge, where in the whole something
/// differs. Text is made for the rows on screen only.
class DiffView : public CodeView {
  Q_OBJECT

 public:
  explicit DiffView(Theme* theme, QWidget* parent = nullptr);

  void show(DiffRows rows);
  const DiffRows& rows() const { return rows_; }
  /// What to say where there is nothing to show: how to choose, what is being done, what went wrong.
  void setMessage(const QString& message);
  const QString& message() const { return message_; }
  void showOnlyDifferences(bool on);

  int rowCount() const override { return rows_.count(); }
  QString spokenAt(int visible) const override {
    return visible >= 0 && visible < rows_.count() ? rows_.spoken(visible) : QString();
  }
  QString emptyText() const override { return message_; }
  void chooseRow(int visible) override { moveTo(visible); }
  void activateRow(int visible) override;
  /// The side that the keyboard is on.
  Side side() const { return side_; }
  /// The op under the cursor: of its side, else of the other one.
  std::pair<Side, BoundSymbolId> opUnderCursor() const;
  void setCursor(int visible, Side side);
  /// Puts the cursor on the op where the side has it, unfolding what hides it; says nothing of it.
  void reveal(Side side, BoundSymbolId op);
  /// To the next block of differences, or the one before; returns whether there is one.
  bool step(bool forward);

  QRect overviewRect() const;
  /// The text of a row on one side as painted.
  QString textAt(int visible, Side side) const;
  /// Both sides of the row under the cursor, one where they are equal, and in what they differ.
  QString cursorText() const;
  /// What the gutter shows of a row: "#12", the id of its op; empty where the side has no op.
  QString gutterText(int visible, Side side) const;

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
  bool viewportEvent(QEvent* event) override;

 private:
  struct Prepared {
    LineText line;
    std::vector<bool> changed;
  };
  int rowWidth() const override { return viewport()->width() - overviewWidth; }
  void colorsChanged() override { overview_ = {}; }
  void metricsChanged() override { updateScrollBars(); }
  /// Forgets what was prepared of rows that have come or gone.
  void rowsChanged();
  void updateScrollBars();
  int halfWidth() const { return (viewport()->width() - overviewWidth) / 2; }
  int gutterWidth() const;
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

  static constexpr int overviewWidth = 14;

  DiffRows rows_;
  QString message_;
  Side side_ = Side::left;
  mutable int widestText_ = 0;                               ///< characters
  mutable EnumArray<Side, QCache<int, Prepared>, 2> texts_;  ///< by side and visible row
  mutable QImage overview_;                                  ///< of all rows; null: to be made
};

}  // namespace retrograd::views
