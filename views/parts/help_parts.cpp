// Help > Start Page, Help > Words, Help > Copy as Bug Report (in listings too) and Help > About Retrograd.
#include <QApplication>
#include <QClipboard>
#include <QDialog>
#include <QFile>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QStatusBar>
#include <QVBoxLayout>

#include "views/dialogs/searched_table.h"
#include "views/widgets/controls.h"
#include "views/window/bug_report.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

/// Rows of the page's table: a word and its meaning, without the signs of Markdown.
QList<QStringList> glossary() {
  QFile file(QStringLiteral(":/retrograd/glossary.md"));
  if (!file.open(QIODevice::ReadOnly)) return {};
  QList<QStringList> rows;
  for (auto line : QString::fromUtf8(file.readAll()).split(QLatin1Char('\n'))) {
    if (!line.startsWith(QStringLiteral("| ")) || line.startsWith(QStringLiteral("| ---"))) continue;
    line.remove(QLatin1Char('`')).remove(QStringLiteral("**"));
    const auto cells = line.split(QLatin1Char('|'));
    if (cells.size() >= 4) rows.append({cells[1].trimmed(), cells.mid(2, cells.size() - 3).join('|').trimmed()});
  }
  return rows.mid(1);  // after the headers
}

/// Help > Words: the glossary in a dialog, to look a word up without leaving the window.
void showWords(QWidget* parent) {
  auto* dialog = named(new QDialog(parent), "words");
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(tr("Words"));
  auto* table = new SearchedTable({tr("Word"), tr("Meaning")}, tr("Words"), dialog);
  for (const auto& row : glossary()) table->add(row);
  table->fit();
  auto* buttons = dialogButtons(QDialogButtonBox::Close, dialog);
  auto* layout = new QVBoxLayout(dialog);
  layout->addWidget(table);
  layout->addWidget(buttons);
  dialog->resize(760, 560);
  dialog->show();
  table->setFocus();
}

void copyReport(MainWindow& window) {
  const auto& context = window.context();
  const auto op = context.selection->op();
  QApplication::clipboard()->setText(
      bugReport(context.controller->document().get(), op, context.execution->now(), versions()));
  window.statusBar()->showMessage(op ? tr("Copied: versions, the file and the selected op, without contents of tensors")
                                     : tr("Copied: versions and the file. Select an op to include it"),
                                  8000);
}

QLabel* selectable(const QString& text, QWidget* parent) {
  auto* label = new QLabel(text, parent);
  label->setWordWrap(true);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  return label;
}

QString licences() {
  QFile file(QStringLiteral(":/retrograd/licenses/copyright"));
  if (!file.open(QIODevice::ReadOnly)) return {};
  return QString::fromUtf8(file.readAll());
}

void showAbout(MainWindow& window) {
  auto* dialog = named(new QDialog(&window), "about");
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(tr("About Retrograd"));
  auto* icon = new QLabel(dialog);
  icon->setPixmap(Theme::appIcon().pixmap(64, 64));
  auto* title = new QLabel(QStringLiteral("Retrograd"), dialog);
  auto font = title->font();
  font.setPointSizeF(font.pointSizeF() * 1.7);
  title->setFont(font);
  auto* what = selectable(tr("A desktop debugger for autograd: open a saved model trace, see its forward "
                             "and backward next to each other, every "
                             "backward op linked to the forward op "
                             "it came from, and run both op by op."),
                          dialog);
  auto* versionsLabel = selectable(versions().lines().join(QLatin1Char('\n')), dialog);
  versionsLabel->setObjectName(QStringLiteral("about-versions"));
  auto* legal = selectable(tr("Apache License 2.0. It uses the system's Qt (LGPL 3), libzip (BSD), "
                              "Graphviz (EPL 1.0) and OpenMP runtime (GPL 3 "
                              "with the runtime library exception); "
                              "what comes with it or is compiled into it has these licences:"),
                           dialog);
  auto* text = named(new QPlainTextEdit(licences(), dialog), "about-licences", tr("Licences"));
  text->setReadOnly(true);
  text->setTabChangesFocus(true);
  text->setFont(Theme::codeFont());
  text->setLineWrapMode(QPlainTextEdit::NoWrap);
  auto* buttons = dialogButtons(QDialogButtonBox::Close, dialog);
  auto* copy = buttons->addButton(tr("&Copy Versions"), QDialogButtonBox::ActionRole);
  QObject::connect(copy, &QPushButton::clicked, dialog,
                   [] { QApplication::clipboard()->setText(versions().lines().join(QLatin1Char('\n'))); });
  auto* words = new QVBoxLayout;
  words->setSpacing(8);
  words->addWidget(title);
  words->addWidget(what);
  words->addWidget(versionsLabel);
  auto* head = new QHBoxLayout;
  head->setSpacing(16);
  head->addWidget(icon, 0, Qt::AlignTop);
  head->addLayout(words, 1);
  auto* layout = withMargins(new QVBoxLayout(dialog), {16, 16, 16, 12}, 12);
  layout->addLayout(head);
  layout->addWidget(legal);
  layout->addWidget(text, 1);
  layout->addWidget(buttons);
  dialog->resize(720, 560);
  dialog->open();
}

void addStartPage(MainWindow& window) {
  auto& actions = window.actions();
  auto* start = actions.add("start-page", tr("&Start Page"),
                            tr("Samples, recent files and the tour; what is open stays, and comes back with Esc"), {});
  actions.allowUnless(start, [&window] {
    const bool isShown = !window.context().controller->document() && !window.hasPanelAlone();
    return isShown ? tr("It is in this window") : QString();
  });
  QObject::connect(start, &QAction::triggered, &window, [&window] { window.showStartPage(!window.showsStartPage()); });
  window.menu("help")->insertAction(actions.palette, start);
}

const WindowPart helpPartsPart(PartOrder::help, [](MainWindow& window) {
  addStartPage(window);
  auto& actions = window.actions();
  auto* report = actions.add("copy-bug-report", tr("Copy as &Bug Report"),
                             tr("Puts on the clipboard what a report needs: versions, file, seed, "
                                "partition, the selected op's schema and shapes; no contents, no paths"),
                             {});
  auto* words = actions.add("words", tr("&Words..."),
                            tr("What a word of this window means: origin, joint, saved, cotangent"), {});
  auto* help = window.menu("help");
  help->insertAction(actions.about, words);
  help->insertAction(actions.about, report);
  help->insertSeparator(actions.about);
  QObject::connect(words, &QAction::triggered, &window, [&window] { showWords(&window); });
  QObject::connect(report, &QAction::triggered, &window, [&window] { copyReport(window); });
  QObject::connect(actions.about, &QAction::triggered, &window, [&window] { showAbout(window); });
  for (auto kind : traceKinds)
    QObject::connect(&window.listings().listing(kind), &ListingView::menuAboutToShow, &window, [report](QMenu* menu) {
      menu->addSeparator();
      menu->addAction(report);
    });
});

}  // namespace
}  // namespace retrograd::views
