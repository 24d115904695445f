#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/derivation/analysis.h"
#include "core/questions/update_numbers.h"
#include "views/models/tree_model.h"
#include "views/numbers/gradient_flow_chart.h"
#include "views/text/run_numbers.h"

namespace retrograd::views {

/// The parameters of a computation by layer, with the norms of value and gradient and their ratio. The norm of a module
/// is that of all its parameters together. Texts are made when they are shown: a model may have 100,000 parameters.
class GradientFlowModel : public FlatTreeModel {
  Q_OBJECT

 public:
  /// clip, update and change: of a recorded step's last update.
  enum Column { name, value, gradient, ratio, bad, clip, update, change, columns };

  /// A module or a parameter.
  struct Row : TreePlace {
    QString label, path;
    ValueId parameter, gradient;  ///< none for a module; no gradient: frozen, or no output depends on it
    bool isLayer = false;         ///< or something in one: not opened by itself
    GradientFlowChart::Bar numbers;
    std::int64_t bad = 0;    ///< NaN and Inf in its gradients
    UpdateNumbers updated;   ///< of a module: norm and ratio of all its parameters
    bool isOpen = false;     ///< the view shows its parts
    bool wasOpened = false;  ///< at any time, so that who sorts them wants to hear of their numbers
  };
  using Rows = FlatTree<Row>;

  using FlatTreeModel::FlatTreeModel;

  /// The rows of an analysis, all closed and without numbers. For any thread: it looks at the whole trace.
  static Rows rowsOf(const Analysis& analysis);

  /// Takes rowsOf() the analysis. The numbers come with measure().
  void show(std::shared_ptr<const Analysis> analysis, Rows rows);
  void clear() { show(nullptr, {}); }
  /// Takes the numbers of all rows from the run.
  void measure(const RunNumbers& numbers);
  /// Takes what the optimizer did, by parameter.
  void setUpdates(const std::map<std::string, UpdateNumbers>& updates);
  /// The view shows the parts of this row from now on, or no longer.
  void setOpen(int row, bool isOpen);

  const std::vector<Row>& rows() const { return rows_.all; }
  const std::vector<int>& top() const { return rows_.root.parts; }

  int columnCount(const QModelIndex& = {}) const override { return columns; }
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  const TreePlace& placeOf(int row) const override { return rows_.placeOf(row); }
  QString textOf(const Row& row, int column) const;
  static std::optional<double> updateNumber(const Row& row, int column);
  void announce();

  std::shared_ptr<const Analysis> analysis_;
  Rows rows_;
};

}  // namespace retrograd::views
