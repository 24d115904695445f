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
  int columnCount(const QModelIndex& = {}) const override { return 2; }
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 protected:
  /// Shows what is below `root` instead of what is there.
  void replace(std::unique_ptr<Node> root);

 private:
  const Node* nodeOf(const QModelIndex& index) const;

  std::unique_ptr<Node> root_;
};

/// Where a row of a flat tree is: the row that holds it, or -1, and its place there.
struct TreePlace {
  int parent = -1, place = 0;
  std::vector<int> parts{};
};

/// Rows of a tree one after the other, each after the one that holds it. A Row is a TreePlace.
template <class Row>
struct FlatTree {
  std::vector<Row> all;
  TreePlace root;  ///< holds those that no other row holds

  /// As the last one that `parent` holds; returns its number.
  int add(int parent, Row row) {
    const auto number = static_cast<int>(all.size());
    auto& siblings = (parent < 0 ? root : static_cast<TreePlace&>(all[parent])).parts;
    row.parent = parent;
    row.place = static_cast<int>(siblings.size());
    siblings.push_back(number);
    all.push_back(std::move(row));
    return number;
  }
  /// The root for -1.
  const TreePlace& placeOf(int row) const { return row < 0 ? root : all[row]; }
};

/// A flat tree for views; the id of an index is the number of its row.
class FlatTreeModel : public QAbstractItemModel {
 public:
  using QAbstractItemModel::QAbstractItemModel;

  /// -1 for an invalid index. Of an index of this model, not of one that sorts it (ofModel()).
  static int rowOf(const QModelIndex& index) { return index.isValid() ? static_cast<int>(index.internalId()) : -1; }
  QModelIndex indexOf(int row) const { return createIndex(placeOf(row).place, 0, static_cast<quintptr>(row)); }

  QModelIndex index(int row, int column, const QModelIndex& parent = {}) const final {
    return hasIndex(row, column, parent)
               ? createIndex(row, column, static_cast<quintptr>(placeOf(rowOf(parent)).parts[row]))
               : QModelIndex();
  }
  QModelIndex parent(const QModelIndex& child) const final {
    const int parent = child.isValid() ? placeOf(rowOf(child)).parent : -1;
    return parent < 0 ? QModelIndex() : indexOf(parent);
  }
  int rowCount(const QModelIndex& parent = {}) const final {
    return parent.column() > 0 ? 0 : static_cast<int>(placeOf(rowOf(parent)).parts.size());
  }

 protected:
  /// As FlatTree::placeOf().
  virtual const TreePlace& placeOf(int row) const = 0;
};

}  // namespace retrograd::views
