#pragma once
#include "views/models/tree_model.h"
#include "views/session/document_controller.h"
#include "views/session/own_names.h"

namespace retrograd::views {

/// All that is known of one op without running it, section by section.
class InspectorModel : public TreeModel {
  Q_OBJECT

 public:
  using TreeModel::TreeModel;

  /// Shows an op, its values under the names that `notes` (may be null) has for them; a null document or an invalid op
  /// shows nothing.
  void show(std::shared_ptr<const OpenDocument> document, BoundSymbolId op, const NoteBook* notes = nullptr);

 private:
  class Filler;
};

}  // namespace retrograd::views
