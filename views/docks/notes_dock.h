#pragma once
#include <QTreeView>

#include "views/docks/panel.h"
#include "views/models/notes_model.h"

namespace retrograd::views {

/// The notes of the open document: Enter goes to one, in the columns of names and comments it edits; Delete removes.
class NotesDock : public Panel {
  Q_OBJECT

 public:
  explicit NotesDock(ViewContext context, QWidget* parent = nullptr);
  /// Has the hint instead of an empty list name the keys of now.
  void showHint() { updateEmptyText(); }

 Q_SIGNALS:
  /// The person wants to change the text of this note.
  void editRequested(std::size_t note, bool isName);

 protected:
  void refresh() override;
  void forget() override { model_->set(nullptr, {}); }
  QString emptyText() const override;
  void activate(const QModelIndex& index) override;

 private:
  void edit(int column);
  void toggleBookmark();
  void remove();

  NotesModel* model_;
  QTreeView* table_;
};

}  // namespace retrograd::views
