#pragma once

namespace retrograd::views {

/// Gives names to controls that Qt makes itself and leaves without one, for those who hear the window: rows of tabs,
/// dividers, lists of combo boxes, buttons inside fields. From now on and for all windows; a second call does
/// nothing.
void nameOwnControlsOfQt();

}  // namespace retrograd::views
