#pragma once
#include <QAbstractItemModel>
#include <memory>
#include <vector>

#include "core/questions/parameter_tree.h"
#include "views/numbers/gradient_flow_chart.h"
#include "views/text/run_numbers.h"

namespace retrograd::views {

/// The parameters of a computation by layer, with the norms of value and gradient and their ratio. The norm of a module is that of all its parameters
/// together. Texts are made when they are shown: a model may have 100,000 parameters.
class GradientFlowModel : public QAbstractItemModel {
  Q_OBJECT

 public:
  enum Column { name, value, gradient, ratio, bad, columns };

  /// A module or a parameter.
  struct Row {
    QString label, path;
    ValueId parameter, gradient;  ///< none for a module; no gradient: frozen, or no output depends on it
    bool isLayer = false;         ///< or something in one: not opened by itself
    int parent = -1, place = 0;   ///< the row that holds it, and its place there
    std::vector<int> parts;
    GradientFlowChart::Bar numbers;
    std::int64_t bad = 0;  ///< NaN and Inf in its gradients
  };

  using QAbstractItemModel::QAbstractItemModel;

  /// Null shows nothing. The numbers come with measure().
  void show(std::shared_ptr<const Analysis> analysis);
  /// Takes the numbers of all rows from the run.
  void measure(const RunNumbers& numbers);

  /// What holds others comes before them.
  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<int>& top() const { return top_; }
  QModelIndex indexOf(int row) const;
  /// -1 for an index that is none of this model.
  static int rowOf(const QModelIndex& index) { return index.isValid() ? static_cast<int>(index.internalId()) : -1; }

  QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
  QModelIndex parent(const QModelIndex& index) const override;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& = {}) const override { return columns; }
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  void add(const ParameterTree& tree, const std::vector<ValueId>& gradients, int parent);
  const std::vector<int>& partsOf(const QModelIndex& parent) const;
  QString textOf(const Row& row, int column) const;

  std::shared_ptr<const Analysis> analysis_;
  std::vector<Row> rows_;
  std::vector<int> top_;  ///< rows that no other holds
};

}  // namespace retrograd::views
