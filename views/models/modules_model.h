#pragma once
#include <QAbstractItemModel>
#include <memory>

#include "views/session/document_controller.h"

namespace retrograd::views {

/// The model's modules as a tree, with the number of forward and backward ops below each.
class ModulesModel : public QAbstractItemModel {
  Q_OBJECT

 public:
  explicit ModulesModel(QObject* parent = nullptr);
  ~ModulesModel() override;

  void setDocument(const std::shared_ptr<const OpenDocument>& document);
  /// The row of a module path ("layers.0"); invalid when there is none.
  QModelIndex find(const QString& path) const;
  QString path(const QModelIndex& index) const;

  QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
  QModelIndex parent(const QModelIndex& child) const override;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  /// opRole: the first op of the computation in the module.
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  struct Node;

  const Node* nodeOf(const QModelIndex& index) const;
  void count(const OpenDocument& document);

  std::unique_ptr<Node> root_;
};

}  // namespace retrograd::views
