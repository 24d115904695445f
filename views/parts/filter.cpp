// The filter in the window: the box over the listings, its menu, its commands.
#include <QInputDialog>

#include "views/settings/saved_filters.h"
#include "views/widgets/controls.h"
#include "views/window/filter_box.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

const std::vector<SavedFilters::Entry>& exampleFilters() {
  static const std::vector<SavedFilters::Entry> all{
      {tr("What the backward computes"), QStringLiteral("role:backward")},
      {tr("What is saved for the backward"), QStringLiteral("saved")},
      {tr("What runs again in the backward"), QStringLiteral("recomputed or role:recompute")},
      {tr("Where gradients are summed"), QStringLiteral("role:accumulation")},
      {tr("What makes more than a MiB"), QStringLiteral("bytes>1M")},
      {tr("Products of matrices"), QStringLiteral("op:mm or op:addmm or op:bmm or op:baddbmm or op:linear")}};
  return all;
}

/// Filters one can choose: saved ones and examples at the end of the menu, where they are put each time it opens.
class FilterChoice : public QObject {
 public:
  FilterChoice(MainWindow& window, QMenu* menu)
      : QObject(menu),
        window_(window),
        filter_(*window.context().filter),
        saved_(window.shared().settings),
        menu_(menu) {
    menu_->setToolTipsVisible(true);
    connect(menu_, &QMenu::aboutToShow, this, &FilterChoice::fill);
  }

  void apply(const QString& words) {
    filter_.keep();  // what was typed so far
    filter_.apply(words);
    filter_.keep();
  }

  /// Asks for a name to save the filter under.
  void save() {
    auto* dialog = named(new QInputDialog(&window_), "save-filter");
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setWindowTitle(tr("Save the Filter"));
    dialog->setLabelText(tr("A name for the filter"));
    dialog->setTextValue(filter_.words());
    connect(dialog, &QInputDialog::textValueSelected, this, [this, words = filter_.words()](const QString& name) {
      if (!name.trimmed().isEmpty()) saved_.set({name.trimmed(), words});
    });
    dialog->open();
  }

  void addExamples() {
    auto* examples = addSubmenu(tr("&Examples"));
    for (const auto& entry : exampleFilters()) add(examples, entry);
    menu_->addSeparator();
    remove_ = addSubmenu(tr("Remo&ve"));
  }

 private:
  QMenu* addSubmenu(const QString& title) {
    auto* submenu = menu_->addMenu(title);
    submenu->setToolTipsVisible(true);
    return submenu;
  }

  void fill() {
    qDeleteAll(std::exchange(made_, {}));
    const auto entries = saved_.all();
    for (const auto& entry : entries) {
      auto* action = add(menu_, entry);
      menu_->removeAction(action);
      menu_->insertAction(remove_->menuAction(), action);
      auto* removal = remove_->addAction(shown(entry.name));
      connect(removal, &QAction::triggered, this, [this, name = entry.name] { saved_.remove(name); });
      made_ << action << removal;
    }
    remove_->menuAction()->setVisible(!entries.empty());
  }

  QAction* add(QMenu* menu, const SavedFilters::Entry& entry) {
    auto* action = menu->addAction(shown(entry.name));
    action->setToolTip(entry.words);
    connect(action, &QAction::triggered, this, [this, words = entry.words] { apply(words); });
    return action;
  }

  /// A person's name is not a place for shortcuts.
  static QString shown(QString name) { return name.replace(QLatin1Char('&'), QStringLiteral("&&")); }

  MainWindow& window_;
  OpFilter& filter_;
  SavedFilters saved_;
  QMenu* menu_;
  QMenu* remove_ = nullptr;
  QList<QAction*> made_;  ///< of the saved filters
};

void install(MainWindow& window) {
  const auto& context = window.context();
  auto& actions = window.actions();
  auto* filter = context.filter;
  auto* menu = named(new QMenu(tr("F&ilter"), &window), "filters");
  auto* filters = new FilterChoice(window, menu);
  auto* box = new FilterBox(context, menu, &window);
  window.listings().addToSwitches(box, 1);

  const auto command = [&](const char* name, const QString& text, const QString& tip, const QKeySequence& key,
                           auto run) {
    auto* action = actions.add(name, text, tip, key);
    QObject::connect(action, &QAction::triggered, menu, run);
    menu->addAction(action);
    return action;
  };
  const auto closed = [context] { return context.controller->document() ? QString() : tr("No file is open"); };
  const auto isOff = [filter] { return filter->active() ? QString() : tr("No filter is applied"); };
  const auto open =
      command("filter", tr("&Filter..."), tr("Shows only the ops that pass, such as role:gradient module:h.3 bytes>1M"),
              QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_L), [box] { box->open(); });
  const auto clear = command("filter-clear", tr("&Clear"), tr("Shows all ops again"),
                             QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_K), [filters] { filters->apply({}); });
  const auto back = command("filter-back", tr("&Previous Filter"), tr("Back to the filter before"),
                            QKeySequence(Qt::CTRL | Qt::Key_BracketLeft), [filter] { filter->back(); });
  const auto forward = command("filter-forward", tr("&Next Filter"), tr("The filter that Previous Filter came from"),
                               QKeySequence(Qt::CTRL | Qt::Key_BracketRight), [filter] { filter->forward(); });
  menu->addSeparator();
  using Words = QString (*)(const Document&, BoundSymbolId);
  const auto only = [&](const char* name, const QString& text, const QString& tip, const QString& none, Words words) {
    const auto wordsNow = [context, words] {
      const auto& document = context.controller->document();
      return document ? words(*document->analysis->document, context.selection->op()) : QString();
    };
    auto* action = command(name, text, tip, {}, [filters, wordsNow] { filters->apply(wordsNow()); });
    actions.allowUnless(action, [closed, context, wordsNow, none] {
      if (auto reason = closed(); !reason.isEmpty()) return reason;
      if (!context.selection->op()) return tr("No op is selected");
      return wordsNow().isEmpty() ? none : QString();
    });
  };
  only("filter-op", tr("Only the Same &Op"), tr("Shows the ops of the selected one's kind"), {}, sameOpWords);
  only("filter-module", tr("Only Its &Module"), tr("Shows the ops of the selected one's module"),
       tr("The selected op is in no module"), sameModuleWords);
  only("filter-origin", tr("Only from the Same Ope&ration"),
       tr("Shows what comes from the same operation of the computation, forward and backward"),
       tr("The selected op comes from no operation"), sameOriginWords);
  menu->addSeparator();
  const auto save = command("filter-save", tr("&Save the Filter..."),
                            tr("Keeps the filter under a name, for all files"), {}, [filters] { filters->save(); });
  filters->addExamples();

  actions.allowUnless(open, closed);
  actions.allowUnless(clear, isOff);
  actions.allowUnless(save, isOff);
  actions.allowUnless(back,
                      [filter] { return filter->canGoBack() ? QString() : tr("There is no filter before this one"); });
  actions.allowUnless(
      forward, [filter] { return filter->canGoForward() ? QString() : tr("There is no filter to go forward to"); });
  QObject::connect(filter, &OpFilter::historyChanged, &actions, &WindowActions::update);
  QObject::connect(box, &FilterBox::entered, &window, [&window] { window.listings().active().setFocus(); });
  window.menu("view")->insertMenu(actions.shortNames, menu);
}

const WindowPart filterPart(PartOrder::filter, install);

}  // namespace
}  // namespace retrograd::views
