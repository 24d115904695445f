#include "core/notes/note_file.h"

#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>
#include <fstream>

#include "tests/core/export/sample.h"

namespace fs = std::filesystem;

namespace retrograd::test {
namespace {

Note opNote(const Analysis& analysis, BoundSymbolId op, const std::string& comment) {
  Note note;
  note.op = keyOf(analysis, op);
  note.comment = comment;
  return note;
}

Note valueNote(const Analysis& analysis, ValueId value, const std::string& name) {
  Note note;
  note.value = keyOf(analysis, value);
  note.name = name;
  return note;
}

/// A note at each op of the joint and the computation, one at an input, one at what an op makes.
Notes everyNote(const Analysis& analysis) {
  Notes notes;
  for (auto op : analysis.joint.ops) notes.set(opNote(analysis, op, "joint " + std::to_string(op.index)));
  for (auto op : analysis.computation().trace.ops)
    notes.set(opNote(analysis, op, "computation\nsecond line \"quoted\""));
  notes.set(valueNote(analysis, analysis.joint.inputs[0], "the input"));
  notes.set(valueNote(analysis, analysis.joint.outputs[1], "its gradient"));
  return notes;
}

TEST(Notes, AnOpOrValueHasOne) {
  const auto analysis = sampleAnalysis();
  Notes notes;
  notes.set(opNote(analysis, analysis.joint.ops[0], "first"));
  notes.set(opNote(analysis, analysis.joint.ops[0], "second"));
  ASSERT_EQ(notes.all().size(), 1u);
  EXPECT_EQ(notes.at(keyOf(analysis, analysis.joint.ops[0]))->comment, "second");
  EXPECT_EQ(notes.at(keyOf(analysis, analysis.joint.ops[1])), nullptr);
  EXPECT_EQ(notes.at(keyOf(analysis, analysis.joint.outputs[0])), nullptr);  // of a value, not of its op
  notes.set(opNote(analysis, analysis.joint.ops[0], ""));
  EXPECT_TRUE(notes.all().empty());
}

TEST(Notes, ReadBackAsTheyWere) {
  const auto notes = everyNote(sampleAnalysis());
  EXPECT_EQ(notes.all().size(), 9u);
  EXPECT_EQ(parseNotes(notesText(notes), "notes"), notes);
}

TEST(Notes, FindTheirPlacesAgainAndSayWhichAreGone) {
  const auto analysis = sampleAnalysis();
  const auto notes = everyNote(analysis);
  const auto placed = placeNotes(sampleAnalysis(), notes);
  EXPECT_TRUE(placed.lost.empty());
  EXPECT_EQ(placed.ops.size(), 7u);
  EXPECT_EQ(placed.values.size(), 2u);
  for (auto op : analysis.joint.ops)
    EXPECT_EQ(notes.all().at(placed.ops.at(op)).comment, "joint " + std::to_string(op.index));
  EXPECT_EQ(notes.all().at(placed.values.at(analysis.joint.inputs[0])).name, "the input");

  auto shorter = sampleAnalysis();
  shorter.joint.ops.pop_back();
  shorter.links = OriginLinks(*shorter.document, shorter.joint);
  const auto fewer = placeNotes(shorter, notes);
  ASSERT_EQ(fewer.lost.size(), 2u);  // at the op and at what it makes
  EXPECT_EQ(notes.all().at(fewer.lost[0]).comment, "joint " + std::to_string(analysis.joint.ops.back().index));
}

TEST(Notes, AreNextToTheModelOrInTheSession) {
  const auto folder = fs::temp_directory_path() / ("retrograd_notes_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  auto analysis = sampleAnalysis();
  analysis.file.path = (folder / "model.pt2").string();
  const auto path = notesPath(analysis.file.path);
  EXPECT_TRUE(notesOf(analysis).all().empty());
  const auto notes = everyNote(analysis);
  writeNotes(path, notes);
  EXPECT_EQ(notesOf(analysis), notes);
  Notes own;
  own.set(opNote(analysis, analysis.joint.ops[0], "of the session"));
  analysis.marks[notesMark] = notesText(own);
  EXPECT_EQ(notesOf(analysis), own);
  writeNotes(path, Notes());
  EXPECT_FALSE(fs::exists(path));
  EXPECT_THROW(writeNotes((folder / "no" / "such").string(), own), Error);
  fs::remove_all(folder);
}

/// A model with its notes next to it and a folder elsewhere, all gone afterwards.
struct NoteFiles : testing::Test {
  fs::path folder = fs::temp_directory_path() / ("retrograd_note_files_" + std::to_string(::getpid()));
  Analysis analysis = sampleAnalysis();

  NoteFiles() {
    fs::create_directories(folder);
    analysis.file.path = (folder / "model.pt2").string();
  }
  ~NoteFiles() override { fs::remove_all(folder); }
  NoteFile file(const std::string& opened = "model.pt2") const {
    return NoteFile((folder / opened).string(), (folder / "elsewhere").string());
  }
  /// Only a directory of this name keeps root from writing there.
  void block() { fs::create_directories(folder / "model.pt2.notes.json" / "in the way"); }
  Note note(std::size_t op, const std::string& comment) const {
    return opNote(analysis, analysis.joint.ops.at(op), comment);
  }
};

TEST_F(NoteFiles, ChangesOfTwoWindowsAreBothKept) {
  const auto one = file(), other = file();
  EXPECT_TRUE(one.read(analysis).all().empty());
  EXPECT_EQ(one.change(analysis, {note(0, "a")}).path, one.beside());
  const auto both = other.change(analysis, {note(1, "b")});
  EXPECT_EQ(both.notes.all().size(), 2u);
  EXPECT_EQ(both.problem, "");
  EXPECT_EQ(one.read(analysis), both.notes);
  one.change(analysis, {note(0, ""), note(1, "")});
  EXPECT_FALSE(fs::exists(one.beside()));
}

TEST_F(NoteFiles, WhereNothingCanBeWrittenTheyAreKeptElsewhere) {
  block();
  const auto kept = file().change(analysis, {note(0, "a")});
  EXPECT_EQ(kept.path, file().elsewhere());
  EXPECT_NE(kept.problem.find("notes.json"), std::string::npos) << kept.problem;
  EXPECT_EQ(file().read(analysis), kept.notes);
  EXPECT_EQ(file().change(analysis, {note(1, "b")}).notes.all().size(), 2u);
  // Once the place next to the model can be written again they go there, and those elsewhere are gone.
  fs::remove_all(file().beside());
  const auto back = file().change(analysis, {note(2, "c")});
  EXPECT_EQ(back.path, file().beside());
  EXPECT_EQ(back.notes.all().size(), 3u);
  EXPECT_FALSE(fs::exists(file().elsewhere()));
}

TEST_F(NoteFiles, AFileThatCannotBeReadIsLeftAsItIs) {
  std::ofstream(file().beside()) << "no JSON";
  EXPECT_THROW(file().read(analysis), Error);
  const auto kept = file().change(analysis, {note(0, "a")});
  EXPECT_EQ(kept.path, file().elsewhere());
  EXPECT_EQ(kept.notes.all().size(), 1u);
  EXPECT_EQ(file().change(analysis, {note(1, "b")}).path, file().elsewhere());
  EXPECT_EQ(file().read(analysis).all().size(), 2u);
  std::string content;
  std::getline(std::ifstream(file().beside()), content);
  EXPECT_EQ(content, "no JSON");
}

TEST_F(NoteFiles, WhereNoPlaceTakesThemItSaysSo) {
  block();
  std::ofstream(folder / "elsewhere") << "a file, not a folder";
  EXPECT_THROW(file().change(analysis, {note(0, "a")}), Error);
  EXPECT_THROW(NoteFile((folder / "model.pt2").string(), "").change(analysis, {note(0, "a")}), Error);
}

TEST_F(NoteFiles, ASessionHasItsOwnNextToIt) {
  Notes stored;
  stored.set(note(0, "of the session"));
  analysis.sessionPath = (folder / "a.retrograd").string();
  analysis.marks[notesMark] = notesText(stored);
  const auto session = file("a.retrograd");
  EXPECT_EQ(session.read(analysis), stored);
  session.change(analysis, {note(1, "later")});
  EXPECT_EQ(session.read(analysis).all().size(), 2u);
  // All removed: those in the session do not come to light again.
  session.change(analysis, {note(0, ""), note(1, "")});
  EXPECT_TRUE(session.read(analysis).all().empty());
  EXPECT_FALSE(fs::exists(file().beside()));
}

TEST(Notes, BadFilesAreRefusedWithTheirPlace) {
  const auto message = [](const std::string& text) {
    try {
      parseNotes(text, "a.notes.json");
      return std::string("read");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::badInput);
      return std::string(error.what());
    }
  };
  EXPECT_EQ(message(R"({"format": 1, "notes": []})"), "read");
  EXPECT_NE(message(R"({"format": 2, "notes": []})").find("format 2"), std::string::npos);
  const auto second = message(
      R"({"format": 1, "notes": [{"at": {"operation": "a"}, "comment": "b"}, {"at": {"operation": "a", "role": "no"}}]})");
  EXPECT_NE(second.find("a.notes.json"), std::string::npos) << second;
  EXPECT_NE(second.find("note 2"), std::string::npos) << second;
  for (const char* bad :
       {"", "[]", "{}", R"({"format": 1, "notes": [3]})", R"({"format": 1, "notes": [{"at": {"operation": 3}}]})",
        R"({"format": 1, "notes": [{"at": {"value": -1}}]})",
        R"({"format": 1, "notes": [{"at": {"ordinal": 99999999999}}]})"})
    EXPECT_NE(message(bad), "read") << bad;
}

}  // namespace
}  // namespace retrograd::test
