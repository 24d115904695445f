#include "views/session/note_book.h"

#include <QCoreApplication>
#include <QPointer>
#include <QThreadPool>

#include "views/text/format.h"

namespace retrograd::views {

/// What came of reading or writing.
struct NoteBook::Answer {
  std::vector<PlacedNote> notes;
  std::string path, problem;  ///< of NoteFile::Kept
  QString error;              ///< empty where all went well
};

namespace {

/// One file after the other, whatever window asks, and to the end even if it is closed meanwhile.
QThreadPool& files() {
  static QPointer<QThreadPool> pool;
  if (!pool) {
    pool = new QThreadPool(QCoreApplication::instance());
    pool->setMaxThreadCount(1);
  }
  return *pool;
}

/// Runs `work` among the files, and gives what it returns to `deliver` on the UI thread while `owner` is there.
template <class Work, class Deliver>
void post(NoteBook* owner, Work work, Deliver deliver) {
  files().start([owner = QPointer(owner), work = std::move(work), deliver = std::move(deliver)] {
    auto answer = work();
    auto* application = QCoreApplication::instance();
    if (application)
      QMetaObject::invokeMethod(
          application,
          [owner, answer = std::move(answer), deliver] {
            if (owner) deliver(answer);
          },
          Qt::QueuedConnection);
  });
}

std::vector<PlacedNote> placed(const Analysis& analysis, const Notes& notes) {
  std::vector<PlacedNote> result;
  for (const auto& note : notes.all()) result.push_back({note, {}, {}});
  const auto places = placeNotes(analysis, notes);
  for (const auto& [op, i] : places.ops) result[i].op = op;
  for (const auto& [value, i] : places.values) result[i].value = value;
  return result;
}

bool sharesPlace(const PlacedNote& a, const PlacedNote& b) {
  return a.op == b.op && a.value == b.value &&
         (!a.isLost() || (a.note.op == b.note.op && a.note.value == b.note.value));
}

}  // namespace

NoteBook::NoteBook(DocumentController* controller, QObject* parent) : QObject(parent), controller_(controller) {
  connect(controller_, &DocumentController::documentAboutToChange, this, [this] { show({}); });
  connect(controller_, &DocumentController::documentChanged, this, &NoteBook::load);
}

QString NoteBook::nameOf(ValueId value) const {
  const auto* note = at(value);
  return note ? toQt(note->name) : QString();
}

void NoteBook::load() {
  const auto& document = controller_->document();
  underWay_ = 0;
  toldElsewhere_ = false;
  if (!document) return;
  const auto read = [document, file = NoteFile(document->request.path, elsewhere_)] {
    Answer answer;
    try {
      answer.notes = placed(*document->analysis, file.read(*document->analysis));
    } catch (const std::exception& error) {
      answer.error = toQt(messageOf(error));
    }
    return answer;
  };
  post(this, read, [this, document](const Answer& answer) {
    if (document != controller_->document()) return;
    if (!answer.error.isEmpty())
      Q_EMIT failed(tr("The notes cannot be read, and their file is left as it is: %1").arg(answer.error));
    if (underWay_ == 0 && !answer.notes.empty()) show(answer.notes);  // else what is being written brings all of them
  });
}

void NoteBook::edit(BoundSymbolId op, ValueId value, const std::function<void(Note&)>& change) {
  const auto& document = controller_->document();
  if (!document || (!op && !value)) return;
  PlacedNote placed;
  placed.op = op;
  if (!op) placed.value = value;
  if (const auto* known = op ? at(op) : at(value)) {
    placed.note = *known;
  } else if (op) {
    placed.note.op = keyOf(*document->analysis, op);
  } else {
    placed.note.value = keyOf(*document->analysis, value);
  }
  change(placed.note);
  put(std::move(placed));
}

void NoteBook::edit(std::size_t index, const std::function<void(Note&)>& change) {
  if (index >= notes_.size()) return;
  auto placed = notes_[index];
  change(placed.note);
  put(std::move(placed));
}

void NoteBook::put(PlacedNote note) {
  const auto& path = controller_->document()->request.path;
  auto notes = notes_;
  const auto it = std::ranges::find_if(notes, [&](const PlacedNote& other) { return sharesPlace(other, note); });
  if (it == notes.end() && note.note.isEmpty()) return;
  if (it != notes.end() && it->note == note.note) return;
  unsaved_[path][++changes_] = note.note;
  if (note.note.isEmpty()) notes.erase(it);
  else if (it != notes.end()) *it = std::move(note);
  else notes.push_back(std::move(note));
  show(std::move(notes));
  write();
}

void NoteBook::show(std::vector<PlacedNote> notes) {
  const bool none = notes.empty() && notes_.empty();
  notes_ = std::move(notes);
  ops_.clear();
  values_.clear();
  for (std::size_t i = 0; i < notes_.size(); ++i) {
    if (notes_[i].op) ops_[notes_[i].op] = i;
    if (notes_[i].value) values_[notes_[i].value] = i;
  }
  if (!none) Q_EMIT changed();
}

void NoteBook::saveAgain() {
  if (controller_->document() && unsaved_.contains(controller_->document()->request.path)) write();
}

void NoteBook::write() {
  const auto document = controller_->document();
  const auto path = document->request.path;
  std::vector<Note> changes;
  for (const auto& [number, note] : unsaved_[path]) changes.push_back(note);
  ++underWay_;
  const auto change = [document, changes, file = NoteFile(path, elsewhere_)] {
    Answer answer;
    try {
      const auto kept = file.change(*document->analysis, changes);
      answer.notes = placed(*document->analysis, kept.notes);
      answer.path = kept.path;
      answer.problem = kept.problem;
    } catch (const std::exception& error) {
      answer.error = toQt(messageOf(error));
    }
    return answer;
  };
  post(this, change, [this, document, path, last = changes_](const Answer& answer) {
    const bool isOpen = document == controller_->document();
    if (isOpen) --underWay_;
    written(path, last, answer);
    if (!answer.error.isEmpty() || !isOpen || underWay_ > 0) return;
    const auto same = [](const PlacedNote& a, const PlacedNote& b) {
      return a.note == b.note && a.op == b.op && a.value == b.value;
    };
    if (!std::equal(answer.notes.begin(), answer.notes.end(), notes_.begin(), notes_.end(), same)) show(answer.notes);
    if (!answer.problem.empty() && !std::exchange(toldElsewhere_, true))
      Q_EMIT keptElsewhere(toQt(answer.path), toQt(answer.problem));
  });
}

/// The changes up to `last` are done with, or all of them stay until the next attempt.
void NoteBook::written(const std::string& path, std::uint64_t last, const Answer& answer) {
  if (!answer.error.isEmpty())
    return Q_EMIT failed(tr("The notes could not be saved and are kept in this window alone: %1").arg(answer.error));
  const auto it = unsaved_.find(path);
  if (it == unsaved_.end()) return;
  std::erase_if(it->second, [last](const auto& change) { return change.first <= last; });
  if (it->second.empty()) unsaved_.erase(it);
}

}  // namespace retrograd::views
