#pragma once
#include <QString>
#include <QStringList>

namespace retrograd::views {

/// What a report of a defect has to say of the program and where it runs.
struct Versions {
  QString retrograd, libTorch, qt, system;
  /// "Retrograd 0.1.0", "LibTorch 2.15.0" and so on.
  QStringList lines() const;
};

Versions versions();

/// "2.15.0"; empty in a build without LibTorch. It is here, next to the engine, which alone knows LibTorch.
std::string engineVersion();

}  // namespace retrograd::views
