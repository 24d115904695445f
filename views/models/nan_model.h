#pragma once
#include "core/questions/nan_walk.h"
#include "views/models/tree_model.h"
#include "views/session/document_controller.h"
#include "views/session/own_names.h"

namespace retrograd::views {

/// The way from a bad value to its root: the root with what explains it first, then each value on the way.
class NanModel : public TreeModel {
  Q_OBJECT

 public:
  using TreeModel::TreeModel;

  /// A null document or a way without steps shows nothing.
  void show(const std::shared_ptr<const OpenDocument>& document, const NanWalk& walk, const NoteBook* notes = nullptr);
};

/// Records a whole run on the worker, with what the user filled in, and walks: from `value`, or where it is invalid
/// from a bad result or gradient, else from the first bad value of all. The way is empty where every value is finite.
/// Throws as recordRun() and walkToRoot().
NanWalk walkNan(const QuestionContext& context, ValueId value, const Progress& progress);

}  // namespace retrograd::views
