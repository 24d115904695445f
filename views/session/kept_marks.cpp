#include "views/session/kept_marks.h"

#include <QCryptographicHash>

#include "views/text/format.h"

namespace retrograd::views {
namespace {

const QString disabledMark = QStringLiteral("off ");

void keepOrForget(QSettings& settings, const Setting<QStringList>& setting, const QStringList& all) {
  if (all.isEmpty()) setting.forget(settings);
  else setting.keep(settings, all);
}

}  // namespace

KeptMarks::KeptMarks(ViewContext context, QSettings* settings, QObject* parent)
    : QObject(parent), context_(context), settings_(settings) {
  // A document that goes takes its marks along; that is not the user's removing them.
  connect(context_.controller, &DocumentController::documentAboutToChange, this, [this] { restoring_ = 1; });
  connect(context_.controller, &DocumentController::documentChanged, this, &KeptMarks::documentChanged);
  connect(context_.execution, &ExecutionState::breakpointsChanged, this, &KeptMarks::keep);
  connect(context_.execution, &ExecutionState::watchesChanged, this, &KeptMarks::keep);
}

QString KeptMarks::hashOfPath() const {
  return QString::fromLatin1(QCryptographicHash::hash(path_.toUtf8(), QCryptographicHash::Sha1).toHex());
}

void KeptMarks::documentChanged() {
  const auto& document = context_.controller->document();
  const auto path = document ? toQt(document->request.path) : QString();
  const bool isReload = path == path_;
  restoring_ = 0;
  path_ = path;
  if (!document || isReload) return keep();
  const auto breakpoints = kept::breakpoints(hashOfPath()).of(*settings_);
  const auto watches = kept::watches(hashOfPath()).of(*settings_);
  restoring_ = static_cast<int>(breakpoints.size()) + (watches.isEmpty() ? 0 : 1);
  for (const auto& words : breakpoints) restoreBreakpoint(words);
  if (!watches.isEmpty()) restoreWatches(watches);
}

void KeptMarks::restoreBreakpoint(QString words) {
  const bool on = !words.startsWith(disabledMark);
  if (!on) words.remove(0, disabledMark.size());
  context_.controller->marks().addBreakpoint(words, [this, path = path_, words, on](const QString& problem) {
    if (path != path_) return;
    if (!problem.isEmpty()) Q_EMIT breakpointLost(words, problem);
    if (problem.isEmpty() && !on)
      context_.controller->marks().enableBreakpoint(context_.execution->breakpoints().size() - 1, false);
    oneRestored();
  });
}

void KeptMarks::restoreWatches(const QStringList& names) {
  context_.controller->marks().addWatches(names, [this, path = path_](const QStringList& missing) {
    if (path != path_) return;
    for (const auto& name : missing) Q_EMIT watchLost(name);
    oneRestored();
  });
}

void KeptMarks::oneRestored() {
  if (--restoring_ == 0) keep();
}

void KeptMarks::keep() {
  const auto& document = context_.controller->document();
  if (!document || restoring_ > 0 || path_ != toQt(document->request.path)) return;
  QStringList breakpoints;
  for (const auto& breakpoint : context_.execution->breakpoints())
    breakpoints << (breakpoint.enabled ? QString() : disabledMark) + toQt(describe(*document->analysis, breakpoint));
  keepOrForget(*settings_, kept::breakpoints(hashOfPath()), breakpoints);
  QStringList watches;
  for (auto value : context_.execution->watches()) watches << toQt(document->analysis->document->displayName(value));
  keepOrForget(*settings_, kept::watches(hashOfPath()), watches);
}

}  // namespace retrograd::views
