#pragma once
#include <QColor>
#include <QIcon>
#include <QObject>
#include <QPalette>
#include <functional>

#include "core/base/enum_array.h"
#include "core/questions/memory_timeline.h"

class QApplication;

namespace retrograd::views {

/// Colours of a comparison's rows. Each kind has a sign too, and what differs within a row a darker ground.
struct DiffColors {
  QColor onlyLeft, onlyRight, changed, moved, gap;             ///< grounds of rows
  QColor onlyLeftMark, onlyRightMark, changedMark, movedMark;  ///< signs, and words that differ
};

/// Colours of the cells of a pipeline schedule. They are the same in each look, as in the SVG: dark text reads on all
/// of them.
struct ScheduleColors {
  QColor forward, backwardInput, backwardWeight, backward, text;
};

/// Colours of listings and plots; distinguished by lightness too, and never the only sign of anything.
struct Colors {
  QColor background, gutter, gutterText;
  QColor text, op, value, literal, comment, header;
  QColor selected, origin, derived, sibling, valueMark;  ///< backgrounds of lines and values
  QColor originMark, derivedMark;                        ///< marks next to the lines
  QColor execution, executionLine, breakpoint, bad, saved;
  QColor ownWords;  ///< notes: comments, names, bookmarks
  QColor plot, border;
  EnumArray<MemoryUse, QColor, memoryUseCount> memory;  ///< of the timeline, by MemoryUse
  QColor error, warning, note;                          ///< backgrounds of the message bar
  QColor pictureMark, pictureEdge, pictureFocus;  ///< marks on a picture of numbers, whose colours are the numbers' own
  DiffColors diff;
  ScheduleColors schedule;
};

/// Light, dark and high-contrast palettes of our own over the Fusion style; follows the system unless set otherwise.
class Theme : public QObject {
  Q_OBJECT

 public:
  /// With high contrast, light or dark is as the system is.
  enum class Choice { system, light, dark, highContrast };

  /// `isSystemDark` answers for the system; asked again whenever that says that its looks have changed. Whether the
  /// system wants high contrast shows in the application's palette as it is now: Qt 6.4 has no other word for it.
  explicit Theme(QApplication& application, QObject* parent = nullptr, std::function<bool()> isSystemDark = {});

  Choice choice() const { return choice_; }
  void choose(Choice choice);
  bool dark() const { return dark_; }
  bool highContrast() const {
    return choice_ == Choice::highContrast || (choice_ == Choice::system && systemContrast_);
  }
  const Colors& colors() const { return colors_; }
  /// An icon of resources/icons in the palette's text colour, greyed where disabled.
  QIcon icon(const QString& name) const;
  /// The program's own, as desktops show it.
  static QIcon appIcon();
  /// The fixed-width font of listings and tables.
  static QFont codeFont();

 Q_SIGNALS:
  void changed();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void apply();

  QApplication& application_;
  std::function<bool()> isSystemDark_;
  Choice choice_ = Choice::system;
  bool systemDark_ = false;
  bool systemContrast_ = false;
  bool dark_ = false;
  Colors colors_;
};

}  // namespace retrograd::views
