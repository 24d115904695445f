#include "core/notes/note_file.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

namespace fs = std::filesystem;

namespace retrograd {
namespace {

/// FNV-1a: the same on every machine, for the name of a file.
std::uint64_t hashOf(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// Without notes the file goes, unless an older source would come to light again.
void write(const std::string& path, const Notes& notes, bool isHiding) {
  if (notes.all().empty() && isHiding) writeNotesFile(path, notes);
  else writeNotes(path, notes);
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return !path.empty() && fs::exists(path, ignored);
}

}  // namespace

std::string userNotesFolder() {
  const auto data = environment("XDG_DATA_HOME"), home = environment("HOME");
  if (!data.empty()) return data + "/retrograd/notes";
  return home.empty() ? "" : home + "/.local/share/retrograd/notes";
}

NoteFile::NoteFile(std::string opened, std::string folderElsewhere)
    : opened_(std::move(opened)), beside_(notesPath(opened_)) {
  if (folderElsewhere.empty()) return;
  std::error_code ignored;
  const auto whole = fs::absolute(opened_, ignored).string();
  elsewhere_ =
      fmt::format("{}/{}-{:016x}.notes.json", folderElsewhere, fs::path(opened_).filename().string(), hashOf(whole));
}

bool NoteFile::isElsewhere() const {
  if (!exists(elsewhere_)) return false;
  std::error_code ignored;
  return !exists(beside_) || fs::last_write_time(elsewhere_, ignored) >= fs::last_write_time(beside_, ignored);
}

Notes NoteFile::read(const Analysis& analysis) const {
  if (isElsewhere()) return readNotes(elsewhere_);
  return exists(beside_) ? readNotes(beside_) : notesOf(analysis);
}

NoteFile::Kept NoteFile::change(const Analysis& analysis, const std::vector<Note>& changes) const {
  Kept kept;
  try {
    kept.notes = read(analysis);
    if (exists(beside_)) readNotes(beside_);  // what cannot be read is not written over
  } catch (const Error& error) {
    kept.problem = error.what();
  }
  for (const auto& note : changes) kept.notes.set(note);
  const bool hasOlder =
      !analysis.marks.empty() || (!analysis.file.path.empty() && notesPath(analysis.file.path) != beside_);
  if (kept.problem.empty()) try {
      write(beside_, kept.notes, hasOlder);
      kept.path = beside_;
      std::error_code ignored;
      if (!elsewhere_.empty()) fs::remove(elsewhere_, ignored);
      return kept;
    } catch (const Error& error) {
      kept.problem = error.what();
    }
  if (elsewhere_.empty()) throw Error(ErrorCode::io, kept.problem);
  std::error_code ignored;
  fs::create_directories(fs::path(elsewhere_).parent_path(), ignored);
  write(elsewhere_, kept.notes, true);
  kept.path = elsewhere_;
  return kept;
}

}  // namespace retrograd
