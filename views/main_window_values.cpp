// What the main window asks about values: where a NaN came from, what to fill in, where to save.
#include <QFileDialog>
#include <QInputDialog>
#include <QLocale>
#include <QStatusBar>

#include "views/docks/findings_dock.h"
#include "views/main_window.h"
#include "views/models/own_names.h"

namespace retrograd::views {

void MainWindow::walkToRoot() {
  const auto& document = controller_->document();
  if (!document) return;
  const auto& bad = execution_.badValues();
  auto start = bad.contains(selection_.value()) ? selection_.value() : ValueId();
  if (!start && selection_.op())
    for (const auto& row : valueRows(*document->analysis->document, selection_.op()))
      if (bad.contains(row.value)) start = row.value;
  showDock(findings_);
  findings_->walk(start);
}

void MainWindow::fillValue() {
  const auto& document = controller_->document();
  const auto value = selection_.value();
  if (!document || !value) return;
  const auto name = nameOf(*document->analysis->document, value, context_.notes);
  auto* dialog = new QInputDialog(this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(tr("Fill %1").arg(name));
  dialog->setLabelText(tr("A number for every element of %1 (nan and inf are numbers too):").arg(name));
  dialog->setInputMode(QInputDialog::TextInput);
  dialog->setTextValue(QStringLiteral("0"));
  connect(dialog, &QInputDialog::textValueSelected, this, [this, value, generation = document->generation](const QString& text) {
    bool isNumber = false;
    const double number = QLocale::c().toDouble(text.trimmed(), &isNumber);
    if (!isNumber) return messages_->show(MessageBar::Kind::warning, tr("'%1' is no number: nothing was filled").arg(text));
    if (controller_->document() && controller_->document()->generation == generation) controller_->fillValue(value, number);
  });
  dialog->open();
}

void MainWindow::saveContents() {
  const auto& document = controller_->document();
  const auto value = selection_.value();
  if (!document || !value) return;
  const auto name = nameOf(*document->analysis->document, value, context_.notes);
  auto* dialog = new QFileDialog(this, tr("Save %1").arg(name), {}, tr("NumPy (*.npy);;Safetensors (*.safetensors)"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setDefaultSuffix(QStringLiteral("npy"));
  connect(dialog, &QFileDialog::filterSelected, dialog,
          [dialog](const QString& filter) { dialog->setDefaultSuffix(filter.contains(QStringLiteral("npy")) ? QStringLiteral("npy") : QStringLiteral("safetensors")); });
  connect(dialog, &QFileDialog::fileSelected, this, [this, value, name, generation = document->generation](const QString& path) {
    if (!controller_->document() || controller_->document()->generation != generation) return;
    controller_->saveValue(value, path, [this, name, path](const QString& problem) {
      if (!problem.isEmpty()) return messages_->show(MessageBar::Kind::error, problem);
      statusBar()->showMessage(tr("%1 was written to %2").arg(name, path), 8000);
    });
  });
  dialog->open();
}

}  // namespace retrograd::views
