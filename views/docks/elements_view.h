#pragma once
#include <QBoxLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QSpinBox>
#include <QStackedWidget>
#include <QTableView>
#include <QWidget>

#include "views/canvases/histogram_view.h"
#include "views/canvases/image_view.h"
#include "views/models/slice_model.h"
#include "views/session/value_report.h"

namespace retrograd::views {

/// The elements of one value: histogram, and a slice as a table or as a picture.
class ElementsView : public QWidget {
  Q_OBJECT

 public:
  /// `name` is for the widgets' object names: "contents" for the table, "image" for the picture, of the first.
  ElementsView(Theme* theme, const QString& name, QWidget* parent = nullptr);

  /// `title`: what is above. Nothing but the title shows where there are no contents.
  void show(const QString& title, const ValueDetail& detail);
  void clear(const QString& reason);
  void setPicture(bool on);
  /// Elements at the right of the histogram, where there is more width than height, else below it.
  void setWide(bool on);
  /// The indices before the last two dims; ignored where they do not fit.
  void setLeading(const std::vector<std::int64_t>& indices);
  /// What is shown; null data where nothing is.
  const TensorData& contents() const { return slice_->contents(); }
  const TensorStatistics& statistics() const { return statistics_; }
  /// Shows the element, with the cursor on it, and gives table or picture the keyboard; false where it is beyond what
  /// they show.
  bool goTo(const std::vector<std::int64_t>& index);
  /// For the context menu of the elements.
  void addElementActions(const QList<QAction*>& actions);

 Q_SIGNALS:
  void leadingChanged(const std::vector<std::int64_t>& indices);

 private:
  void makeTable(const QString& name);
  /// As many boxes as there are leading dims, with their ranges and indices.
  void refreshIndices();
  QSpinBox* makeIndex(std::size_t dim);

  QBoxLayout* parts_;  ///< histogram, elements
  QLabel* title_;
  QLabel* badPlaces_;  ///< where NaN and infinities are; hidden where there are none
  HistogramView* histogram_;
  SliceModel* slice_;
  QTableView* table_;
  ImageView* image_;
  TensorStatistics statistics_;
  QStackedWidget* stack_;
  QWidget* leading_;
  QHBoxLayout* leadingLine_;
  std::vector<QSpinBox*> indices_;  ///< one for each leading dim; they stay while one steps, and so does the focus
};

}  // namespace retrograd::views
