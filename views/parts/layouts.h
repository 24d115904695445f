#pragma once
#include <QMenu>
#include <QSettings>
#include <QStringList>

#include "core/trace/trace.h"
#include "views/settings/settings.h"

namespace retrograd::views {

class MainWindow;

/// A layout that comes with the program: which listings are shown, and which docks at which side. The first dock of a
/// side is in front.
struct LayoutPreset {
  const char* name;  ///< of its action
  QString title, what;
  std::vector<TraceKind> listings;
  bool graph = false;
  std::vector<const char*> left, right, bottom;  ///< object names of docks; those not named are closed
  int bottomHeight = 260;
};

/// Those that the menu offers besides the default.
std::vector<LayoutPreset> layoutPresets();
void apply(const LayoutPreset& preset, MainWindow& window);

/// The layouts that a user saved under names, in the settings; all windows share them.
class SavedLayouts {
 public:
  explicit SavedLayouts(QSettings* settings) : settings_(settings) {}
  /// In the order of the alphabet.
  QStringList names() const { return kept::layouts.of(*settings_).keys(); }
  QByteArray layout(const QString& name) const;
  /// In place of one of that name.
  void save(const QString& name, const QByteArray& layout);
  void remove(const QString& name);

 private:
  QSettings* settings_;
};

/// View > Layouts: those that come with the program, those of one's own, saving and removing.
class LayoutsMenu : public QMenu {
  Q_OBJECT

 public:
  explicit LayoutsMenu(MainWindow& window);

 private:
  void fill();
  void askForName();
  void use(const QString& name);

  MainWindow& window_;
  SavedLayouts saved_;
  QList<QAction*> presets_;
  QAction* save_;
  QMenu* remove_;
};

}  // namespace retrograd::views
