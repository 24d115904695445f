#include "views/models/slice_model.h"

#include <cmath>

namespace retrograd::views {

void SliceModel::setData(TensorData data) {
  beginResetModel();
  data_ = std::move(data);
  leading_.assign(leadingSizes().size(), 0);
  endResetModel();
}

std::vector<std::int64_t> SliceModel::leadingSizes() const {
  const auto& sizes = data_.meta.sizes;
  return sizes.size() <= 2 ? std::vector<std::int64_t>() : std::vector<std::int64_t>(sizes.begin(), sizes.end() - 2);
}

void SliceModel::setLeading(std::size_t dim, std::int64_t index) {
  leading_[dim] = index;
  if (rowCount() > 0 && columnCount() > 0)
    Q_EMIT dataChanged(this->index(0, 0), this->index(rowCount() - 1, columnCount() - 1));
}

std::int64_t SliceModel::rows() const {
  const auto& sizes = data_.meta.sizes;
  return sizes.size() < 2 ? 1 : sizes[sizes.size() - 2];
}

int SliceModel::rowCount(const QModelIndex& parent) const {
  if (parent.isValid() || !data_.data || data_.meta.elements() == 0) return 0;
  return static_cast<int>(std::min(rows(), most));
}

int SliceModel::columnCount(const QModelIndex& parent) const {
  if (parent.isValid() || !data_.data || data_.meta.elements() == 0) return 0;
  return static_cast<int>(std::min(columns(), most));
}

QVariant SliceModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  if (role == Qt::ForegroundRole)
    return badColor_.isValid() && !std::isfinite(number(index.row(), index.column())) ? QVariant(badColor_)
                                                                                      : QVariant();
  if (role != Qt::DisplayRole) return {};
  return elementText(data_, elementAt(index.row(), index.column()));
}

std::int64_t SliceModel::elementAt(int row, int column) const {
  std::int64_t element = 0;
  for (std::size_t i = 0; i < leading_.size(); ++i) element = element * data_.meta.sizes[i] + leading_[i];
  return (element * rows() + row) * columns() + column;
}

QVariant SliceModel::headerData(int section, Qt::Orientation, int role) const {
  return role == Qt::DisplayRole ? QVariant(section) : QVariant();
}

}  // namespace retrograd::views
