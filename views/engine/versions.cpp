#include "views/engine/versions.h"

#include <QSysInfo>

namespace retrograd::views {

Versions versions() {
  const auto torch = QString::fromStdString(engineVersion());
  return {QStringLiteral(RETROGRAD_VERSION), torch, QString::fromLatin1(qVersion()),
          QStringLiteral("%1, kernel %2, %3")
              .arg(QSysInfo::prettyProductName(), QSysInfo::kernelVersion(), QSysInfo::currentCpuArchitecture())};
}

QStringList Versions::lines() const {
  return {QStringLiteral("Retrograd ") + retrograd,
          libTorch.isEmpty() ? QStringLiteral("without LibTorch") : QStringLiteral("LibTorch ") + libTorch,
          QStringLiteral("Qt ") + qt, system};
}

}  // namespace retrograd::views
