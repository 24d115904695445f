// Help > Keys (the list of all keys) and Help > Change Keys.
#include "views/parts/keys.h"
#include "views/widgets/controls.h"
#include "views/widgets/item_view.h"

#include <QGridLayout>
#include <QHeaderView>
#include <QVBoxLayout>

#include "views/dialogs/searched_table.h"
#include "views/models/goto_model.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

constexpr const char* ownProperty = "ownKey";

QString nativeText(const QKeySequence& key) { return key.toString(QKeySequence::NativeText); }

QString whatOf(const QString& name, const QAction& action) {
  if (name.startsWith(QStringLiteral("listing-"))) return tr("Shows or hides this listing");
  if (name == QStringLiteral("graph")) return tr("Shows or hides the graph");
  if (name.startsWith(QStringLiteral("dock-"))) return tr("Shows or hides this dock");
  return action.property("what").toString();
}

QList<KeyCommand> keyCommands(MainWindow& window) {
  QList<KeyCommand> result;
  for (const auto& [name, action] : commandActions(window))
    result.append(
        {name, commandText(*action), whatOf(name, *action), action->property(ownProperty).value<QKeySequence>()});
  return result;
}

void applyKeys(MainWindow& window, const Keymap& keymap) {
  const auto bindings = keymap.resolve(keyCommands(window));
  for (const auto& [name, action] : commandActions(window)) action->setShortcut(bindings.value(name).key);
  window.actions().update();
  window.actions().refreshTips();
  window.listings().refreshToggles();
}

/// What has a key, and the keys that listings and graph have for themselves.
void showList(MainWindow& window, QAction* change) {
  auto* dialog = named(new QDialog(&window), "keys-list");
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(tr("Keys"));
  auto* table = new SearchedTable({tr("Key"), tr("Command"), tr("What it does")}, tr("Keys"), dialog);
  const auto add = [table](const QString& key, const QString& command, const QString& what) {
    table->add({key, command, what});
  };
  for (const auto& [name, action] : commandActions(window))
    if (!action->shortcut().isEmpty()) add(nativeText(action->shortcut()), commandText(*action), whatOf(name, *action));
  add(tr("Space"), tr("Listing or Graph"), tr("From a listing to the selected op in the graph, and back"));
  add(tr("In the graph: arrows, Backspace"), tr("Walk"), tr("Along edges, across the ladder; out of the group"));
  add(tr("In the graph: Home"), tr("Look"),
      tr("The whole width; other keys of the graph are in the menu View > In the Graph"));
  add(tr("Arrows, Page Up/Down, Home, End"), tr("Move"),
      tr("Moves the line in a listing; with Shift: selects lines to copy"));
  add(tr("+, -, *, /"), tr("Fold"),
      tr("Unfolds, folds, unfolds all, folds all; in the graph: opens and closes groups"));
  add(tr("In trees, lists and boxes: letters"), tr("Search"),
      tr("Goes to the next row or entry that begins with them"));
  add(tr("Enter"), tr("Origin and Back"), tr("To the op's origin, or back; on a header: folds or unfolds"));
  table->fit();
  auto* buttons = dialogButtons(QDialogButtonBox::Close, dialog);
  auto* changeButton = buttons->addButton(tr("C&hange Keys..."), QDialogButtonBox::ActionRole);
  QObject::connect(changeButton, &QPushButton::clicked, dialog, [dialog, change] {
    dialog->close();
    change->trigger();
  });
  auto* layout = new QVBoxLayout(dialog);
  layout->addWidget(table);
  layout->addWidget(buttons);
  dialog->resize(820, 640);
  dialog->show();
}

// After all parts that add commands.
const WindowPart keysPart(PartOrder::keys, [](MainWindow& window) {
  auto& actions = window.actions();
  auto& keymap = Keymap::of(window.shared().settings);
  auto* change =
      actions.add("change-keys", tr("C&hange Keys..."), tr("Chooses a key for each command, or a preset"), {});
  window.menu("help")->insertAction(actions.about, change);
  QObject::connect(actions.keys, &QAction::triggered, &window, [&window, change] { showList(window, change); });
  QObject::connect(change, &QAction::triggered, &window, [&window, &keymap] {
    auto* dialog = new KeysDialog(keymap, keyCommands(window), &window);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->open();
  });
  for (const auto& [name, action] : commandActions(window))
    action->setProperty(ownProperty, QVariant::fromValue(action->shortcut()));
  // Shortcuts of docks and the like need the action to be the window's; others are for the widget that they were added
  // to.
  for (const auto& [name, action] : commandActions(window))
    if (action->shortcutContext() == Qt::WindowShortcut && !window.QWidget::actions().contains(action))
      window.addAction(action);
  QObject::connect(&keymap, &Keymap::changed, &window, [&window, &keymap] { applyKeys(window, keymap); });
  applyKeys(window, keymap);
});

}  // namespace

