#pragma once
#include <QAbstractTableModel>
#include <memory>
#include <set>

#include "views/session/document_controller.h"

namespace retrograd::views {

/// The breakpoints in order of execution.
class BreakpointsModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  using QAbstractTableModel::QAbstractTableModel;

  void set(std::shared_ptr<const OpenDocument> document, const std::set<BoundSymbolId>& breakpoints);
  BoundSymbolId opAt(int row) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::shared_ptr<const OpenDocument> document_;
  std::vector<std::size_t> positions_;
};

}  // namespace retrograd::views
