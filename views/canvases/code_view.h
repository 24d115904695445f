#pragma once
#include "views/canvases/scrolled_canvas.h"

namespace retrograd::views {

/// A canvas for code: rows in the code font, as many as one likes, of which only those on screen are made and painted.
/// A row has one line or several; above it there may be room for something else, such as the border between two stages.
///
/// It keeps the row of the keyboard and gives the rows to assistive technology: a list whose items have the rows' text
/// as their name.
class CodeView : public ScrolledCanvas {
  Q_OBJECT

 public:
  explicit CodeView(Theme* theme, QWidget* parent = nullptr);

  virtual int rowCount() const = 0;
  /// The visible row of the keyboard; -1 where there is none.
  int cursorRow() const { return cursor_; }
  /// A row as a screen reader hears it, with its marks in words; empty for a row that is not there.
  virtual QString spokenAt(int visible) const = 0;
  /// The cursor goes to a row, as by a click into it.
  virtual void chooseRow(int) {}
  /// What a double click there does, such as leading to the origin.
  virtual void activateRow(int) {}
  /// The text that is heard where there are no rows.
  virtual QString emptyText() const { return {}; }

  /// In viewport coordinates.
  QRect rowRect(int visible) const { return {0, rowTop(visible), rowWidth(), heightOf(visible)}; }
  bool isRowVisible(int visible) const;
  /// The row at this height of the viewport; -1 where there is none.
  int rowAtY(int y) const;

 protected:
  /// Pixels that rows have, from the left.
  virtual int rowWidth() const { return viewport()->width(); }
  /// That fit into the viewport where each has one line and nothing above it.
  int visibleRows() const { return std::max(1, viewport()->height() / rowHeight_); }
  /// How many rows from this one on fit into the viewport, at least one; `step`: 1 downwards, -1 upwards.
  int rowsThatFit(int from, int step) const;
  /// Pixels that stay free above a row; asked of rows in sight.
  virtual int roomAbove(int) const { return 0; }
  /// Lines of text in a row; asked of rows in sight.
  virtual int linesOf(int) const { return 1; }
  int heightOf(int visible) const { return linesOf(visible) * rowHeight_; }
  int rowTop(int visible) const;  ///< in viewport coordinates
  /// The first row in sight when the last one ends the viewport.
  int lastTop() const { return std::max(0, rowCount() - rowsThatFit(rowCount() - 1, -1)); }
  int columnAt(qreal characters) const { return static_cast<int>(characters * charWidth_); }
  void updateMetrics();
  /// Lets assistive technology know that the cursor is in another row.
  void announce();
  /// What depends on the colours is to be made again.
  virtual void colorsChanged() {}
  /// What depends on the size of letters is to be made again.
  virtual void metricsChanged() {}
  void changeEvent(QEvent* event) override;

  int cursor_ = -1;
  int rowHeight_ = 16, ascent_ = 12;  ///< of a line; from its top to where the letters are
  qreal charWidth_ = 8;
};

/// Makes the rows of code views known to assistive technology; call once before the first window.
void installCodeAccessibility();

}  // namespace retrograd::views
