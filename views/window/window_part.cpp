#include "views/window/window_part.h"

#include <map>

namespace retrograd::views {
namespace {

/// A function's own, for the parts register before main() in no order.
std::map<PartOrder, WindowPart::Install>& parts() {
  static std::map<PartOrder, WindowPart::Install> all;
  return all;
}

}  // namespace

WindowPart::WindowPart(PartOrder order, Install install) { parts().emplace(order, install); }

void installWindowParts(MainWindow& window) {
  for (const auto& [order, install] : parts()) install(window);
}

}  // namespace retrograd::views
