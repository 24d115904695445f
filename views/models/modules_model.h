#pragma once
#include <QAbstractItemModel>
#include <QHash>
#include <vector>

#include "views/session/document_controller.h"

namespace retrograd::views {

/// The model's modules as a tree, with the number of forward and backward ops below each.
class ModulesModel : public QAbstractItemModel {
  Q_OBJECT

 public:
  enum Column { name, forward, backward, columns };

  struct Module {
    QString name, path;
    int parent = -1, place = 0;  ///< the module that holds it, and its place there
    qint64 forward = 0, backward = 0;
    BoundSymbolId first;  ///< op of the computation
    std::vector<int> parts;
  };
  struct Modules {
    std::vector<Module> all;
    std::vector<int> top;        ///< those that no other holds
    QHash<QString, int> byPath;  ///< "layers.0"
  };

  using QAbstractItemModel::QAbstractItemModel;

  /// For any thread: it looks at all ops.
  static Modules modulesOf(const OpenDocument& document);
  void show(Modules modules);

  /// The row of a module path ("layers.0"); invalid when there is none.
  QModelIndex find(const QString& path) const;
  /// The greatest number of a column.
  qint64 most(Column column) const;

  QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
  QModelIndex parent(const QModelIndex& child) const override;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& = {}) const override { return columns; }
  /// opRole: the first op of the computation in the module.
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  const Module& moduleOf(const QModelIndex& index) const { return modules_.all[index.internalId()]; }
  const std::vector<int>& partsOf(const QModelIndex& parent) const {
    return parent.isValid() ? moduleOf(parent).parts : modules_.top;
  }

  Modules modules_;
};

}  // namespace retrograd::views
