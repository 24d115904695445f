#pragma once
#include <functional>
#include <memory>
#include <set>

#include "core/questions/memory/address_layout.h"
#include "core/questions/memory/memory_stack.h"
#include "views/canvases/scrolled_canvas.h"

namespace retrograd::views {

/// What an address map shows: where everything is at a moment.
struct AddressPicture {
  AddressLayout layout;
  std::shared_ptr<const MemoryStack> stack;  ///< whose bands have the colours
  std::vector<std::uint32_t> bands;          ///< of each piece; of free ones without meaning
  std::optional<std::size_t> largest;        ///< piece: the most that a request of this moment could have
  std::uint64_t wanted = 0;                  ///< bytes that the request which failed then asked for
};

/// A device's memory by address: a row for each segment, as wide as the view whatever the segment's size, with its
/// blocks in the colours of their groups and free memory between them. Arrows go from piece to piece and from row to
/// row, Home and End to the ends of a row, L to the largest free piece; Enter leads to what made a block. Ctrl+wheel, +
/// and - zoom, 0 shows whole rows.
class AddressMapView : public ScrolledCanvas {
  Q_OBJECT

 public:
  static constexpr int none = -1;
  using Words = std::function<QString(std::size_t piece)>;

  explicit AddressMapView(Theme* theme, QWidget* parent = nullptr);

  /// `words`: what there is to say of a piece.
  void set(AddressPicture picture, Words words);
  void setHint(const QString& hint);
  const AddressPicture& picture() const { return picture_; }
  /// The chosen piece.
  int current() const { return current_; }
  void setCurrent(int piece);
  /// Underlines the blocks of these allocations.
  void setMarked(std::set<std::int32_t> allocations);
  int pieceOf(std::int32_t allocation) const;
  QRectF pieceRect(int piece) const;
  int pieceAt(const QPointF& point) const;

  QSize sizeHint() const override { return {300, 160}; }

 Q_SIGNALS:
  /// A person chose a piece.
  void chosen(int piece);
  void activated(int piece);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool viewportEvent(QEvent* event) override;

 private:
  int rowHeight() const { return fontMetrics().height() + 4; }
  int rowStep() const { return rowHeight() + 4; }
  int labelWidth() const;
  int freeWidth() const;
  double plotWidth() const;
  int rowOf(int piece) const;
  int y(int row) const;
  double x(const LaidOutSegment& segment, std::uint64_t address) const;
  void placeBars();
  void zoomBy(double factor, double at);
  void pick(int piece);
  /// The piece of another row that is below or above the chosen one.
  int pieceInRow(int row) const;
  void reveal(int piece);
  void paintRow(QPainter& painter, int row) const;
  void paintPiece(QPainter& painter, int piece) const;

  AddressPicture picture_;
  Words words_;
  QString hint_;
  std::set<std::int32_t> marked_;
  int current_ = none;
  double zoom_ = 1;
};

}  // namespace retrograd::views
