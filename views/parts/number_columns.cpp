// The columns next to each line of the listings: words, and one of numbers.
#include <QActionGroup>

#include "views/settings/settings.h"
#include "views/window/listing_header.h"
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

struct WordColumn {
  TextColumn column;
  const char *name, *key;
};
constexpr std::array<WordColumn, textColumnCount> wordColumns{{{TextColumn::shape, "column-shapes", "shape"},
                                                               {TextColumn::origin, "column-origins", "origin"},
                                                               {TextColumn::saved, "column-saved", "saved"}}};

ColumnChoices keptChoices(const QSettings& settings) {
  ColumnChoices choices;
  const auto all = kept::textColumns.of(settings);
  for (const auto& [column, name, key] : wordColumns) {
    const int number = all.value(QLatin1String(key), 0).toInt();
    choices[column] = {number >= 0, std::clamp(number, 0, 200)};
  }
  return choices;
}

void keep(QSettings& settings, const ColumnChoices& choices) {
  QVariantMap all;
  for (const auto& [column, name, key] : wordColumns) {
    const auto& choice = choices[column];
    all[QLatin1String(key)] = choice.isShown ? choice.characters : -1;
  }
  kept::textColumns.keep(settings, all);
}

/// Shapes, origins and saved bytes: shown or not, and their usual widths again.
void addWordColumns(MainWindow& window, QMenu* menu) {
  auto* settings = window.shared().settings;
  auto& listings = window.listings();
  listings.setColumnChoices(keptChoices(*settings));
  for (const auto& [column, name, key] : wordColumns) {
    auto* action = window.actions().add(name, tr("Column: %1").arg(ListingHeader::titleOf(column)),
                                        tr("Shows this column in the listings where the code leaves room"), {});
    action->setCheckable(true);
    action->setChecked(listings.columnChoices()[column].isShown);
    menu->addAction(action);
    QObject::connect(action, &QAction::triggered, &window, [&window, settings, column = column](bool on) {
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
  for (const auto& [kind, name] : choices) {
    auto* action = window.actions().add(
        name, tr("Column: %1").arg(titleOf(kind)),
        kind == OpFigure::none ? tr("Hides the number next to each line of the listings")
                               : tr("Shows this number next to each line of the listings, with a bar behind it"),
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
