#pragma once
#include <QComboBox>

#include "views/widgets/item_view.h"

namespace retrograd::views {

/// Names a combo box for those who hear the window. On Linux, Qt hands on the chosen text as its name, and leaves what
/// the box is for to a label; where there is none, it is said as the description. Letters typed into it choose among
/// its texts.
inline void prepareBox(QComboBox* box, const QString& name) {
  box->setAccessibleName(name);
  box->setAccessibleDescription(name);
  letTypeAhead(*box);
}

}  // namespace retrograd::views
