#pragma once
#include <string>
#include <vector>

#include "core/notes/notes.h"

namespace retrograd {

/// A folder of the user's own for notes that cannot be next to their model: $XDG_DATA_HOME/retrograd/notes. Empty
/// where there is no home.
std::string userNotesFolder();

/// The file in which the notes of an opened model or session are kept: next to it or, if that cannot be written, in a
/// folder elsewhere. Changes are put on top of what the file holds at that moment, so that two windows that have it
/// open lose nothing of each other's.
class NoteFile {
 public:
  /// `opened`: the model or session.
  explicit NoteFile(std::string opened, std::string folderElsewhere = userNotesFolder());

  const std::string& beside() const { return beside_; }
  const std::string& elsewhere() const { return elsewhere_; }
  /// What the newer of the two files holds; without one, what the session holds or what is next to its model. Throws
  /// Error(badInput, io).
  Notes read(const Analysis& analysis) const;

  struct Kept {
    Notes notes;          ///< all of them, after the changes
    std::string path;     ///< of the file that holds them now
    std::string problem;  ///< why that is not the one next to the model; empty where it is
  };
  /// Sets each note (Notes::set). A file that cannot be read is left as it is. Throws Error(io) where neither place can
  /// be written.
  Kept change(const Analysis& analysis, const std::vector<Note>& changes) const;

 private:
  /// Whether the notes elsewhere are what counts.
  bool isElsewhere() const;

  std::string opened_, beside_, elsewhere_;
};

}  // namespace retrograd
