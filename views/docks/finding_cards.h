#pragma once
#include <QListView>
#include <QStyledItemDelegate>

#include "views/theme/theme.h"

namespace retrograd::views {

/// Findings as cards, one below the other: mark and sentence, the line of Python below, the action as a link.
class FindingCards : public QListView {
  Q_OBJECT

 public:
  FindingCards(Theme* theme, QAbstractItemModel* model, QWidget* parent = nullptr);

 Q_SIGNALS:
  /// A click on the card.
  void led(const QModelIndex& card);
  /// A click on its action, or Enter.
  void acted(const QModelIndex& card);

 protected:
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  bool isOnAction(const QModelIndex& card, const QPoint& at) const;
};

}  // namespace retrograd::views
