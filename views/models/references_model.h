#pragma once
#include "core/questions/references.h"
#include "views/models/tree_model.h"
#include "views/session/document_controller.h"
#include "views/session/own_names.h"

namespace retrograd::views {

/// A value with the places that have to do with it.
struct ValueReferences {
  ValueId value;
  std::vector<ValueReference> references;
};

/// Cross references: a section a value, in it what makes, reads and saves it, its gradient and what it is a gradient
/// of; each row leads to its op.
class ReferencesModel : public TreeModel {
  Q_OBJECT

 public:
  using TreeModel::TreeModel;

  /// A null document shows nothing; `notes` (may be null) has the names that people gave.
  void show(const std::shared_ptr<const OpenDocument>& document, const std::vector<ValueReferences>& values,
            const NoteBook* notes = nullptr);
};

}  // namespace retrograd::views
