#pragma once
#include <QStandardItemModel>

#include "core/torch/opinion/second_opinion.h"
#include "views/models/tree_model.h"

namespace retrograd::views {

/// A second opinion as rows: each gradient that differs with the op and the line of Python that it comes from, how much
/// was compared, and notes on what was not. A row leads to an op of the listing (opRole), or to a line of the job's own
/// backward (lineRole).
class OpinionModel : public QStandardItemModel {
  Q_OBJECT

 public:
  enum Column { what, detail, columnCount };
  enum Role { lineRole = Qt::UserRole + 60 };  ///< int, from 1

  explicit OpinionModel(QObject* parent = nullptr);

  /// `places`: for each finding the op of the listing, or none.
  void show(const SecondOpinion& opinion, const std::vector<BoundSymbolId>& places);
};

/// "✗ 0/0: the job's backward differs from the derived one in 1 gradient".
QString verdictText(const SecondOpinion& opinion);

}  // namespace retrograd::views
