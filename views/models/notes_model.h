#pragma once
#include "views/models/table_model.h"
#include "views/session/note_book.h"

namespace retrograd::views {

/// Where a note is in the order of execution; nothing where its place is gone.
std::optional<std::int64_t> positionOf(const OpenDocument& document, const PlacedNote& note);
/// The op to go to for a note: its own, or the one that makes its value; may be invalid.
BoundSymbolId opOf(const OpenDocument& document, const PlacedNote& note);

/// Notes as a table, in the order of execution, those whose place is gone at the end.
class NotesModel : public TableModel {
  Q_OBJECT

 public:
  enum Column { bookmark, where, name, comment, what, columns };

  explicit NotesModel(QObject* parent = nullptr);

  /// A null document shows nothing.
  void set(std::shared_ptr<const OpenDocument> document, std::vector<PlacedNote> notes);
  /// Of a row: its number in the NoteBook.
  std::size_t noteAt(int row) const { return rows_[row]; }
  const PlacedNote& note(int row) const { return notes_[noteAt(row)]; }

  QVariant data(const QModelIndex& index, int role) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;

 Q_SIGNALS:
  /// The box of a note's bookmark was switched.
  void bookmarkRequested(std::size_t note, bool on);

 private:
  std::size_t rows() const override { return rows_.size(); }
  QString whereText(const PlacedNote& note) const;
  QString whatText(const PlacedNote& note) const;

  std::shared_ptr<const OpenDocument> document_;
  std::vector<PlacedNote> notes_;
  std::vector<std::size_t> rows_;  ///< into notes_
};

}  // namespace retrograd::views
