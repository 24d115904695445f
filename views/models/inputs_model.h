#pragma once
#include <QAbstractTableModel>
#include <set>

#include "views/session/document_controller.h"

namespace retrograd::views {

/// The user inputs of the computation, with a check mark for those to differentiate.
class InputsModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { inputName, dtype, shape, source, gradient, columns };

  explicit InputsModel(const OpenDocument& document, QObject* parent = nullptr);

  /// Absent when all that can be differentiated are checked, as DerivationRequest::gradInputs.
  std::optional<std::vector<std::string>> gradInputs() const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  struct Row {
    QString name, dtype, shape, source;
    bool differentiable = false, checked = false;
  };
  std::vector<Row> rows_;
};

}  // namespace retrograd::views
