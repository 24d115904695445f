#include "views/docks/notes_dock.h"

#include <QAction>

#include "views/widgets/command_key.h"
#include "views/widgets/controls.h"
#include "views/widgets/dock_tree.h"
#include "views/widgets/sorted_rows.h"

namespace retrograd::views {

NotesDock::NotesDock(ViewContext context, QWidget* parent)
    : Panel(context, "notes", parent), model_(new NotesModel(this)), table_(new QTreeView(this)) {
  prepareTree(*table_, model_, "notes", tr("Notes"), {.isFlat = true, .isSorted = true});
  using Model = NotesModel;
  setWidths(*table_, {{Model::bookmark, 44}, {Model::where, 96}, {Model::name, 96}, {Model::comment, 210}});
  fillWith(table_);
  setList(table_);
  addListAction(table_, tr("Edit Comment..."), {}, [this] { edit(NotesModel::comment); });
  addListAction(table_, tr("Edit Name..."), {}, [this] { edit(NotesModel::name); });
  addListAction(table_, tr("Bookmark"), Qt::Key_Space, [this] { toggleBookmark(); });
  addListAction(table_, tr("Remove"), QKeySequence::Delete, [this] { remove(); });
  connect(context_.notes, &NoteBook::changed, this, &NotesDock::invalidate);
  connect(model_, &NotesModel::bookmarkRequested, this,
          [this](std::size_t note, bool on) { context_.notes->edit(note, [on](Note& n) { n.bookmark = on; }); });
}

void NotesDock::refresh() {
  const auto& document = context_.controller->document();
  model_->set(document, document ? context_.notes->notes() : std::vector<PlacedNote>());
}

QString NotesDock::emptyText() const {
  const auto keyOf = [this](const char* command, const QString& entry) {
    const auto key = keyText(*this, command);
    return key.isEmpty() ? tr("Marks > %1").arg(entry) : key;
  };
  return unlessClosed(
      tr("No notes yet.\n%1  comments the selected op,  %2  names its value,  %3  bookmarks it.")
          .arg(keyOf("comment", tr("Comment")), keyOf("rename", tr("Name")), keyOf("bookmark", tr("Bookmark"))));
}

void NotesDock::activate(const QModelIndex& index) {
  if (index.column() == NotesModel::name || index.column() == NotesModel::comment) return edit(index.column());
  const auto op = opOf(index);
  const auto value = ValueId(index.data(valueRole).toInt());
  if (op) Q_EMIT jumpRequested(op);
  if (value) context_.selection->selectValue(value);
}

void NotesDock::edit(int column) {
  const auto index = ofModel(table_->currentIndex());
  if (index.isValid()) Q_EMIT editRequested(model_->noteAt(index.row()), column == NotesModel::name);
}

void NotesDock::toggleBookmark() {
  const auto index = ofModel(table_->currentIndex());
  if (index.isValid())
    context_.notes->edit(model_->noteAt(index.row()), [](Note& note) { note.bookmark = !note.bookmark; });
}

void NotesDock::remove() {
  const auto index = ofModel(table_->currentIndex());
  if (!index.isValid()) return;
  const int row = index.row();
  context_.notes->edit(model_->noteAt(row), [](Note& note) {
    note.bookmark = false;
    note.name.clear();
    note.comment.clear();
  });
  table_->setCurrentIndex(shownIn(*table_, model_->index(std::min(row, model_->rowCount() - 1), index.column())));
}

}  // namespace retrograd::views