QList<std::pair<QString, QAction*>> commandActions(MainWindow& window) {
  QList<std::pair<QString, QAction*>> result;
  for (auto* action : window.actions().all())
    result.append({action->objectName().mid(static_cast<int>(qstrlen("action-"))), action});
  for (auto kind : traceKinds)
    result.append({QStringLiteral("listing-") + titleText(kind).toLower(), window.listings().toggleAction(kind)});
  result.append({QStringLiteral("graph"), window.listings().graphAction()});
  for (auto* dock : window.docks()) result.append({dock->objectName(), dock->toggleViewAction()});
  return result;
}

KeysDialog::KeysDialog(Keymap& keymap, QList<KeyCommand> commands, QWidget* parent)
    : QDialog(parent),
      keymap_(keymap),
      model_(new KeymapModel(keymap, std::move(commands), this)),
      filter_(new KeymapFilter(this)),
      table_(new QTableView(this)) {
  setObjectName(QStringLiteral("keys-dialog"));
  setWindowTitle(tr("Change Keys"));
  filter_->setSourceModel(model_);
  table_->setAccessibleName(tr("Commands and their keys"));
  table_->setModel(filter_);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setShowGrid(false);
  table_->setWordWrap(false);
  table_->setTabKeyNavigation(false);
  table_->verticalHeader()->hide();
  table_->horizontalHeader()->setHighlightSections(false);
  table_->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  table_->verticalHeader()->setDefaultSectionSize(table_->fontMetrics().height() + 8);
  table_->horizontalHeader()->setStretchLastSection(true);
  table_->setColumnWidth(KeymapModel::commandColumn, 210);
  table_->setColumnWidth(KeymapModel::keyColumn, 150);
  table_->setColumnWidth(KeymapModel::sourceColumn, 130);
  auto* buttons = dialogButtons(QDialogButtonBox::Close, this);
  resetAll_ = buttons->addButton(tr("Reset &All"), QDialogButtonBox::ResetRole);
  resetAll_->setToolTip(tr("Takes back every key of your own; the preset stays"));
  connect(resetAll_, &QPushButton::clicked, this, [this] { keymap_.resetAll(); });
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(makeSearch());
  layout->addWidget(table_, 1);
  layout->addWidget(makeEditor());
  layout->addWidget(buttons);
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this] {
    wanted_->setKey({});
    follow();
  });
  connect(&keymap_, &Keymap::changed, this, &KeysDialog::follow);
  follow();
  resize(900, 640);
}

QWidget* KeysDialog::makeSearch() {
  auto* box = new QWidget(this);
  auto* words = named(new QLineEdit(box), "keys-words", tr("Words to search for"));
  words->setPlaceholderText(tr("Words of a command"));
  words->setClearButtonEnabled(true);
  pressed_ = named(new KeyEdit(box), "keys-pressed", tr("Key to search for: press it"));
  pressed_->setPlaceholderText(tr("Press a key"));
  preset_ = makeBox(box, "keys-preset", tr("Preset"));
  preset_->addItem(tr("Retrograd"), static_cast<int>(KeyPreset::retrograd));
  preset_->addItem(tr("gdb's letters"), static_cast<int>(KeyPreset::gdb));
  preset_->setToolTip(
      tr("gdb's letters: N, S, F, C, U, B to step and run, with Shift backwards; the rest as in Retrograd"));
  auto* layout = withMargins(new QHBoxLayout(box), {});
  const auto add = [&](const QString& text, QWidget* field, int stretch) {
    auto* label = new QLabel(text, box);
    label->setBuddy(field);
    layout->addWidget(label);
    layout->addWidget(field, stretch);
  };
  add(tr("&Search:"), words, 2);
  add(tr("or by &key:"), pressed_, 1);
  layout->addSpacing(16);
  add(tr("&Preset:"), preset_, 0);
  connect(words, &QLineEdit::textChanged, filter_, &KeymapFilter::setWords);
  connect(pressed_, &KeyEdit::keyChanged, filter_, &KeymapFilter::setKey);
  connect(preset_, &QComboBox::activated, this,
          [this] { keymap_.setPreset(static_cast<KeyPreset>(preset_->currentData().toInt())); });
  return box;
}

