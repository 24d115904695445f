// Notes in the window: the dock, the Marks menu, its commands.
#include <QMessageBox>
#include <QObject>
#include <QPushButton>

#include "views/dialogs/note_dialog.h"
#include "views/docks/memory_dock.h"
#include "views/docks/notes_dock.h"
#include "views/text/format.h"
#include "views/text/line_text.h"
#include "views/window/window_part.h"

namespace retrograd::views {

/// Commands that make, change and walk the notes of the open document, and what the window says when they cannot be
/// saved.
class NoteCommands : public QObject {
  Q_OBJECT

 public:
  explicit NoteCommands(MainWindow& window);

 protected:
  /// Closing the window asks where notes would be lost.
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  /// What a comment or a bookmark is for: the selected op, or the value where only that is selected.
  struct Place {
    BoundSymbolId op;
    ValueId value;
  };
  Place place() const;
  /// What a name is for: the selected value, or the first that the selected op makes.
  ValueId namedValue() const;
  QString textOf(BoundSymbolId op, ValueId value) const;
  QString noPlace() const;

  void comment();
  void rename();
  void toggleBookmark();
  void step(bool forward);
  void editNote(std::size_t index, bool isName);
  void ask(bool isName, const QString& what, const QString& text, std::function<void(const std::string&)> chosen);
  void addCommands(NotesDock* dock);

