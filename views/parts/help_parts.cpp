// Help > Start Page, Help > Words, Help > Copy as Bug Report (in listings too) and Help > About Retrograd.
#include <QApplication>
#include <QClipboard>
#include <QDialog>
#include <QDialogButtonBox>
#include <QFile>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QStatusBar>
#include <QVBoxLayout>

#include "views/dialogs/words_dialog.h"
#include "views/window/bug_report.h"
#include "views/window/main_window.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

void copyReport(MainWindow& window) {
  const auto& context = window.context();
  const auto op = context.selection->op();
  QApplication::clipboard()->setText(
      bugReport(context.controller->document().get(), op, context.execution->now(), versions()));
  window.statusBar()->showMessage(
      op ? MainWindow::tr("Copied: versions, the file and the selected op, without contents of tensors")
         : MainWindow::tr("Copied: versions and the file. Select an op to include it"),
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
  auto* dialog = new QDialog(&window);
  dialog->setObjectName(QStringLiteral("about"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(MainWindow::tr("About Retrograd"));
  auto* icon = new QLabel(dialog);
  icon->setPixmap(Theme::appIcon().pixmap(64, 64));
  auto* title = new QLabel(QStringLiteral("Retrograd"), dialog);
  auto font = title->font();
  font.setPointSizeF(font.pointSizeF() * 1.7);
  title->setFont(font);
  auto* what = selectable(MainWindow::tr("A desktop debugger for autograd: open a saved model trace, see its forward "
                                         "and backward next to each other, every "
                                         "backward op linked to the forward op "
                                         "it came from, and run both op by op."),
                          dialog);
  auto* versionsLabel = selectable(versions().lines().join(QLatin1Char('\n')), dialog);
  versionsLabel->setObjectName(QStringLiteral("about-versions"));
  auto* legal = selectable(MainWindow::tr("Apache License 2.0. It uses the system's Qt (LGPL 3), libzip (BSD), "
                                          "Graphviz (EPL 1.0) and OpenMP runtime (GPL 3 "
                                          "with the runtime library exception); "
                                          "what comes with it or is compiled into it has these licences:"),
                           dialog);
  auto* text = new QPlainTextEdit(licences(), dialog);
  text->setObjectName(QStringLiteral("about-licences"));
  text->setAccessibleName(MainWindow::tr("Licences"));
  text->setReadOnly(true);
  text->setTabChangesFocus(true);
  text->setFont(Theme::codeFont());
  text->setLineWrapMode(QPlainTextEdit::NoWrap);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, dialog);
  auto* copy = buttons->addButton(MainWindow::tr("&Copy Versions"), QDialogButtonBox::ActionRole);
  QObject::connect(copy, &QPushButton::clicked, dialog,
                   [] { QApplication::clipboard()->setText(versions().lines().join(QLatin1Char('\n'))); });
  QObject::connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::reject);
  auto* words = new QVBoxLayout;
  words->setSpacing(8);
  words->addWidget(title);
  words->addWidget(what);
  words->addWidget(versionsLabel);
  auto* head = new QHBoxLayout;
  head->setSpacing(16);
  head->addWidget(icon, 0, Qt::AlignTop);
  head->addLayout(words, 1);
  auto* layout = new QVBoxLayout(dialog);
  layout->setContentsMargins(16, 16, 16, 12);
  layout->setSpacing(12);
  layout->addLayout(head);
  layout->addWidget(legal);
  layout->addWidget(text, 1);
  layout->addWidget(buttons);
  dialog->resize(720, 560);
  dialog->open();
}

void addStartPage(MainWindow& window) {
  auto& actions = window.actions();
  auto* start =
      actions.add("start-page", MainWindow::tr("&Start Page"),
                  MainWindow::tr("Samples, recent files and the tour, in a new window: what is open stays"), {});
  actions.allowUnless(start, [&window] {
    const bool isShown = !window.context().controller->document() && !window.hasPanelAlone();
    return isShown ? MainWindow::tr("It is in this window") : QString();
  });
  QObject::connect(start, &QAction::triggered, &window, [&window] {
    auto* other = new MainWindow(window.shared());
    other->show();
  });
  window.menu("help")->insertAction(actions.palette, start);
}

const WindowPart helpPartsPart(PartOrder::help, [](MainWindow& window) {
  addStartPage(window);
  auto& actions = window.actions();
  auto* report = actions.add("copy-bug-report", MainWindow::tr("Copy as &Bug Report"),
                             MainWindow::tr("Puts on the clipboard what a report needs: versions, file, seed, "
                                            "partition, the selected op's schema and shapes; no contents, no paths"),
                             {});
  auto* words = actions.add("words", MainWindow::tr("&Words..."),
                            MainWindow::tr("What a word of this window means: origin, joint, saved, cotangent"), {});
  auto* help = window.menu("help");
  help->insertAction(actions.about, words);
  help->insertAction(actions.about, report);
  help->insertSeparator(actions.about);
  QObject::connect(words, &QAction::triggered, &window, [&window] { showWords(&window); });
  QObject::connect(report, &QAction::triggered, &window, [&window] { copyReport(window); });
  QObject::connect(actions.about, &QAction::triggered, &window, [&window] { showAbout(window); });
  for (auto kind : {TraceKind::computation, TraceKind::joint, TraceKind::forward, TraceKind::backward})
    QObject::connect(&window.listings().listing(kind), &ListingView::menuAboutToShow, &window, [report](QMenu* menu) {
      menu->addSeparator();
      menu->addAction(report);
    });
});

}  // namespace
}  // namespace retrograd::views
