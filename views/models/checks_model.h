#pragma once
#include "core/questions/accumulation.h"
#include "core/torch/experiments/grad_check.h"
#include "views/models/tree_model.h"
#include "views/session/document_controller.h"
#include "views/session/own_names.h"

namespace retrograd::views {

/// What checks of gradients found: the gradient of a range of ops against finite differences and LibTorch, or how a
/// gradient was summed up.
class ChecksModel : public TreeModel {
  Q_OBJECT

 public:
  using TreeModel::TreeModel;

  void clear() { replace(std::make_unique<Node>()); }
  void show(const OpenDocument& document, const std::vector<BoundSymbolId>& ops, const GradientCheck& check);
  /// The sum, and below it each gradient that went into it, with its norm and the op it comes from.
  void show(const OpenDocument& document, const GradientTerms& terms, const NoteBook* notes = nullptr);
};

/// "linear to relu_2 (3 ops)".
QString rangeText(const Document& document, const std::vector<BoundSymbolId>& ops);

}  // namespace retrograd::views
