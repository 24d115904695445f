#include "views/dialogs/inputs_dialog.h"

#include <QDialogButtonBox>
#include <QFileInfo>
#include <QGridLayout>
#include <QTreeView>
#include <QVBoxLayout>

#include "views/text/format.h"
#include "views/widgets/controls.h"
#include "views/widgets/dock_tree.h"

namespace retrograd::views {

InputsDialog::InputsDialog(const OpenDocument& document, QWidget* parent)
    : QDialog(parent), request_(document.request), model_(new InputsModel(document, this)) {
  setWindowTitle(tr("Inputs"));
  setObjectName(QStringLiteral("inputs-dialog"));
  auto* table = new QTreeView(this);
  prepareTree(*table, model_, {}, tr("Inputs of the computation"), {.isFlat = true});
  table->setFrameShape(QFrame::StyledPanel);
  for (int column = 0; column < InputsModel::columns; ++column) table->resizeColumnToContents(column);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel, this);
  ok_ = buttons->button(QDialogButtonBox::Ok);
  ok_->setText(tr("&Use these"));
  why_ = new QLabel(this);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(table, 1);
  layout->addWidget(makeSources());
  layout->addWidget(why_);
  layout->addWidget(buttons);
  connect(buttons, &QDialogButtonBox::accepted, this, [this] {
    Q_EMIT chosen(request());
    accept();
  });
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  if (document.analysis->file.sampleInputs.empty() && request_.inputs.empty() && !request_.drawn) {
    sample_->setEnabled(false);
    sample_->setToolTip(tr("The archive holds no sample inputs"));
    drawn_->setChecked(true);
  }
  resize(620, 420);
  update();
}

QWidget* InputsDialog::makeSources() {
  auto* box = new QWidget(this);
  sample_ = new QRadioButton(tr("&Sample inputs of the archive"), box);
  drawn_ = new QRadioButton(tr("&Drawn at random"), box);
  file_ = new QRadioButton(tr("From a &file, one tensor an input:"), box);
  path_ = new QLineEdit(toQt(request_.inputs), box);
  path_->setPlaceholderText(tr("inputs.safetensors"));
  path_->setAccessibleName(tr("File with inputs"));
  browse_ = new QPushButton(tr("&Browse..."), box);
  seed_ = new QLineEdit(QString::number(request_.seed.value_or(0)), box);  // 64 bits, more than a spin box takes
  named(seed_, "inputs-seed", tr("Seed of drawn inputs, cotangents and random ops"));
  seed_->setMaximumWidth(fontMetrics().horizontalAdvance(QStringLiteral("000000000000000000000000")));
  auto* seedLabel = new QLabel(tr("Se&ed of drawn inputs, cotangents and random ops:"), box);
  seedLabel->setBuddy(seed_);
  auto* layout = withMargins(new QGridLayout(box), {});
  layout->addWidget(sample_, 0, 0, 1, 3);
  layout->addWidget(drawn_, 1, 0, 1, 3);
  file_->setToolTip(
      tr("A safetensors file with a tensor for each input, by its name, and for results of opaque ops that are to be "
         "known"));
  layout->addWidget(file_, 2, 0);
  layout->addWidget(path_, 2, 1);
  layout->addWidget(browse_, 2, 2);
  layout->addWidget(seedLabel, 3, 0);
  layout->addWidget(seed_, 3, 1, Qt::AlignLeft);
  layout->setColumnStretch(1, 1);
  (request_.drawn ? drawn_ : request_.inputs.empty() ? sample_ : file_)->setChecked(true);
  for (auto* button : {sample_, drawn_, file_}) connect(button, &QRadioButton::toggled, this, &InputsDialog::update);
  for (auto* line : {path_, seed_}) connect(line, &QLineEdit::textChanged, this, &InputsDialog::update);
  connect(browse_, &QPushButton::clicked, this, &InputsDialog::browse);
  return box;
}

void InputsDialog::browse() {
  const auto use = [this](const QString& path) {
    file_->setChecked(true);
    path_->setText(path);
  };
  chooseFile(this, tr("Inputs"), QFileInfo(toQt(request_.path)).absolutePath(),
             tr("safetensors (*.safetensors);;All files (*)"), this, use);
}

void InputsDialog::update() {
  path_->setEnabled(file_->isChecked());
  QString problem;
  if (file_->isChecked() && path_->text().isEmpty()) problem = tr("Name the file with the inputs.");
  if (file_->isChecked() && !path_->text().isEmpty() && !QFileInfo::exists(path_->text()))
    problem = tr("There is no such file.");
  if (!seedFromText(seed_->text())) problem = noSeedText(seed_->text());
  why_->setText(problem);
  ok_->setEnabled(problem.isEmpty());
  ok_->setToolTip(problem);
}

OpenRequest InputsDialog::request() const {
  auto request = request_;
  request.drawn = drawn_->isChecked();
  request.inputs = file_->isChecked() ? path_->text().toStdString() : std::string();
  // Zero where nobody asked is not a wish: what was recorded with a step may have a seed.
  if (const auto seed = seedFromText(seed_->text()); seed && (*seed != 0 || request_.seed)) request.seed = seed;
  request.gradInputs = model_->gradInputs();
  return request;
}

}  // namespace retrograd::views
