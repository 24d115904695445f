#pragma once
#include <QLabel>
#include <QStackedWidget>
#include <QTreeView>

#include "views/models/notes_model.h"
#include "views/view_context.h"

namespace retrograd::views {

/// The notes of the open document: Enter goes to one, in the columns of names and comments it edits; Delete removes.
class NotesDock : public QStackedWidget {
  Q_OBJECT

 public:
  explicit NotesDock(ViewContext context, QWidget* parent = nullptr);

 Q_SIGNALS:
  void jumpRequested(retrograd::BoundSymbolId op);
  /// The person wants to change the text of this note.
  void editRequested(std::size_t note, bool isName);

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void refresh();
  void activate(const QModelIndex& index);
  void edit(int column);
  void toggleBookmark();
  void remove();

  ViewContext context_;
  NotesModel* model_;
  QTreeView* table_;
  QLabel* empty_;
};

}  // namespace retrograd::views
