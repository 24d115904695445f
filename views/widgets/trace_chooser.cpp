#include "views/widgets/trace_chooser.h"

#include <QFileInfo>
#include <QHBoxLayout>
#include <algorithm>

#include "views/text/format.h"
#include "views/text/trace_index.h"
#include "views/widgets/controls.h"
#include "views/widgets/item_view.h"

namespace retrograd::views {

TraceChooser::TraceChooser(const QString& side, QWidget* parent) : QWidget(parent) {
  source_ = new QComboBox(this);
  prepareBox(source_, tr("%1: where the trace comes from").arg(side));
  source_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  source_->setMinimumContentsLength(12);
  kind_ = new QComboBox(this);
  prepareBox(kind_, tr("%1: which trace").arg(side));
  for (auto kind : {TraceKind::joint, TraceKind::forward, TraceKind::backward, TraceKind::computation})
    kind_->addItem(titleText(kind), static_cast<int>(kind));
  auto* layout = withMargins(new QHBoxLayout(this), {});
  layout->addWidget(source_, 1);
  layout->addWidget(kind_);
  connect(source_, &QComboBox::activated, this, &TraceChooser::sourceActivated);
  connect(kind_, &QComboBox::activated, this, [this] {
    wanted_ = kind();
    Q_EMIT chosen();
  });
  follow(nullptr, {});
}

void TraceChooser::add(const QString& text, const TraceSource& source, const QString& tip) {
  source_->addItem(text);
  source_->setItemData(source_->count() - 1, tip, Qt::ToolTipRole);
  sources_.push_back(source);
}

void TraceChooser::follow(const OpenDocument* document, const QString& tried) {
  using Kind = TraceSource::Kind;
  const auto chosen = sources_.empty() ? TraceSource() : source();
  source_->clear();
  sources_.clear();
  derived_ = document && document->analysis->derived();
  const auto name = document ? QFileInfo(toQt(document->analysis->file.path)).fileName() : QString();
  add(document ? tr("%1 as it is open").arg(name) : tr("No file is open"), {}, tr("The traces that the window shows"));
  if (derived_) {
    const auto& analysis = *document->analysis;
    QStringList passes;
    for (auto i = analysis.computation().trace.history.size(); i < analysis.joint.history.size(); ++i)
      if (const auto pass = toQt(analysis.joint.history[i].pass); !passes.contains(pass)) passes << pass;
    for (const auto& pass : passes)
      add(tr("After %1").arg(pass), {Kind::pass, pass},
          tr("The joint as this pass left it; the model is derived again for it"));
    if (!tried.isEmpty()) add(tried, {Kind::tried, {}}, tr("What the Why dock tried"));
    add(tr("With minimum saved bytes"), {Kind::fewestBytes, {}}, tr("The same model under the partition min-cut"));
    add(tr("If everything were recomputed"), {Kind::recomputeAll, {}},
        tr("The same model with every forward op that can run twice running again in the backward"));
  }
  if (document && chosen.kind == Kind::file) add(QFileInfo(chosen.detail).fileName(), chosen, chosen.detail);
  if (document) add(tr("Another File..."), {Kind::file, {}}, tr("A model, printed traces or a session"));
  const auto row = std::ranges::find(sources_, chosen);
  source_->setCurrentIndex(row == sources_.end() ? 0 : static_cast<int>(row - sources_.begin()));
  before_ = source_->currentIndex();
  updateKind();
}

void TraceChooser::choose(const TraceSource& source, TraceKind kind) {
  auto row = std::ranges::find(sources_, source);
  if (row == sources_.end() && source.kind == TraceSource::Kind::file) {
    // Before "Another File...".
    const int at = source_->count() - 1;
    source_->insertItem(at, QFileInfo(source.detail).fileName());
    source_->setItemData(at, source.detail, Qt::ToolTipRole);
    row = sources_.insert(sources_.begin() + at, source);
  }
  source_->setCurrentIndex(row == sources_.end() ? 0 : static_cast<int>(row - sources_.begin()));
  before_ = source_->currentIndex();
  wanted_ = kind;
  updateKind();
}

/// Passes make joints; a model of which nothing could be derived has its computation only.
void TraceChooser::updateKind() {
  const bool isPass = source().kind == TraceSource::Kind::pass;
  kind_->setEnabled(!isPass);
  kind_->setToolTip(isPass ? tr("What passes work on is the joint") : tr("Which of the traces"));
  const bool nothingElse = !derived_ && source().kind == TraceSource::Kind::open;
  kind_->setCurrentIndex(kind_->findData(static_cast<int>(isPass        ? TraceKind::joint
                                                          : nothingElse ? TraceKind::computation
                                                                        : wanted_)));
}

void TraceChooser::sourceActivated(int row) {
  const auto& source = sources_.at(row);
  if (source.kind != TraceSource::Kind::file || !source.detail.isEmpty()) {
    before_ = row;
    updateKind();
    return Q_EMIT chosen();
  }
  source_->setCurrentIndex(before_);  // until one is chosen
  chooseFile(this, tr("Compare With"), {}, tr("Models and sessions (*.pt2 *.pt *.txt *.retrograd);;All files (*)"),
             this, [this](const QString& path) {
               choose({TraceSource::Kind::file, path}, kind());
               Q_EMIT chosen();
             });
}

}  // namespace retrograd::views