QWidget* KeysDialog::makeEditor() {
  auto* box = new QWidget(this);
  editing_ = new QLabel(box);
  editing_->setTextFormat(Qt::PlainText);
  wanted_ = named(new KeyEdit(box), "keys-wanted", tr("New key: press it"));
  wanted_->setPlaceholderText(tr("Press the new key"));
  editing_->setBuddy(wanted_);
  assign_ = named(new QPushButton(tr("A&ssign"), box), "keys-assign");
  assign_->setDefault(true);
  take_ = named(new QPushButton(tr("&Take Away"), box), "keys-take");
  reset_ = named(new QPushButton(tr("&Reset"), box), "keys-reset");
  verdict_ = named(textLabel({}, box), "keys-verdict");
  auto* layout = withMargins(new QGridLayout(box), {0, 4, 0, 4});
  layout->addWidget(editing_, 0, 0);
  layout->addWidget(wanted_, 0, 1);
  layout->addWidget(assign_, 0, 2);
  layout->addWidget(take_, 0, 3);
  layout->addWidget(reset_, 0, 4);
  layout->addWidget(verdict_, 1, 0, 1, 5);
  layout->setColumnStretch(1, 1);
  verdict_->setMinimumHeight(verdict_->fontMetrics().height());
  connect(wanted_, &KeyEdit::keyChanged, this, &KeysDialog::follow);
  connect(assign_, &QPushButton::clicked, this, &KeysDialog::assign);
  connect(take_, &QPushButton::clicked, this, [this] {
    if (row() >= 0) keymap_.choose(model_->command(row()).name, {});
  });
  connect(reset_, &QPushButton::clicked, this, [this] {
    if (row() >= 0) keymap_.reset(model_->command(row()).name);
  });
  return box;
}

int KeysDialog::row() const {
  const auto current = table_->currentIndex();
  return current.isValid() ? filter_->mapToSource(current).row() : -1;
}

void KeysDialog::assign() {
  const int at = row();
  const auto key = wanted_->key();
  if (at < 0 || key.isEmpty()) return;
  wanted_->setKey({});
  keymap_.choose(model_->command(at).name, key);
}

/// What is said and what can be pressed, by the chosen command and the new key.
void KeysDialog::follow() {
  preset_->setCurrentIndex(preset_->findData(static_cast<int>(keymap_.preset())));
  resetAll_->setEnabled(keymap_.anyChosen());
  const int at = row();
  const auto& key = wanted_->key();
  wanted_->setEnabled(at >= 0);
  take_->setEnabled(at >= 0 && !model_->binding(at).key.isEmpty());
  reset_->setEnabled(at >= 0 && keymap_.isChosen(model_->command(at).name));
  assign_->setEnabled(false);
  if (at < 0) {
    editing_->setText(tr("New key:"));
    return verdict_->setText(tr("Choose a command to change its key."));
  }
  const auto& command = model_->command(at);
  editing_->setText(tr("New key of %1:").arg(command.text));
  if (key.isEmpty()) {
    const auto binding = model_->binding(at);
    return verdict_->setText(!binding.lostTo.isEmpty()
                                 ? tr("The key it would have is that of %1.").arg(model_->textOf(binding.lostTo))
                                 : QString());
  }
  if (const auto why = Keymap::whyReserved(key); !why.isEmpty()) return verdict_->setText(why + QLatin1Char('.'));
  assign_->setEnabled(true);
  const auto* holder = model_->holder(key, command.name);
  verdict_->setText(holder ? tr("%1 is the key of %2, which then has none.").arg(nativeText(key), holder->text)
                           : tr("%1 is free.").arg(nativeText(key)));
}

}  // namespace retrograd::views
