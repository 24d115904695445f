#pragma once

namespace retrograd::views {

/// The size of all text of the program, in points: of the application's font, and in proportion of all that widgets
/// have of their own. 0 is the system's size.
void setTextSize(double points);
/// As it is now.
double textSize();

}  // namespace retrograd::views
