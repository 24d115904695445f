#pragma once
#include <memory>

#include "views/models/table_model.h"
#include "views/session/document_controller.h"

namespace retrograd::views {

/// Losses of the file, ops that could not be derived, failures while running: worst first.
class ProblemsModel : public TableModel {
  Q_OBJECT

 public:
  enum Column { severity, place, problem, columns };
  explicit ProblemsModel(QObject* parent = nullptr);

  void setDocument(const std::shared_ptr<const OpenDocument>& document);
  /// A problem of the run, kept until the next one or until it runs on; an empty message takes it away.
  void setRunProblem(const QString& message, BoundSymbolId op);

  QVariant data(const QModelIndex& index, int role) const override;

 private:
  std::size_t rows() const override { return problems_.size(); }
  std::vector<Problem> problems_;
  bool hasRunProblem_ = false;
};

}  // namespace retrograd::views
