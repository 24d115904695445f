#pragma once
#include <QAbstractTableModel>
#include <memory>

#include "views/session/document_controller.h"

namespace retrograd::views {

/// Losses of the file, ops that could not be derived, failures while running: worst first.
class ProblemsModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  using QAbstractTableModel::QAbstractTableModel;

  void setDocument(const std::shared_ptr<const OpenDocument>& document);
  /// A problem of the run, kept until the next one or until it runs on; an empty message takes it away.
  void setRunProblem(const QString& message, BoundSymbolId op);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::vector<Problem> problems_;
  bool hasRunProblem_ = false;
};

}  // namespace retrograd::views
