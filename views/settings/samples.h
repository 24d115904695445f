#pragma once
#include <QList>
#include <QString>

namespace retrograd::views {

/// A model that comes with the program.
struct Sample {
  QString path, title, text;
};

/// Those that samples.json of this folder names and that are there; none where it cannot be read.
QList<Sample> samplesIn(const QString& folder);
/// Those next to the program.
QList<Sample> samples();

}  // namespace retrograd::views