  MainWindow& window_;
  ViewContext context_;
  bool discards_ = false;  ///< the person said to close without the notes that could not be saved
};

namespace {

const WindowPart notesPart(PartOrder::notes, [](MainWindow& window) { new NoteCommands(window); });

}  // namespace

NoteCommands::NoteCommands(MainWindow& window) : QObject(&window), window_(window), context_(window.context()) {
  auto* dock =
      window_.addPanel(new NotesDock(context_), tr("Notes"), Qt::BottomDockWidgetArea, &window_.panel<MemoryDock>());
  connect(dock, &NotesDock::editRequested, this, &NoteCommands::editNote);
  addCommands(dock);
  connect(context_.notes, &NoteBook::failed, this,
          [this](const QString& message) { window_.messages().show(MessageBar::Kind::error, message); });
  connect(context_.notes, &NoteBook::keptElsewhere, this, [this](const QString& path, const QString& problem) {
    window_.messages().show(
        MessageBar::Kind::warning,
        tr("The notes cannot be kept next to the model (%1). They are kept in %2.").arg(problem, path));
  });
  window_.installEventFilter(this);
}

void NoteCommands::addCommands(NotesDock* dock) {
  auto& actions = window_.actions();
  auto* menu = window_.menu("marks", tr("&Marks"));
  const auto add = [&](const char* name, const QString& text, const QString& tip, const QKeySequence& key,
                       std::function<QString()> reason, auto run) {
    auto* action = actions.add(name, text, tip, key);
    connect(action, &QAction::triggered, this, run);
    actions.allowUnless(action, std::move(reason));
    menu->addAction(action);
    connect(action, &QAction::changed, dock, &NotesDock::showHint);  // it may have another key
  };
  const auto noPlace = [this] { return this->noPlace(); };
  const auto noNotes = [this] {
    return !context_.controller->document()  ? tr("No file is open")
           : context_.notes->notes().empty() ? tr("There are no notes yet")
                                             : QString();
  };
  add("comment", tr("&Comment..."), tr("Writes a comment at the selected op"), QKeySequence(Qt::Key_Semicolon), noPlace,
      [this] { comment(); });
  add(
      "rename", tr("&Name..."), tr("Gives the selected value, or what the selected op makes, a name of your own"),
      QKeySequence(Qt::Key_N),
      [this] {
        const auto reason = this->noPlace();
        return !reason.isEmpty() || namedValue() ? reason : tr("The selected op makes no value");
      },
      [this] { rename(); });
  add("bookmark", tr("&Bookmark"), tr("Marks the selected op, or no longer"), QKeySequence(Qt::CTRL | Qt::Key_B),
      noPlace, [this] { toggleBookmark(); });
  menu->addSeparator();
  add("next-note", tr("Ne&xt Note"), tr("To the next op with a note, in the order of execution"),
      QKeySequence(Qt::Key_Period), noNotes, [this] { step(true); });
  add("previous-note", tr("&Previous Note"), tr("To the op with a note before"), QKeySequence(Qt::Key_Comma), noNotes,
      [this] { step(false); });
  menu->addSeparator();
  add("notes", tr("&All Notes"), tr("Lists the notes of the file"), {}, {[] { return QString(); }},
      [this, dock] { window_.showPanel(*dock); });
  add(
      "save-notes", tr("&Save Notes Again"), tr("Tries once more to write notes that could not be saved"), {},
      [this] { return context_.notes->unsaved() ? QString() : tr("All notes are saved"); },
      [this] { context_.notes->saveAgain(); });
  // Those for one op or value also are in the menu of its line.
  const QList<QAction*> here = menu->actions().mid(0, 3);
  for (auto kind : traceKinds)
    connect(&window_.listings().listing(kind), &ListingView::menuAboutToShow, this, [here](QMenu* lineMenu) {
      lineMenu->addSeparator();
      lineMenu->addActions(here);
    });
  connect(context_.notes, &NoteBook::changed, &actions, &WindowActions::update);
  connect(context_.notes, &NoteBook::failed, &actions, &WindowActions::update);
}

NoteCommands::Place NoteCommands::place() const {
  const auto& selection = *context_.selection;
  return selection.op() ? Place{selection.op(), {}} : Place{{}, selection.value()};
}

ValueId NoteCommands::namedValue() const {
  const auto& selection = *context_.selection;
  const auto& document = context_.controller->document();
  if (!document || selection.value() || !selection.op()) return document ? selection.value() : ValueId();
  for (auto output : document->analysis->document->outputs(selection.op()))
    if (output) return output;
  return {};
}

QString NoteCommands::noPlace() const {
  if (!context_.controller->document()) return tr("No file is open");
  const auto [op, value] = place();
  return op || value ? QString() : tr("No op is selected");
}

QString NoteCommands::textOf(BoundSymbolId op, ValueId value) const {
  const auto& tables = *context_.controller->document()->analysis->document;
  if (op) return lineOf(tables, op, nullptr, true, false).text;
  const auto meta = tables.value(value).meta;
  return toQt(tables.displayName(value)) + (meta ? QStringLiteral(": ") + typeText(tables.meta(meta)) : QString());
}

void NoteCommands::ask(bool isName, const QString& what, const QString& text,
                       std::function<void(const std::string&)> chosen) {
  auto* dialog = new NoteDialog(isName ? NoteDialog::Kind::name : NoteDialog::Kind::comment, what, text, &window_);
  // The ids that it was opened for are good while the document is.
  connect(context_.controller, &DocumentController::documentAboutToChange, dialog, &QDialog::reject);
  connect(dialog, &NoteDialog::chosen, this,
          [chosen = std::move(chosen)](const QString& answer) { chosen(answer.toStdString()); });
  dialog->open();
}

void NoteCommands::comment() {
  const auto [op, value] = place();
  const auto* note = op ? context_.notes->at(op) : context_.notes->at(value);
  ask(false, textOf(op, value), note ? toQt(note->comment) : QString(),
      [this, op = op, value = value](const std::string& text) {
        context_.notes->edit(op, value, [&](Note& n) { n.comment = text; });
      });
}

void NoteCommands::rename() {
  const auto value = namedValue();
  ask(true, textOf({}, value), context_.notes->nameOf(value),
      [this, value](const std::string& text) { context_.notes->edit({}, value, [&](Note& n) { n.name = text; }); });
}

void NoteCommands::toggleBookmark() {
  const auto [op, value] = place();
  context_.notes->edit(op, value, [](Note& note) { note.bookmark = !note.bookmark; });
}

void NoteCommands::editNote(std::size_t index, bool isName) {
  const auto placed = context_.notes->notes().at(index);
  const auto what = placed.isLost() ? tr("A note whose place is gone") : textOf(placed.op, placed.value);
  ask(isName, what, toQt(isName ? placed.note.name : placed.note.comment),
      [this, index, placed, isName](const std::string& text) {
        const auto& notes = context_.notes->notes();
        if (index >= notes.size() || notes[index].op != placed.op || notes[index].value != placed.value) return;
        context_.notes->edit(index, [&](Note& note) { (isName ? note.name : note.comment) = text; });
      });
}

void NoteCommands::step(bool forward) {
  const auto& document = *context_.controller->document();
  PlacedNote here;
  here.op = context_.selection->op();
  const auto from = positionOf(document, here).value_or(-1);
  std::optional<std::pair<std::int64_t, std::size_t>> best,
      wrapped;  // the nearest on that side, and the one to begin again with
  const auto& notes = context_.notes->notes();
  for (std::size_t i = 0; i < notes.size(); ++i) {
    const auto position = positionOf(document, notes[i]);
    if (!position || !opOf(document, notes[i]) || opOf(document, notes[i]) == here.op) continue;
    const std::pair candidate{forward ? *position : -*position, i};
    if (!wrapped || candidate < *wrapped) wrapped = candidate;
    if (candidate.first > (forward ? from : -from) && (!best || candidate < *best)) best = candidate;
  }
  const auto& found = best ? best : wrapped;
  if (found) window_.jumpTo(opOf(document, notes[found->second]));
}

bool NoteCommands::eventFilter(QObject* watched, QEvent* event) {
  if (watched != &window_ || event->type() != QEvent::Close || discards_ || !context_.notes->unsaved())
    return QObject::eventFilter(watched, event);
  event->ignore();
  auto* box = new QMessageBox(
      QMessageBox::Warning, tr("Notes are not saved"),
      tr("Notes of this window could not be saved, neither next to their model nor in your own folder."),
      QMessageBox::Cancel, &window_);
  box->setAttribute(Qt::WA_DeleteOnClose);
  auto* discard = box->addButton(tr("Close Without Them"), QMessageBox::DestructiveRole);
  connect(discard, &QPushButton::clicked, this, [this] {
    discards_ = true;
    window_.close();
  });
  box->open();
  return true;
}

}  // namespace retrograd::views

#include "notes.moc"
