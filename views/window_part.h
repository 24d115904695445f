#pragma once

namespace retrograd::views {

class MainWindow;

/// A part of the window that stands by itself in a file of views/parts/: it adds its docks, commands and menu entries to each main window.
/// Make one at namespace scope; that is all that has to be done for it to be there.
class WindowPart {
 public:
  using Install = void (*)(MainWindow& window);
  /// Parts are installed by rising `order`, which is therefore the order of what they add to a menu; after the window's own furniture, before
  /// its saved layout is restored.
  WindowPart(int order, Install install);
};

/// Called by the main window, once.
void installWindowParts(MainWindow& window);

}  // namespace retrograd::views
