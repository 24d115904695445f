// File > Preferences.
#include <QCheckBox>
#include <QComboBox>
#include <QFormLayout>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QTabWidget>
#include <QVBoxLayout>
#include <thread>

#include "core/base/allowed_memory.h"
#include "views/engine/torch_calls.h"
#include "views/parts/history_memory.h"
#include "views/settings/editor.h"
#include "views/settings/settings.h"
#include "views/text/format.h"
#include "views/theme/tokens.h"
#include "views/widgets/controls.h"
#include "views/widgets/item_view.h"
#include "views/window/window_part.h"

namespace retrograd::views {

/// What the program keeps from one start to the next, in one place. What is changed holds at once; each page says of
/// what there is elsewhere where that is.
class PreferencesDialog : public QDialog {
  Q_OBJECT

 public:
  explicit PreferencesDialog(MainWindow& window);

 private:
  QFormLayout* addPage(const QString& title);
  /// A box for a command that is on or off; none where the window has no such command.
  void addSwitch(QFormLayout* page, const char* action, const QString& text);
  void addButton(QFormLayout* page, const char* action, const QString& text);
  /// One of several commands of which one is on.
  void addChoice(QFormLayout* page, const QString& label, const QList<QAction*>& actions);
  /// A row for an amount of memory; `problem` says what is wrong with what was written. With `usual`, words for what
  /// holds where nothing is written, the row may be empty, and its number then is -1.
  void addAmount(QFormLayout* page, const char* name, const QString& label, const QString& what, std::int64_t bytes,
                 QLabel* problem, const std::function<void(std::int64_t)>& use, const QString& usual = {});
  void addAppearance();
  void addKeys();
  void addRunning();
  void addSources();
  void addFiles();

