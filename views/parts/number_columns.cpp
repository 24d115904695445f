// The column of numbers next to each line of the listings.
#include <QActionGroup>

#include "views/settings/settings.h"
#include "views/window/main_window.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

struct Choice {
  OpFigure kind;
  const char* name;
};
constexpr std::array<Choice, 7> choices{{{OpFigure::none, "column-none"},
                                         {OpFigure::time, "column-time"},
                                         {OpFigure::bytes, "column-bytes"},
                                         {OpFigure::norm, "column-norm"},
                                         {OpFigure::greatest, "column-max"},
                                         {OpFigure::bad, "column-bad"},
                                         {OpFigure::gradientNorm, "column-gradient"}}};

const WindowPart part(PartOrder::numberColumns, [](MainWindow& window) {
  auto* settings = window.shared().settings;
  auto* group = new QActionGroup(&window);
  auto* menu = new QMenu(MainWindow::tr("Colum&n of Listings"), &window);
  const auto kept = kept::listingColumn.of(*settings);
  for (const auto& [kind, name] : choices) {
    auto* action = window.actions().add(
        name, MainWindow::tr("Column: %1").arg(titleOf(kind)),
        kind == OpFigure::none
            ? MainWindow::tr("Hides the number next to each line of the listings")
            : MainWindow::tr("Shows this number next to each line of the listings, with a bar behind it"),
        {});
    action->setCheckable(true);
    action->setChecked(static_cast<int>(kind) == kept);
    if (action->isChecked()) window.listings().setColumn(kind);
    group->addAction(action);
    menu->addAction(action);
    QObject::connect(action, &QAction::triggered, &window, [&window, settings, kind = kind] {
      window.listings().setColumn(kind);
      kept::listingColumn.keep(*settings, static_cast<int>(kind));
    });
  }
  window.menu("view")->addMenu(menu);
});

}  // namespace
}  // namespace retrograd::views
