#pragma once
// The elements of a tensor as a table.
#include <QAbstractTableModel>
#include <QColor>
#include <vector>

#include "core/trace/tensor_data.h"
#include "views/text/elements.h"

namespace retrograd::views {

/// The last two dims of a tensor at chosen leading indices. Reads elements as the view asks for them, so size costs
/// nothing; at most `most` rows and columns are shown.
class SliceModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  static constexpr std::int64_t most = 100000;

  using QAbstractTableModel::QAbstractTableModel;

  /// Contiguous data on the CPU; null data shows nothing. The leading indices start at 0.
  void setData(TensorData data);
  const TensorData& contents() const { return data_; }
  /// Sizes of the dims before the last two.
  std::vector<std::int64_t> leadingSizes() const;
  void setLeading(std::size_t dim, std::int64_t index);
  const std::vector<std::int64_t>& leading() const { return leading_; }
  /// Of NaN and infinities.
  void setBadColor(const QColor& color) { badColor_ = color; }
  /// The element at a row and a column, as elementNumber().
  double number(int row, int column) const { return elementNumber(data_, elementAt(row, column)); }

  using QAbstractTableModel::setData;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::int64_t rows() const;
  std::int64_t columns() const { return data_.meta.sizes.empty() ? 1 : data_.meta.sizes.back(); }
  std::int64_t elementAt(int row, int column) const;

  TensorData data_;
  std::vector<std::int64_t> leading_;
  QColor badColor_;
};

}  // namespace retrograd::views
