#pragma once
#include <QHash>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/questions/update_numbers.h"
#include "views/models/tree_model.h"
#include "views/session/document_controller.h"

namespace retrograd::views {

/// The model's modules as a table of heat: time, memory, saved bytes, norms of gradient and update, NaN and Inf, and
/// ops, each with all that is below. The run's numbers come with measure(), those of an optimizer with setUpdates().
class ModulesModel : public FlatTreeModel {
  Q_OBJECT

 public:
  /// In the order in which they have to be seen: a narrow panel shows the first ones.
  enum Column { name, time, memory, saved, gradient, update, bad, ops, columns };

  struct Module : TreePlace {
    QString name, path;
    qint64 forward = 0, backward = 0, saved = 0;
    qint64 memory = 0;                                         ///< of its results, when the run's memory is highest
    std::optional<double> seconds, gradientNorm, badElements;  ///< nullopt: not known yet, or there is none
    std::optional<double> update;                              ///< its norm over that of the parameters; as above
    BoundSymbolId first;                                       ///< op of the computation
  };
  struct Modules : FlatTree<Module> {
    QHash<QString, int> byPath;                      ///< "layers.0"
    std::vector<std::pair<BoundSymbolId, int>> ops;  ///< what runs, and the module that it is directly in
    std::vector<std::pair<ValueId, int>> gradients;  ///< of parameters, and the module that has the parameter
  };

  using FlatTreeModel::FlatTreeModel;

  /// For any thread: it looks at all ops.
  static Modules modulesOf(const OpenDocument& document);
  void show(Modules modules);
  /// The numbers of the run as far as it is known.
  void measure(const RunNumbers& numbers);
  /// By parameter, as Engine::lastUpdates().
  void setUpdates(const std::map<std::string, UpdateNumbers>& updates);

  /// The row of a module path ("layers.0"); invalid when there is none.
  QModelIndex find(const QString& path) const;
  /// Texts than which none of the column is wider, for its width.
  QStringList widest(Column column) const;

  int columnCount(const QModelIndex& = {}) const override { return columns; }
  /// opRole: the first op of the computation in the module; shareRole: of what the modules at the top have.
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  const TreePlace& placeOf(int row) const override { return modules_.placeOf(row); }
  std::optional<double> numberOf(const Module& module, int column) const;
  /// A number of bytes among them is "1010 KiB".
  bool hasFourDigits(Column column) const;
  void findMost(std::initializer_list<int> among);
  QString textOf(const Module& module, int column) const;

  Modules modules_;
  std::vector<double> most_ = std::vector<double>(columns, 0);  ///< of a column, over all modules
};

}  // namespace retrograd::views