  MainWindow& window_;
  QTabWidget* pages_;
};

namespace {

QString plain(QString text) { return text.remove(QLatin1Char('&')).remove(QStringLiteral("...")); }

/// The worker's thread is the one that runs ops.
void applyThreads(MainWindow& window) {
  const int count = kept::threads.of(*window.shared().settings);
  if (count <= 0) return;
  const auto work = [count](const Progress&) -> Worker::Deliver {
    useThreads(count);
    return {};
  };
  window.shared().worker->post(nullptr, {.work = work});
}

void applyAllowedMemory(const QSettings& settings) {
  const auto allowed = [&](const Setting<qlonglong>& kept) {
    const auto bytes = kept.of(settings);
    return bytes < 0 ? std::nullopt : std::optional<std::int64_t>(bytes);
  };
  setRunningMemory(allowed(kept::runningBytes));
  setOpeningMemory(allowed(kept::openingBytes));
}

const WindowPart preferencesPart(PartOrder::preferences, [](MainWindow& window) {
  auto* action = window.actions().add("preferences", tr("Preferences..."),
                                      tr("Appearance, keys, running, sources and editor, files"),
                                      QKeySequence(Qt::CTRL | Qt::Key_Comma));
  action->setMenuRole(QAction::PreferencesRole);
  QObject::connect(action, &QAction::triggered, &window, [&window] {
    auto* dialog = window.findChild<PreferencesDialog*>();
    if (!dialog) dialog = new PreferencesDialog(window);
    dialog->open();
  });
  auto* file = window.menu("file");
  file->insertAction(window.actions().close, action);
  applyThreads(window);
});

}  // namespace

PreferencesDialog::PreferencesDialog(MainWindow& window)
    : QDialog(&window), window_(window), pages_(new QTabWidget(this)) {
  setAttribute(Qt::WA_DeleteOnClose);
  setObjectName(QStringLiteral("preferences"));
  setWindowTitle(tr("Preferences"));
  pages_->setAccessibleName(tr("Pages of the preferences"));
  addAppearance();
  addKeys();
  addRunning();
  addSources();
  addFiles();
  auto* buttons = dialogButtons(QDialogButtonBox::Close, this);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(pages_);
  layout->addWidget(buttons);
  resize(560, 360);
}

QFormLayout* PreferencesDialog::addPage(const QString& title) {
  auto* page = new QWidget(pages_);
  auto* form = withMargins(new QFormLayout(page), {tokens::wide, tokens::wide, tokens::wide, tokens::wide});
  form->setVerticalSpacing(tokens::gap);
  pages_->addTab(page, title);
  return form;
}

void PreferencesDialog::addSwitch(QFormLayout* page, const char* name, const QString& text) {
  auto* action = window_.findChild<QAction*>(QStringLiteral("action-") + QLatin1String(name));
  if (!action) return;
  auto* box = named(new QCheckBox(text, this), QStringLiteral("preference-") + QLatin1String(name));
  box->setToolTip(action->property("what").toString());
  box->setChecked(action->isChecked());
  connect(box, &QCheckBox::clicked, action, [action, box](bool on) {
    if (action->isChecked() != on) action->trigger();
    box->setChecked(action->isChecked());
  });
  connect(action, &QAction::toggled, box, &QCheckBox::setChecked);
  page->addRow(box);
}

void PreferencesDialog::addButton(QFormLayout* page, const char* name, const QString& text) {
  auto* action = window_.findChild<QAction*>(QStringLiteral("action-") + QLatin1String(name));
  if (!action) return;
  auto* button = named(new QPushButton(text, this), QStringLiteral("preference-") + QLatin1String(name));
  button->setAutoDefault(false);
  connect(button, &QPushButton::clicked, action, &QAction::trigger);
  page->addRow(button);
}

void PreferencesDialog::addChoice(QFormLayout* page, const QString& label, const QList<QAction*>& actions) {
  auto* box = new QComboBox(this);
  prepareBox(box, plain(label));
  for (auto* action : actions) box->addItem(plain(action->text()));
  for (int i = 0; i < actions.size(); ++i)
    if (actions[i]->isChecked()) box->setCurrentIndex(i);
  connect(box, &QComboBox::activated, this, [actions](int i) { actions[i]->trigger(); });
  page->addRow(label, box);
}

void PreferencesDialog::addAppearance() {
  auto* page = addPage(tr("&Appearance"));
  addChoice(page, tr("&Theme"), window_.actions().themes->actions());
  addChoice(page, tr("&Fold listings"), window_.actions().grouping->actions());
  addSwitch(page, "short-names", tr("&Short op names"));
  addSwitch(page, "op-numbers", tr("&Numbers of ops in the gutter"));
  page->addRow(textLabel(tr("View > Layouts arranges listings and docks. QT_SCALE_FACTOR=1.5 scales the window where "
                            "the desktop does not."),
                         this));
}

void PreferencesDialog::addKeys() {
  auto* page = addPage(tr("&Keys"));
  page->addRow(textLabel(
      tr("Each command can have another key, and there is a preset of gdb's letters. F1 lists the keys."), this));
  addButton(page, "change-keys", tr("&Change Keys..."));
}

void PreferencesDialog::addAmount(QFormLayout* page, const char* name, const QString& label, const QString& what,
                                  std::int64_t bytes, QLabel* problem, const std::function<void(std::int64_t)>& use,
                                  const QString& usual) {
  auto* amount = makeBox(this, name, what);
  amount->setToolTip(what);
  amount->setEditable(true);
  amount->setInsertPolicy(QComboBox::NoInsert);
  for (const auto choice : {std::int64_t{256} << 20, std::int64_t{1} << 30, std::int64_t{2} << 30,
                            std::int64_t{4} << 30, std::int64_t{16} << 30})
    amount->addItem(bytesText(choice));
  amount->setEditText(bytes < 0 ? QString() : bytesText(bytes));
  amount->lineEdit()->setPlaceholderText(usual);
  const auto apply = [amount, problem, use, hasUsual = !usual.isEmpty()] {
    const bool isEmpty = amount->currentText().trimmed().isEmpty();
    const auto chosen = hasUsual && isEmpty ? std::optional<std::int64_t>(-1) : bytesFromText(amount->currentText());
    if (!chosen)
      return problem->setText(QStringLiteral("! ") +
                              tr("'%1' is not an amount of memory; write 512 MiB or 1 GiB").arg(amount->currentText()));
    problem->clear();
    use(*chosen);
  };
  connect(amount->lineEdit(), &QLineEdit::editingFinished, this, apply);
  connect(amount, &QComboBox::activated, this, apply);
  page->addRow(label, amount);
}

void PreferencesDialog::addRunning() {
  auto* page = addPage(tr("&Running"));
  auto* settings = window_.shared().settings;
  addSwitch(page, "run-on-open", tr("Run small models when they are &opened"));
  auto* threads = named(new QSpinBox(this), "preference-threads", tr("Threads"));
  threads->setRange(0, std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
  threads->setSpecialValueText(tr("as LibTorch chooses"));
  threads->setValue(kept::threads.of(*settings));
  threads->setToolTip(tr("Threads of the kernels that run ops; the choice of LibTorch comes back at the next start"));
  connect(threads, &QSpinBox::valueChanged, this, [this, settings](int count) {
    kept::threads.keep(*settings, count);
    applyThreads(window_);
  });
  page->addRow(tr("&Threads"), threads);
  auto* problem = named(textLabel({}, this), "preference-problem");
  auto& controller = *window_.context().controller;
  addAmount(page, "preference-history", tr("&Memory for stepping back"), tr("Memory that stepping back may take"),
            HistoryMemoryDialog::kept(*settings), problem, [settings, &controller](std::int64_t bytes) {
              kept::historyBytes.keep(*settings, bytes);
              controller.run().setHistoryBytes(bytes);
            });
  addAmount(page, "preference-kept", tr("Memory for &values of any op"),
            tr("Memory that the values of ops apart from the position may take; what is beyond it is computed again "
               "when it is looked at"),
            kept::keptBytes.of(*settings), problem, [settings, &controller](std::int64_t bytes) {
              kept::keptBytes.keep(*settings, bytes);
              controller.ahead().setKeptBytes(bytes);
            });
  addAmount(
      page, "preference-running", tr("Memory for &runs"),
      tr("Memory that a run may take; one that is predicted to take more is refused"), kept::runningBytes.of(*settings),
      problem,
      [settings](std::int64_t bytes) {
        kept::runningBytes.keep(*settings, bytes);
        applyAllowedMemory(*settings);
      },
      tr("what is free"));
  addAmount(
      page, "preference-opening", tr("Memory for openin&g"),
      tr("Memory that opening a file may allocate where it runs ops"), kept::openingBytes.of(*settings), problem,
      [settings](std::int64_t bytes) {
        kept::openingBytes.keep(*settings, bytes);
        applyAllowedMemory(*settings);
      },
      tr("a quarter of what is free"));
  page->addRow(problem);
}

void PreferencesDialog::addSources() {
  auto* page = addPage(tr("&Sources and Editor"));
  auto* settings = window_.shared().settings;
  auto* editor = makeBox(this, "preference-editor", tr("Command of the editor"));
  editor->setEditable(true);
  for (const auto& known : installedEditors()) editor->addItem(known.command);
  editor->setCurrentText(editorCommand(*settings));
  editor->lineEdit()->setPlaceholderText(QStringLiteral("code -g %f:%l"));
  const auto apply = [settings, editor] { setEditorCommand(*settings, editor->currentText().trimmed()); };
  connect(editor->lineEdit(), &QLineEdit::editingFinished, this, apply);
  connect(editor, &QComboBox::activated, this, apply);
  page->addRow(tr("&Editor"), editor);
  page->addRow(new QLabel(tr("%f is the file, %l the line. No shell reads the command."), this));
  addButton(page, "source-settings", tr("&Where Sources Lie..."));
}

void PreferencesDialog::addFiles() {
  auto* page = addPage(tr("&Files"));
  auto* settings = window_.shared().settings;
  addSwitch(page, "reopen-at-start", tr("&Open the files of the last session at start"));
  auto* forget = named(new QPushButton(tr("&Forget Recent Files"), this), "preference-forget");
  forget->setAutoDefault(false);
  connect(forget, &QPushButton::clicked, this, [settings, forget] {
    kept::recentFiles.forget(*settings);
    forget->setEnabled(false);
  });
  forget->setEnabled(!kept::recentFiles.of(*settings).isEmpty());
  page->addRow(forget);
  auto* where = textLabel(tr("All of this is kept in %1").arg(settings->fileName()), this);
  where->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  page->addRow(where);
}

}  // namespace retrograd::views

#include "preferences.moc"
