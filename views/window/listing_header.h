#pragma once
#include <QWidget>

#include "views/canvases/listing_view.h"

namespace retrograd::views {

/// The titles of a listing's columns, above them. People size a column by its left border, give it back to the code by
/// a double click there, and choose columns from the context menu. The commands of View > Columns do the same by
/// keyboard.
class ListingHeader : public QWidget {
  Q_OBJECT

 public:
  ListingHeader(ListingView* listing, Theme* theme, QWidget* parent = nullptr);

  /// The column whose left border is at x, in pixels of the header; nullopt where none is.
  std::optional<TextColumn> borderAt(int x) const;
  /// Where its title is; empty while the column is not shown.
  QRect rectOf(TextColumn column) const;
  /// Titles of columns that have no room.
  QStringList without() const;

  QSize sizeHint() const override { return {100, fontMetrics().height() + 4}; }

 Q_SIGNALS:
  /// 0: as wide as the code leaves room for.
  void widthChosen(retrograd::views::TextColumn column, int characters);
  void menuRequested(const QPoint& at);

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent*) override { dragged_.reset(); }
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;

 private:
  int shift() const { return listing_->viewport()->mapTo(listing_, QPoint()).x(); }
  QRect numbersRect() const;
  void describe();

  ListingView* listing_;
  Theme* theme_;
  std::optional<TextColumn> dragged_;
};

}  // namespace retrograd::views
