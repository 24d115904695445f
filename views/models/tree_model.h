#pragma once
#include <QAbstractItemModel>
#include <memory>
#include <vector>

#include "core/base/ids.h"

namespace retrograd::views {

/// Roles of the item models here, besides Qt's.
enum ItemRole {
  opRole = Qt::UserRole + 1,  ///< int: BoundSymbolId a row represents or leads to; -1 none
  valueRole,                  ///< int: ValueId
  moduleRole,                 ///< QString: path of the module a row represents
  frameRole,                  ///< int: frame of the op's source, from the innermost; -1 none
  sortRole,                   ///< double: what a cell is sorted by, where its text says a number; NaN where it has none
  oneLineRole,                ///< bool: the row stays in one line in a tree that wraps words
  shareRole,                  ///< double: how long the bar behind a cell's number is, from 0 to 1; none without a bar
};

/// A tree of sections with two columns: what, and how it is. A row may lead to an op or stand for a value.
class TreeModel : public QAbstractItemModel {
  Q_OBJECT

 public:
  struct Node {
    QString label, text, tip;
    QString module;  ///< path of the module that the row names
    int frame = -1;  ///< of the op's source, from the innermost, that the row names
    BoundSymbolId op;
    ValueId value;
    bool oneLine = false;  ///< in a tree that wraps words; those added below begin so too
    Node* parent = nullptr;
    int row = 0;
    std::vector<std::unique_ptr<Node>> children;

    Node* add(const QString& childLabel, const QString& childText = {});
  };

  explicit TreeModel(QObject* parent = nullptr);
  ~TreeModel() override;

  QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
  QModelIndex parent(const QModelIndex& child) const override;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 protected:
  /// Shows what is below `root` instead of what is there.
  void replace(std::unique_ptr<Node> root);

 private:
  const Node* nodeOf(const QModelIndex& index) const;

  std::unique_ptr<Node> root_;
};

}  // namespace retrograd::views
