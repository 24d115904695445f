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
  /// `element`: what elementAtRoot() says.
  void show(const std::shared_ptr<const OpenDocument>& document, const NanWalk& walk, const NoteBook* notes = nullptr,
            const QString& element = {});
};

/// What the walk found, in a sentence: the root, its element, why, and its line of Python.
QString rootText(const Document& document, const NanWalk& walk, const NoteBook* notes, const QString& element);

/// Records a whole run on the worker, with what the user filled in, and walks: from `value`, or where it is invalid
/// from a bad result or gradient, else from the first bad value of all. The way is empty where every value is finite.
/// Throws as recordRun() and walkToRoot().
NanWalk walkNan(const QuestionContext& context, ValueId value, const Progress& progress);

/// The first bad element of what the root made, with what its operands held there: "0 / 0 = nan at [2]". Where operands
/// have no element at the same place, as in a product of matrices, the index alone. Runs to the root, on the worker;
/// empty where nothing can be run.
QString elementAtRoot(const QuestionContext& context, const NanWalk& walk, const Progress& progress);

}  // namespace retrograd::views
