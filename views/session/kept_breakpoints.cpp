#include "views/session/kept_breakpoints.h"

#include <QCryptographicHash>

#include "views/settings/settings.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

const QString disabledMark = QStringLiteral("off ");

}  // namespace

KeptBreakpoints::KeptBreakpoints(ViewContext context, QSettings* settings, QObject* parent)
    : QObject(parent), context_(context), settings_(settings) {
  // A document that goes takes its breakpoints along; that is not the user's removing them.
  connect(context_.controller, &DocumentController::documentAboutToChange, this, [this] { restoring_ = 1; });
  connect(context_.controller, &DocumentController::documentChanged, this, &KeptBreakpoints::documentChanged);
  connect(context_.execution, &ExecutionState::breakpointsChanged, this, &KeptBreakpoints::keep);
}

Setting<QStringList> KeptBreakpoints::setting() const {
  return kept::breakpoints(
      QString::fromLatin1(QCryptographicHash::hash(path_.toUtf8(), QCryptographicHash::Sha1).toHex()));
}

void KeptBreakpoints::documentChanged() {
  const auto& document = context_.controller->document();
  const auto path = document ? toQt(document->request.path) : QString();
  const bool isReload = path == path_;
  restoring_ = 0;
  path_ = path;
  if (!document || isReload) return keep();
  const auto all = setting().of(*settings_);
  restoring_ = static_cast<int>(all.size());
  for (auto words : all) {
    const bool on = !words.startsWith(disabledMark);
    if (!on) words.remove(0, disabledMark.size());
    context_.controller->marks().addBreakpoint(words, [this, path, words, on](const QString& problem) {
      if (path != path_) return;
      if (!problem.isEmpty()) Q_EMIT lost(words, problem);
      if (problem.isEmpty() && !on)
        context_.controller->marks().enableBreakpoint(context_.execution->breakpoints().size() - 1, false);
      if (--restoring_ == 0) keep();
    });
  }
}

void KeptBreakpoints::keep() {
  const auto& document = context_.controller->document();
  if (!document || restoring_ > 0 || path_ != toQt(document->request.path)) return;
  QStringList all;
  for (const auto& breakpoint : context_.execution->breakpoints())
    all << (breakpoint.enabled ? QString() : disabledMark) +
               QString::fromStdString(describe(*document->analysis, breakpoint));
  if (all.isEmpty()) setting().forget(*settings_);
  else setting().keep(*settings_, all);
}

}  // namespace retrograd::views
