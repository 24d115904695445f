#pragma once
#include <QCache>
#include <QMenu>
#include <array>
#include <map>
#include <memory>

#include "core/base/enum_array.h"
#include "views/canvases/code_view.h"
#include "views/content/fold_rows.h"
#include "views/findings/finding_board.h"
#include "views/session/view_context.h"
#include "views/text/line_pattern.h"
#include "views/text/line_text.h"
#include "views/theme/tokens.h"

namespace retrograd::views {

/// What a person chose for a column of words.
struct ColumnChoice {
  bool isShown = true;
  int characters = 0;  ///< its width; 0: what the code leaves
};
using ColumnChoices = EnumArray<TextColumn, ColumnChoice, textColumnCount>;

/// One trace as code: one op a line, coloured, foldable, with a gutter. Text is made for the lines on screen only, so
/// that a million lines open and scroll like a hundred.
///
/// The keyboard's line (`cursor`) is this view's own; moving it selects that line's op for all views. Lines related to
/// the selected op are marked, and the nearest of them is scrolled into view.
class ListingView : public CodeView {
  Q_OBJECT

 public:
  ListingView(ViewContext context, TraceKind kind, QWidget* parent = nullptr);

  TraceKind kind() const { return kind_; }
  int rowCount() const override { return rows_.count(); }
  /// The op on a visible row; invalid on a header.
  BoundSymbolId opAt(int visible) const;
  /// The visible row that shows the op (or the folded header it hides in); -1 when it is not in this trace.
  int rowOf(BoundSymbolId op) const;
  /// The whole text of a visible row, what the columns show behind "#".
  QString textAt(int visible) const;
  bool isHeader(int visible) const;
  /// Where the way to the origin of a selected op begins: at the op itself, but at the first op below a heading
  /// "backward of x" that selected it.
  BoundSymbolId startOfJump(BoundSymbolId op) const;
  /// Where the code begins and ends and the columns at the right begin and end, in pixels; one without room ends where
  /// it begins.
  struct Columns {
    int code = 0, codeEnd = 0, end = 0;
    EnumArray<TextColumn, int, textColumnCount> left{}, right{};
    std::vector<TextColumn> without;  ///< those that are wanted, have something to say, and no room to say it
    bool operator==(const Columns&) const = default;
  };
  Columns columns() const;
  const LineText& lineTextAt(int visible) const { return lineText(visible); }
  /// What a column says of a visible row, before it is cut to its width.
  QString wordAt(int visible, TextColumn column) const;
  /// Which columns of words a person wants, and how wide.
  void setColumnChoices(const ColumnChoices& choices);
  /// A width in pixels as characters of the code, at least 3.
  int charactersOf(int pixels) const { return std::max(3, static_cast<int>(pixels / charWidth_)); }
  /// The code of a visible row as it is painted: in several lines where one has no room for all.
  LineText shownCode(int visible) const;
  /// Where it begins, in pixels.
  int textLeft(int visible) const;
  /// Shown though it does not pass the filter: it is selected, matches what is selected, or runs next.
  bool isKept(int visible) const;
  /// A NaN or Inf was seen in what the op makes; it only passes it on where takesBad().
  bool isBad(BoundSymbolId op) const;
  bool takesBad(BoundSymbolId op) const;
  QString spokenAt(int visible) const override;
  void chooseRow(int visible) override { moveCursor(visible); }
  void activateRow(int visible) override;

  void setGrouping(Grouping grouping);
  void setShortNames(bool on);
  /// The number of each op, as everything else calls it ("#12"), in the gutter.
  void setNumbers(bool on);
  /// Shows this number of each line at the right, with a bar behind it. A backward shows no gradient norms.
  /// One that a person chose has its room before others.
  void setColumn(OpFigure kind, bool isChosen = true);
  OpFigure column() const { return column_; }
  /// The number of a visible row as it shows; empty where there is none.
  QString numberAt(int visible) const;
  /// That number is of the last run: up to the present position its op, or one of those folded there, has not run.
  bool isOfLastRun(int visible) const;
  /// Where the column is in the viewport; empty before the first run, which makes its numbers, and without room for it.
  QRect columnRect() const;
  /// The column is wanted and has numbers, but no room.
  bool lacksRoomForNumbers() const;
  /// The colour of a bar of the column, opaque; `isBeyond`: its number is greater than what a full bar means.
  static QColor barColor(const Colors& colors, bool isBad, bool isBeyond);
  /// The value whose name is at this point of a visible row; invalid where there is none.
  ValueId valueAt(const QPoint& point, int visible) const;
  void setAllFolded(bool on);
  /// Unfolds what hides the op, puts the cursor on it and scrolls there.
  void reveal(BoundSymbolId op);
  /// The text of the selected lines in the long form, as in the printed trace.
  QString copyText() const;
  /// Seeks lines that pass the filter from the cursor on, in slices between events; findDone() reports the end.
  void find(const LinePattern& pattern, bool forward);
  void find(const QString& text, bool forward) { find(LinePattern(text), forward); }
  void cancelFind();
  /// Ends what find() lit and counts.
  void clearFind();
  /// The line has what find() was asked for last, and is lit.
  bool isLit(int visible) const;

