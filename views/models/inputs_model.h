#pragma once

#include "views/models/table_model.h"
#include "views/session/document_controller.h"

namespace retrograd::views {

/// The user inputs of the computation, with a check mark for those to differentiate.
class InputsModel : public TableModel {
  Q_OBJECT

 public:
  enum Column { inputName, dtype, shape, source, gradient, columns };

  explicit InputsModel(const OpenDocument& document, QObject* parent = nullptr);

  /// Absent when all that can be differentiated are checked, as DerivationRequest::gradInputs.
  std::optional<std::vector<std::string>> gradInputs() const;

  QVariant data(const QModelIndex& index, int role) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;

 private:
  std::size_t rows() const override { return rows_.size(); }
  struct Row {
    QString name, dtype, shape, source;
    bool differentiable = false, checked = false;
  };
  std::vector<Row> rows_;
};

}  // namespace retrograd::views
