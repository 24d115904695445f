#pragma once
#include <QObject>
#include <map>
#include <unordered_map>

#include "core/notes/note_file.h"
#include "views/session/document_controller.h"

namespace retrograd::views {

/// A note and what it is at in the open document: an op or a value; nothing where its place is gone.
struct PlacedNote {
  Note note;
  BoundSymbolId op;
  ValueId value;

  bool isLost() const { return !op && !value; }
};

/// The notes of the open document. They are read when it opens and written after each change, off the UI thread; one
/// that could not be written is kept here and written with the next change.
class NoteBook : public QObject {
  Q_OBJECT

 public:
  explicit NoteBook(DocumentController* controller, QObject* parent = nullptr);

  /// In the order in which they were made.
  const std::vector<PlacedNote>& notes() const { return notes_; }
  /// Null where there is none.
  const Note* at(BoundSymbolId op) const { return find(ops_, op); }
  const Note* at(ValueId value) const { return find(values_, value); }
  /// The name of one's own; empty where there is none.
  QString nameOf(ValueId value) const;

  /// Changes the note of an op, or of a value where `op` is invalid. A note that is then empty is gone.
  void edit(BoundSymbolId op, ValueId value, const std::function<void(Note&)>& change);
  /// The same for the note of that number, which may be lost.
  void edit(std::size_t index, const std::function<void(Note&)>& change);

  /// Something could not be written so far; of any document that was open here.
  bool unsaved() const { return !unsaved_.empty(); }
  /// Tries once more to write what could not be written.
  void saveAgain();
  /// Where files are kept that cannot be next to their model; for tests.
  void setFolderElsewhere(const std::string& folder) { elsewhere_ = folder; }

 Q_SIGNALS:
  void changed();
  /// The notes could not be read, or neither place takes them.
  void failed(const QString& message);
  /// They are kept in `path`, since next to the model there is `problem`. Said once a document.
  void keptElsewhere(const QString& path, const QString& problem);

 private:
  struct Answer;
  template <class Key>
  const Note* find(const std::unordered_map<Key, std::size_t>& places, Key key) const {
    const auto it = places.find(key);
    return it == places.end() ? nullptr : &notes_[it->second].note;
  }
  void load();
  void put(PlacedNote note);
  void show(std::vector<PlacedNote> notes);
  void write();
  void written(const std::string& path, std::uint64_t last, const Answer& answer);

  DocumentController* controller_;
  std::string elsewhere_ = userNotesFolder();
  std::vector<PlacedNote> notes_;
  std::unordered_map<BoundSymbolId, std::size_t> ops_;  ///< into notes_
  std::unordered_map<ValueId, std::size_t> values_;
  /// Changes that are not known to be written, by the path of what was opened, and by number.
  std::map<std::string, std::map<std::uint64_t, Note>> unsaved_;
  std::uint64_t changes_ = 0;  ///< made so far
  int underWay_ = 0;           ///< writes of the open document that have not been answered
  bool toldElsewhere_ = false;
};

}  // namespace retrograd::views
