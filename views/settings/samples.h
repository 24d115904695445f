#pragma once
#include <QList>
#include <QStringList>

namespace retrograd::views {

/// A model that comes with the program.
struct Sample {
  QString path, title, text;
  QStringList panels;  ///< names of those that its question is about: they come to the front with it
};

/// Those that samples.json of this folder names and that are there; none where it cannot be read.
QList<Sample> samplesIn(const QString& folder);
/// Those next to the program.
QList<Sample> samples();

}  // namespace retrograd::views
