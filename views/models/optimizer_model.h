#pragma once
#include <map>
#include <memory>
#include <string>

#include "core/questions/update_numbers.h"
#include "views/models/tree_model.h"
#include "views/session/open_document.h"
#include "views/text/run_numbers.h"

namespace retrograd::views {

/// What the optimizers of a recorded step did, folded by parameter: its value, its gradient, what the optimizer keeps
/// of it, the update and its ops.
class OptimizerModel : public TreeModel {
  Q_OBJECT

 public:
  using Updates = std::map<std::string, UpdateNumbers>;

  using TreeModel::TreeModel;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  /// Norms are of `numbers`, as far as they are known; `updates` by parameter.
  void show(const std::shared_ptr<const OpenDocument>& document, const RunNumbers& numbers, const Updates& updates);
};

}  // namespace retrograd::views
