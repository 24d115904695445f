#include "views/dialogs/words_dialog.h"

#include <QDialog>
#include <QDialogButtonBox>
#include <QFile>
#include <QVBoxLayout>

#include "views/dialogs/searched_table.h"

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

}  // namespace

void showWords(QWidget* parent) {
  auto* dialog = new QDialog(parent);
  dialog->setObjectName(QStringLiteral("words"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(QObject::tr("Words"));
  auto* table = new SearchedTable({QObject::tr("Word"), QObject::tr("Meaning")}, QObject::tr("Words"), dialog);
  for (const auto& row : glossary()) table->add(row);
  table->fit();
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, dialog);
  QObject::connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::reject);
  auto* layout = new QVBoxLayout(dialog);
  layout->addWidget(table);
  layout->addWidget(buttons);
  dialog->resize(760, 560);
  dialog->show();
  table->setFocus();
}

}  // namespace retrograd::views