 Q_SIGNALS:
  /// Enter or a double click: the owner decides where to jump.
  void jumpRequested(retrograd::BoundSymbolId op);
  void breakpointRequested(retrograd::BoundSymbolId op);
  void findDone(bool found, bool wrapped);
  /// How many lines have it, and which of them the cursor is at, from 1; 0: at none.
  void findCounted(int current, int all);
  /// Columns are in other places now, as headers show them.
  void columnsMoved();
  void activated();
  /// The context menu of the selected line, to which others may add.
  void menuAboutToShow(QMenu* menu);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;
  bool event(QEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  bool viewportEvent(QEvent* event) override;
  void metricsChanged() override { updateScrollBars(); }
  void timerEvent(QTimerEvent* event) override;

 private:
  const OpenDocument* document() const { return document_.get(); }
  const TraceIndex& index() const { return document()->trace(kind_); }
  const Outline& outline() const { return index().outline(grouping_); }
  void documentChanged();
  void selectionChanged();
  void executionChanged();
  void filterChanged();
  void notesChanged();
  /// The selected op, what matches it here and the op that runs next show whether they pass the filter or not.
  bool keepLines();
  /// Changes which rows show; what is under the cursor, or else on top, stays where it is on the screen.
  void changeRows(const std::function<bool()>& change);
  /// The line of this trace that matches the selected op on the other side; invalid where there is none.
  BoundSymbolId counterpartHere() const;
  void resetRows();
  void updateScrollBars();
  void moveCursor(int visible, bool extend = false);
  void setCursor(int visible, bool extend);
  void ensureVisible(int visible, bool centre);
  /// Of several selected lines one.
  bool isMarked(int visible) const {
    return anchor_ != cursor_ && visible >= std::min(cursor_, anchor_) && visible <= std::max(cursor_, anchor_);
  }
  void selectOpOf(int visible, ValueId value = {});
  void selectCursorOp() { selectOpOf(cursor_); }
  void toggleFold(int visible);
  void foldAtCursor(bool fold);
  BoundSymbolId opForKey(int visible) const;
  /// The first op below a row, in order of the trace; the row's own where it has one.
  BoundSymbolId firstOpFrom(std::int32_t row) const;
  const LineText& lineText(int visible) const;
  LineText makeLine(std::int32_t row) const;
  Relation relationOf(int visible) const;
  QString toolTipAt(const QPoint& point) const;
  /// Breakpoint and execution; bookmark, health or saved. 28 pixels at the usual size of letters.
  int marksWidth() const { return std::max(tokens::gutterWidth, rowHeight_ * 3 / 2); }
  int gutterWidth() const { return marksWidth() + stagesWidth() + numbersWidth(); }
  /// The ops' numbers, right of the stages; 0 while they are not wanted.
  int numbersWidth() const;
  /// A click at this point of a line sets a breakpoint or takes it away.
  bool togglesBreakpoint(const QPoint& point) const { return point.x() < marksWidth() / 2; }
  /// The band of pipeline stages next to the marks; 0 while the model is in one piece.
  int stagesWidth() const;
  /// The op of a visible row, of a header the first below it; invalid where there is none.
  BoundSymbolId firstOpAt(int visible) const;
  /// Stage of a visible row; -1: none.
  int stageAt(int visible) const;
  /// The stage of the nearest row above that is in one; -1: none.
  int stageAbove(int visible) const;
  /// Whether a stage ends above the row and another begins in it: their border has three quarters of a row of its own.
  bool beginsStage(int visible) const;
  int borderY(int visible) const { return rowTop(visible) - roomAbove(visible) / 2; }
  int roomAbove(int visible) const override;
  int linesOf(int visible) const override;
  /// The characters of a line of a visible row.
  int codeRoom(int visible) const;
  /// "0 > 1: 3.1 MiB": what crosses before this row; empty where no stage begins.
  QString crossingText(int visible) const;
  /// The row whose upper edge is nearest.
  int edgeAt(int y) const;
  /// The row at whose upper edge the pointer can take hold of a border between stages; -1: none is there.
  int borderAt(const QPoint& point) const;
  /// Where the cut would come if the border that is dragged were let go; -1 where it cannot.
  std::int64_t dropPlace() const;
  bool takeBorder(const QPoint& point);
  void dragBorder(int y);
  void letGoOfBorder(bool drop);
  void paintDrag(QPainter& painter) const;

  void paintRow(QPainter& painter, int visible, int top) const;
  void paintBackground(QPainter& painter, int visible, const QRect& rect, Relation relation) const;
  void paintGutter(QPainter& painter, int visible, const QRect& rect, Relation relation) const;
  void paintFold(QPainter& painter, int visible, const QRect& rect) const;
  void paintText(QPainter& painter, int visible, const QRect& rect) const;
  void paintColumns(QPainter& painter, int visible, const QRect& rect) const;
  void paintStage(QPainter& painter, int visible, const QRect& rect) const;
  void paintStageBorders(QPainter& painter, int first, int last) const;
  void paintColumn(QPainter& painter, int first, int last) const;
  void numbersChanged();
  /// What is summed of the lines below a row.
  struct Below {
    double number = 0;  ///< of the column, where its numbers can be summed
    bool known = false;
    bool bad = false;
  };
  Below below(std::int32_t row) const;
  bool badBelow(std::int32_t row) const { return below(row).bad; }
  /// Marks where errors and the first NaN are in the scroll bar.
  void updateMarks();

  ViewContext context_;
  const FindingBoard& board_;
  TraceKind kind_;
  Grouping grouping_ = Grouping::operation;
  bool shortNames_ = true;
  OpFigure column_ = OpFigure::none;
  bool isColumnChosen_ = false;
  bool hasNumbers() const;
  /// Of the outline's rows up to each: sums of the column, how many of them are known, lines with NaN or Inf. Empty
  /// until a folded row is painted.
  struct Sums {
    std::vector<double> number;
    std::vector<std::int32_t> known, bad;
  };
  mutable Sums sums_;
  class MarkedScrollBar* marks_;                  ///< the vertical scroll bar
  std::shared_ptr<const OpenDocument> document_;  ///< held, as the rows below refer to it
  FoldRows rows_;
  int anchor_ = -1;  ///< where the selected lines begin; they end at the cursor
  /// Characters, of the lines seen so far: of their code with its indentation, of what is enough for four of five
  /// lines, of what columns say in full and of what of it cannot be cut.
  struct Widths {
    int code = 0, usualCode = 0;
    EnumArray<TextColumn, int, textColumnCount> whole{}, least{};
    std::map<int, int> lines;  ///< how many lines have a code of this length
  };
  void measure(const LineText& line, int depth) const;
  /// The widths of the columns, in characters with the gap before each; 0: not shown.
  using ColumnWidths = EnumArray<TextColumn, int, textColumnCount>;
  ColumnWidths columnWidths(int room) const;
  mutable Widths widest_;
  ColumnChoices choices_;
  Columns shownColumns_;                       ///< as they were painted last
  QRect shownNumbers_;                         ///< where their column was
  bool numbers_ = false;                       ///< the gutter has the ops' numbers
  mutable QCache<int, LineText> texts_{2000};  ///< by outline row
  BoundSymbolId shownExecution_;
  bool selecting_ = false;  ///< the selection changes because of this view: do not scroll it

  /// A border between stages that the mouse drags.
  struct Drag {
    int stage = -1;           ///< that begins there in the model; -1: none is dragged
    bool descending = false;  ///< the listing has the stages in reverse there: the backward
    int row = -1;             ///< before which it would come
  };
  Drag drag_;

  struct Search {
    LinePattern pattern;
    bool forward = true;
    int next = -1, left = 0;
    bool wrapped = false;
    int timer = 0;
  };
  Search search_;

  /// All lines that have what was asked for last.
  struct Finds {
    LinePattern pattern;
    QString key;                     ///< of the pattern; empty: nothing is lit
    std::vector<std::int32_t> rows;  ///< of the outline, so far
    std::int32_t next = 0;
    int timer = 0;
  };
  void recountFinds();
  void countFinds();
  void tellFinds();
  Finds finds_;
};

}  // namespace retrograd::views
