// The columns next to each line of the listings: words, and one of numbers, as the tables of columns have them.
#include <QActionGroup>

#include "views/settings/settings.h"
#include "views/window/listing_header.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

ColumnChoices keptChoices(const QSettings& settings) {
  ColumnChoices choices;
  const auto all = kept::textColumns.of(settings);
  for (const auto& of : listingColumns()) {
    const int number = all.value(QLatin1String(of.id), 0).toInt();
    choices[of.column] = {number >= 0, std::clamp(number, 0, 200)};
  }
  return choices;
}

void keep(QSettings& settings, const ColumnChoices& choices) {
  QVariantMap all;
  for (const auto& of : listingColumns()) {
    const auto& choice = choices[of.column];
    all[QLatin1String(of.id)] = choice.isShown ? choice.characters : -1;
  }
  kept::textColumns.keep(settings, all);
}

/// Shapes, origins and saved bytes: shown or not, and their usual widths again.
void addWordColumns(MainWindow& window, QMenu* menu) {
  auto* settings = window.shared().settings;
  auto& listings = window.listings();
  listings.setColumnChoices(keptChoices(*settings));
  for (const auto& of : listingColumns()) {
    auto* action = window.actions().add((std::string("column-") + of.id).c_str(), tr("Column: %1").arg(tr(of.title)),
                                        tr("%1, in the listings where there is room").arg(tr(of.tip)), {});
    action->setCheckable(true);
    action->setChecked(listings.columnChoices()[of.column].isShown);
    menu->addAction(action);
    QObject::connect(action, &QAction::triggered, &window, [&window, settings, column = of.column](bool on) {
      auto choices = window.listings().columnChoices();
      choices[column] = {on, 0};
      window.listings().setColumnChoices(choices);
      keep(*settings, choices);
    });
  }
  auto* fit = window.actions().add("columns-fit", tr("Usual Widths of Columns"),
                                   tr("Columns are as wide as the code leaves room for"), {});
  menu->addAction(fit);
  QObject::connect(fit, &QAction::triggered, &window, [&window, settings] {
    auto choices = window.listings().columnChoices();
    for (auto& choice : choices) choice.characters = 0;
    window.listings().setColumnChoices(choices);
    keep(*settings, choices);
  });
  QObject::connect(&listings, &ListingsArea::columnChoicesChanged, &window,
                   [&window, settings] { keep(*settings, window.listings().columnChoices()); });
  listings.setColumnMenu(menu);
}

const WindowPart numberColumnsPart(PartOrder::numberColumns, [](MainWindow& window) {
  auto* settings = window.shared().settings;
  auto* group = new QActionGroup(&window);
  auto* menu = new QMenu(tr("Colum&ns of Listings"), &window);
  addWordColumns(window, menu);
  menu->addSeparator();
  const auto kept = kept::listingColumn.of(*settings);
  for (const auto& of : figureColumns()) {
    const auto kind = of.kind;
    auto* action =
        window.actions().add((std::string("column-") + of.id).c_str(), tr("Column: %1").arg(tr(of.title)),
                             tr("%1: next to each line of the listings once it has run").arg(tr(of.tip)), {});
    action->setCheckable(true);
    action->setChecked(static_cast<int>(kind) == kept);
    if (action->isChecked()) window.listings().setColumn(kind, settings->contains(kept::listingColumn.key()));
    group->addAction(action);
    menu->addAction(action);
    QObject::connect(action, &QAction::triggered, &window, [&window, settings, kind = kind] {
      window.listings().setColumn(kind, true);
      kept::listingColumn.keep(*settings, static_cast<int>(kind));
    });
  }
  window.menu("view")->addMenu(menu);
});

}  // namespace
}  // namespace retrograd::views
