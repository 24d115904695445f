#pragma once
#include "views/findings/finding_board.h"
#include "views/models/table_model.h"

namespace retrograd::views {

/// All findings of a document, a row each: how severe, the sentence, its line of Python, and what to do next.
class FindingsModel : public TableModel {
  Q_OBJECT

 public:
  enum Column { severity, what, line, action, columns };
  static constexpr int lightRole = Qt::UserRole + 20;  ///< Light

  explicit FindingsModel(QObject* parent = nullptr);

  /// `titleOf`: how a command of a claim reads.
  void show(std::vector<FindingBoard::Entry> entries, const std::shared_ptr<const OpenDocument>& document,
            const std::function<QString(const Claim&)>& titleOf);
  const Claim& claim(int row) const { return rows_[row].claim; }

  /// opRole, valueRole: where the finding is.
  QVariant data(const QModelIndex& index, int role) const override;

 private:
  std::size_t rows() const override { return rows_.size(); }
  struct Row {
    Claim claim;
    QString line, action;
  };
  std::vector<Row> rows_;
};

}  // namespace retrograd::views
