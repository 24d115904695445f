#pragma once
#include <QAbstractListModel>
#include <QAction>
#include <QPointer>
#include <vector>

#include "views/text/goto_index.h"

namespace retrograd::views {

/// What a quick-open list shows: places of a document, or commands with their keys. A command that is disabled says
/// why.
class GotoModel : public QAbstractListModel {
  Q_OBJECT

 public:
  static constexpr int detailRole = Qt::UserRole + 1;  ///< what is at the right, dimmed

  using QAbstractListModel::QAbstractListModel;

  void showPlaces(std::vector<Place> places);
  void showCommands(const QList<QAction*>& commands);
  /// Null or empty where the row is of the other kind.
  QAction* command(int row) const;
  const Place* place(int row) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;

 private:
  std::vector<Place> places_;
  std::vector<QPointer<QAction>> commands_;
};

/// The text of a command without mnemonics and dots: "Run to Cursor".
QString commandText(const QAction& action);

}  // namespace retrograd::views
