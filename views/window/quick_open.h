#pragma once
#include <QFrame>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <functional>

#include "views/engine/pool_job.h"
#include "views/models/goto_model.h"
#include "views/session/view_context.h"

namespace retrograd::views {

/// A line to type into over the window and a list of what matches: places of the document (go to), or behind ">" the
/// commands (palette). Enter goes there, Escape or a click elsewhere closes.
class QuickOpen : public QFrame {
  Q_OBJECT

 public:
  /// `commands` is asked each time the palette opens.
  QuickOpen(ViewContext context, std::function<QList<QAction*>()> commands, QWidget* window);

  void openPlaces() { open({}); }
  void openCommands() { open(QStringLiteral(">")); }
  QLineEdit& line() { return *line_; }
  QListView& list() { return *list_; }

 Q_SIGNALS:
  void placeChosen(retrograd::BoundSymbolId op, retrograd::ValueId value);
  /// A command was chosen that is disabled.
  void refused(const QString& reason);

 protected:
  bool eventFilter(QObject* object, QEvent* event) override;

 private:
  void open(const QString& text);
  void search();
  void searchPlaces(const QString& query);
  void showCommands(const QString& query);
  void found(std::vector<Place> places);
  void selectFirst();
  void choose();
  void place();

  ViewContext context_;
  std::function<QList<QAction*>()> commands_;
  QLineEdit* line_;
  QListView* list_;
  QLabel* none_ = nullptr;  ///< says that nothing fits
  GotoModel* model_;
  PoolJob job_;
  std::shared_ptr<const std::vector<Place>> places_;  ///< of the document that is open; made when first asked for
  QPointer<QWidget> focusBefore_;
};

}  // namespace retrograd::views
