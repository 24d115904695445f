#pragma once
#include <QComboBox>

namespace retrograd::views {

/// Names a combo box for those who hear the window. On Linux, Qt hands on the chosen text as its name, and leaves what the box is for to a label;
/// where there is none, it is said as the description.
inline void nameBox(QComboBox* box, const QString& name) {
  box->setAccessibleName(name);
  box->setAccessibleDescription(name);
}

}  // namespace retrograd::views
