#include "views/dialogs/export_dialog.h"

#include <QDialogButtonBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QToolButton>
#include <QVBoxLayout>

#include "views/settings/settings.h"
#include "views/text/format.h"
#include "views/text/trace_index.h"
#include "views/widgets/controls.h"
#include "views/widgets/item_view.h"

namespace retrograd::views {
namespace {

const QString measureTag = QStringLiteral("export");

DrawingFormat drawingOf(const ExportFormat& format) {
  return format.name == "svg" ? DrawingFormat::svg : format.name == "pdf" ? DrawingFormat::pdf : DrawingFormat::png;
}

}  // namespace

ExportDialog::ExportDialog(ViewContext context, QSettings* settings, ShownGraph shownGraph, QWidget* parent)
    : QDialog(parent),
      context_(context),
      settings_(settings),
      shownGraph_(std::move(shownGraph)),
      job_(new PoolJob(this)) {
  setObjectName(QStringLiteral("export-dialog"));
  setWindowTitle(tr("Export"));
  format_ = named(new QComboBox(this), "export-format", tr("Format"));
  for (const auto& format : exportFormats()) format_->addItem(toQt(format.name).toUpper(), toQt(format.name));
  description_ = textLabel({}, this);
  times_ = named(new QCheckBox(tr("with &times of a run"), this), "export-times");
  message_ = named(textLabel({}, this), "export-message", tr("What came of it"));
  message_->setMinimumHeight(fontMetrics().lineSpacing() * 2);
  bar_ = new QProgressBar(this);
  bar_->setAccessibleName(tr("Progress"));
  bar_->setTextVisible(false);
  bar_->setMaximumHeight(10);
  auto* buttons = new QDialogButtonBox(this);
  export_ = buttons->addButton(tr("&Export"), QDialogButtonBox::ActionRole);
  export_->setObjectName(QStringLiteral("export-start"));
  export_->setDefault(true);
  close_ = buttons->addButton(QDialogButtonBox::Close);
  close_->setObjectName(QStringLiteral("export-close"));

  auto* form = new QFormLayout;
  form->addRow(tr("&Format"), format_);
  form->addRow(QString(), description_);
  form->addRow(tr("Traces"), makeTraces());
  form->addRow(QString(), times_);
  form->addRow(tr("Picture"), drawing_ = makeDrawing());
  auto* path = new QLabel(tr("F&ile"), this);
  form->addRow(path, makePath());
  path->setBuddy(path_);
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(form);
  layout->addStretch(1);
  layout->addWidget(message_);
  layout->addWidget(bar_);
  layout->addWidget(buttons);
  resize(620, 330);

  connect(format_, &QComboBox::currentIndexChanged, this, &ExportDialog::formatChanged);
  connect(export_, &QPushButton::clicked, this, &ExportDialog::start);
  connect(close_, &QPushButton::clicked, this, &ExportDialog::reject);
  connect(context_.controller, &DocumentController::documentChanged, this, &ExportDialog::documentChanged);
  connect(job_, &PoolJob::progressed, this, [this](const QString& stage, double fraction) {
    bar_->setRange(0, 1000);
    bar_->setValue(static_cast<int>(fraction * 1000));
    say(stage.isEmpty() ? tr("Writing ...") : tr("%1 ...").arg(stage), false);
  });
  format_->setCurrentIndex(format_->findData(QStringLiteral("svg")));
  documentChanged();
  formatChanged();
}

QWidget* ExportDialog::makeTraces() {
  auto* row = new QWidget(this);
  auto* layout = withMargins(new QHBoxLayout(row), {});
  for (auto kind : traceKinds) {
    auto* box = named(new QCheckBox(titleText(kind), row), QStringLiteral("export-") + toQt(name(kind)));
    traces_[kind] = box;
    layout->addWidget(box);
    connect(box, &QCheckBox::clicked, this, [this, kind](bool on) { traceToggled(kind, on); });
  }
  layout->addStretch(1);
  return row;
}

QWidget* ExportDialog::makeDrawing() {
  auto* row = new QWidget(this);
  groups_ = makeBox(row, "export-groups", tr("Which groups are open"));
  groups_->addItem(tr("As the graph shows it"), static_cast<int>(Groups::shown));
  groups_->addItem(tr("As it opens at first"), static_cast<int>(Groups::opening));
  groups_->addItem(tr("Every group open"), static_cast<int>(Groups::all));
  scale_ = new QComboBox(row);
  prepareBox(scale_, tr("Size of the picture"));
  for (int times : {1, 2, 3}) scale_->addItem(tr("%1 \u00d7 the pixels").arg(times), times);
  dark_ = named(new QCheckBox(tr("&Dark"), row), "export-dark");
  auto* layout = withMargins(new QHBoxLayout(row), {});
  layout->addWidget(groups_);
  layout->addWidget(scale_);
  layout->addWidget(dark_);
  layout->addStretch(1);
  return row;
}

QWidget* ExportDialog::makePath() {
  auto* row = new QWidget(this);
  path_ = named(new QLineEdit(row), "export-path", tr("File to write"));
  auto* browse = new QToolButton(row);
  browse->setText(QStringLiteral("..."));
  browse->setAccessibleName(tr("Choose a file"));
  auto* layout = withMargins(new QHBoxLayout(row), {});
  layout->addWidget(path_, 1);
  layout->addWidget(browse);
  connect(browse, &QToolButton::clicked, this, &ExportDialog::browse);
  connect(path_, &QLineEdit::textEdited, this, [this] { namedPath_ = true; });
  connect(path_, &QLineEdit::textChanged, this, &ExportDialog::updateState);
  return row;
}

const ExportFormat& ExportDialog::format() const {
  return *findExportFormat(format_->currentData().toString().toStdString());
}

std::vector<TraceKind> ExportDialog::traces() const {
  std::vector<TraceKind> chosen;
  for (auto kind : traceKinds)
    if (traces_[kind]->isChecked()) chosen.push_back(kind);
  return chosen;
}

QString ExportDialog::suffix() const {
  return format().suffix.empty() ? QStringLiteral("-profile.json") : toQt(format().suffix);
}

/// Next to the last one, else next to the model, under its name.
QString ExportDialog::suggestedPath() const {
  const auto& document = context_.controller->document();
  if (!document) return {};
  const QFileInfo model(toQt(document->request.path));
  const auto folder = kept::exportFolder.of(*settings_, model.absolutePath());
  return QStringLiteral("%1/%2%3").arg(folder, model.completeBaseName(), suffix());
}

/// A path that someone named is theirs: another format changes its ending, and only where that is the one of the format
/// before.
void ExportDialog::followFormat() {
  const auto now = suffix(), before = std::exchange(suffix_, now);
  if (!namedPath_) return path_->setText(suggestedPath());
  if (auto path = path_->text(); !before.isEmpty() && path.endsWith(before))
    path_->setText(path.chopped(before.size()) + now);
}

void ExportDialog::documentChanged() {
  const auto& document = context_.controller->document();
  if (measuring_) cancel();  // the run was of another document; what is being written holds its own
  if (!document && !busy()) return hide();
  const bool derived = document && document->analysis->derived();
  for (auto kind : traceKinds) {
    auto* box = traces_[kind];
    box->setEnabled(derived || kind == TraceKind::computation);
    box->setToolTip(box->isEnabled() ? QString() : tr("It could not be derived: see Problems"));
    if (!box->isEnabled()) box->setChecked(false);
  }
  const auto path = document ? document->request.path : std::string();
  if (path != documentPath_) {  // what was chosen for a file is kept when that is read again
    documentPath_ = path;
    namedPath_ = false;
    formatChanged();
  }
  if (traces().empty()) traces_[TraceKind::computation]->setChecked(true);
  updateState();
}

void ExportDialog::formatChanged() {
  const auto& now = format();
  auto sentence = toQt(now.description);
  description_->setText(sentence.replace(0, 1, sentence.front().toUpper()));
  drawing_->setVisible(now.isDrawing);
  if (auto* label = qobject_cast<QFormLayout*>(layout()->itemAt(0)->layout())->labelForField(drawing_))
    label->setVisible(now.isDrawing);
  scale_->setVisible(now.name == "png");
  times_->setVisible(now.run == ExportFormat::Run::wanted);
  for (auto kind : traceKinds) {
    auto* box = traces_[kind];
    box->setChecked(box->isEnabled() && std::ranges::find(now.traces, kind) != now.traces.end());
  }
  if (traces().empty()) traces_[TraceKind::computation]->setChecked(true);
  followFormat();
  updateState();
}

/// A picture shows one trace.
void ExportDialog::traceToggled(TraceKind kind, bool on) {
  if (format().isDrawing)
    for (auto other : traceKinds) traces_[other]->setChecked(other == kind);
  else if (!on && traces().empty()) traces_[kind]->setChecked(true);
  updateState();
}

void ExportDialog::browse() {
  auto* dialog = new QFileDialog(this, tr("Export To"), path_->text());
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setFileMode(QFileDialog::AnyFile);
  connect(dialog, &QFileDialog::fileSelected, this, &ExportDialog::namePath);
  dialog->open();
}

void ExportDialog::namePath(const QString& path) {
  namedPath_ = true;
  path_->setText(path);
}

QString ExportDialog::problem() const {
  const auto& document = context_.controller->document();
  if (!document) return tr("No file is open");
  if (path_->text().trimmed().isEmpty()) return tr("Name the file to write");
  const QFileInfo target(path_->text().trimmed());
  if (target.isDir()) return tr("That is a folder: name a file in it");
  if (target.canonicalFilePath() == QFileInfo(toQt(document->request.path)).canonicalFilePath() && target.exists())
    return tr("That is the file that is exported: name another one");
  if (format().run == ExportFormat::Run::needed && !document->noRunReason.isEmpty())
    return tr("The format shows a run: %1").arg(document->noRunReason);
  return {};
}

void ExportDialog::updateState() {
  const bool running = busy();
  const auto reason = running ? QString() : problem();
  export_->setEnabled(!running && reason.isEmpty());
  export_->setToolTip(reason);
  bar_->setVisible(running);
  close_->setText(running ? tr("&Cancel") : tr("&Close"));
  if (running) return;
  const bool replaces = reason.isEmpty() && QFileInfo::exists(path_->text().trimmed());
  say(!reason.isEmpty() ? reason : replaces ? tr("The file is there already and will be replaced") : QString(), false);
}

void ExportDialog::say(const QString& text, bool isProblem) {
  message_->setText(isProblem ? QStringLiteral("! ") + text : text);
}

void ExportDialog::choose(const QString& format, const QList<TraceKind>& traces, const QString& path) {
  format_->setCurrentIndex(format_->findData(format));
  for (auto kind : traceKinds) traces_[kind]->setChecked(traces.contains(kind));
  namePath(path);
}

void ExportDialog::start() {
  if (busy() || !problem().isEmpty()) return;
  bar_->setRange(0, 0);
  const auto& now = format();
  const bool wantsRun =
      now.run == ExportFormat::Run::needed || (now.run == ExportFormat::Run::wanted && times_->isChecked());
  if (!wantsRun) return write({});
  measuring_ = true;
  say(tr("Running the model once ..."), false);
  const auto question = [this](const QuestionContext& context, const Progress& progress) -> Worker::Deliver {
    auto measures = context.engine.measure(context.document.analysis, progress);
    return [this, measures = std::move(measures)] {
      measuring_ = false;
      write(measures);
    };
  };
  context_.controller->questions().ask(
      this, measureTag, tr("Running for the export"), question, [this](const QString& message) {
        if (!measuring_) return;  // cancelled here, and by now it may be writing something else
        measuring_ = false;
        finished({}, message.isEmpty() ? tr("Cancelled; nothing was written") : message);
      });
  updateState();
  say(tr("Running the model once ..."), false);
}

void ExportDialog::write(std::vector<OpMeasure> measures) {
  const auto analysis = context_.controller->document()->analysis;
  const auto path = path_->text().trimmed();
  const auto* now = &format();
  const auto groups = static_cast<Groups>(groups_->currentData().toInt());
  const auto chosen = traces();
  std::optional<GraphSheet> sheet;
  if (now->isDrawing && groups == Groups::shown) sheet = shownGraph_(chosen.front(), dark_->isChecked());
  GraphDrawing drawing;
  drawing.dark = dark_->isChecked();
  drawing.openAll = groups == Groups::all;
  drawing.scale = scale_->currentData().toDouble();
  job_->start([this, analysis, path, now, chosen, sheet, drawing,
               measures = std::move(measures)](const Progress& progress) -> PoolJob::Deliver {
    QString problem;
    try {
      const auto file = path.toStdString();
      if (sheet)
        writeWhole(file, [&](ExportSink& sink) {
          drawSheet(*sheet, drawingOf(*now), drawing.scale, sink, progress);
          progress.check();
        });
      else exportFile(*now, {*analysis, tracesOf(*analysis, chosen), measures, file, drawing}, progress);
    } catch (const Error& error) {
      problem =
          error.code() == ErrorCode::cancelled ? tr("Cancelled; nothing was written") : QString::fromUtf8(error.what());
    } catch (const std::exception& error) {
      problem = toQt(messageOf(error));
    }
    return [this, path, problem] { finished(path, problem); };
  });
  updateState();
  say(tr("Writing ..."), false);
}

void ExportDialog::finished(const QString& path, const QString& problem) {
  updateState();
  if (!problem.isEmpty()) return say(problem, true);
  kept::exportFolder.keep(*settings_, QFileInfo(path).absolutePath());
  Q_EMIT exported(path);
  accept();
}

void ExportDialog::cancel() {
  if (!busy()) return;
  context_.controller->questions().cancel(measureTag);
  job_->cancel();
  measuring_ = false;
  updateState();
  say(tr("Cancelled; nothing was written"), false);
}

/// Esc and Close: first what runs, then the dialog.
void ExportDialog::reject() {
  if (busy()) return cancel();
  QDialog::reject();
}

}  // namespace retrograd::views
