#pragma once
#include <QAbstractItemModel>
#include <memory>
#include <vector>

#include "views/session/document_controller.h"

namespace retrograd::views {

/// Roles of the item models here, besides Qt's.
enum ItemRole {
  opRole = Qt::UserRole + 1,  ///< int: BoundSymbolId a row stands for or leads to; -1 none
  valueRole,                  ///< int: ValueId
};

/// All that is known of one op without running it, as a tree of sections with two columns: what, and how it is.
class InspectorModel : public QAbstractItemModel {
  Q_OBJECT

 public:
  explicit InspectorModel(QObject* parent = nullptr);
  ~InspectorModel() override;

  /// Shows an op; a null document or an invalid op shows nothing.
  void show(std::shared_ptr<const OpenDocument> document, BoundSymbolId op);

  QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
  QModelIndex parent(const QModelIndex& child) const override;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  struct Node;
  class Filler;

  const Node* nodeOf(const QModelIndex& index) const;

  std::unique_ptr<Node> root_;
};

}  // namespace retrograd::views
