#pragma once
#include "views/models/tree_model.h"
#include "views/session/own_names.h"
#include "views/session/why_report.h"

namespace retrograd::views {

/// Why values are saved and why they have no gradient, with links to the ops that are the reason.
class WhyModel : public TreeModel {
  Q_OBJECT

 public:
  using TreeModel::TreeModel;

  /// A null document shows nothing; `notes` (may be null) has the names that people gave.
  void show(const std::shared_ptr<const OpenDocument>& document, const WhyReport& report,
            const NoteBook* notes = nullptr);

  /// "linear_6 is saved, 16 KiB: read by the backward of gelu_1, 43 ops later": what is known of the value in one line.
  static QString sentenceOf(const OpenDocument& document, const WhyValue& value, const NoteBook* notes);

 private:
  class Filler;
};

}  // namespace retrograd::views
