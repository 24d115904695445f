#include "views/dialogs/source_dialog.h"

#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QVBoxLayout>

#include "views/settings/editor.h"
#include "views/widgets/controls.h"
#include "views/widgets/item_view.h"

namespace retrograd::views {

SourceDialog::SourceDialog(const SourcePaths& paths, const QString& editor, QWidget* parent)
    : QDialog(parent), table_(new QTableWidget(0, 2, this)), editor_(new QComboBox(this)) {
  setAttribute(Qt::WA_DeleteOnClose);
  setObjectName(QStringLiteral("source-dialog"));
  setWindowTitle(tr("Source Settings"));
  named(table_, "source-mappings", tr("Where sources lie"));
  table_->setHorizontalHeaderLabels({tr("Sources whose names begin with"), tr("Lie in")});
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  table_->horizontalHeader()->setHighlightSections(false);
  table_->verticalHeader()->hide();
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setTabKeyNavigation(false);
  for (const auto& mapping : paths.mappings()) addRow(mapping);
  auto* add = new QPushButton(tr("&Add"), this);
  auto* remove = new QPushButton(tr("&Remove"), this);
  add->setAutoDefault(false);
  remove->setAutoDefault(false);
  connect(add, &QPushButton::clicked, this, [this] {
    addRow({});
    table_->setCurrentCell(table_->rowCount() - 1, 0);
    table_->editItem(table_->currentItem());
  });
  connect(remove, &QPushButton::clicked, this, [this] { table_->removeRow(table_->currentRow()); });
  auto* buttons = new QHBoxLayout;
  buttons->addWidget(add);
  buttons->addWidget(remove);
  buttons->addStretch(1);

  editor_->setObjectName(QStringLiteral("source-editor"));
  prepareBox(editor_, tr("Command of the editor"));
  editor_->setEditable(true);
  for (const auto& known : installedEditors()) editor_->addItem(known.command);
  editor_->setCurrentText(editor);
  editor_->lineEdit()->setPlaceholderText(tr("code -g %f:%l"));
  auto* about = new QLabel(tr("&Open in Editor runs:"), this);
  about->setBuddy(editor_);
  auto* hint = new QLabel(tr("%f is the file, %l the line. No shell reads the command."), this);
  auto* box = dialogButtons(QDialogButtonBox::Ok | QDialogButtonBox::Cancel, this);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(
      textLabel(tr("Sources are searched where the model says, then next to it. Sources elsewhere:"), this));
  layout->addWidget(table_, 1);
  layout->addLayout(buttons);
  layout->addSpacing(8);
  layout->addWidget(about);
  layout->addWidget(editor_);
  layout->addWidget(hint);
  layout->addWidget(box);
  resize(620, 400);
}

void SourceDialog::addRow(const PathMapping& mapping) {
  const int row = table_->rowCount();
  table_->insertRow(row);
  table_->setItem(row, 0, new QTableWidgetItem(mapping.from));
  table_->setItem(row, 1, new QTableWidgetItem(mapping.to));
}

SourcePaths SourceDialog::paths() const {
  SourcePaths paths;
  for (int row = 0; row < table_->rowCount(); ++row) {
    const PathMapping mapping{table_->item(row, 0)->text().trimmed(), table_->item(row, 1)->text().trimmed()};
    if (!mapping.from.isEmpty() && !mapping.to.isEmpty()) paths.add(mapping);
  }
  return paths;
}

}  // namespace retrograd::views
