// The list of jumps, in the Go menu and at the Back button, and Esc as back.
#include <QKeyEvent>
#include <QToolBar>
#include <QToolButton>

#include "views/session/own_names.h"
#include "views/text/line_text.h"
#include "views/widgets/controls.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

constexpr std::size_t mostShown = 20;
constexpr int longest = 80;  // characters of an op's line

/// "#171 forward   t3 = mm(...)".
QString textOf(const OpenDocument& document, BoundSymbolId op) {
  auto text = lineOf(*document.analysis->document, op, nullptr, true, false).text.section(QStringLiteral("  # "), 0, 0);
  if (text.size() > longest) text = text.left(longest - 1) + QStringLiteral("\u2026");
  return QStringLiteral("%1   %2").arg(placeText(document, op), text.replace(QLatin1Char('&'), QStringLiteral("&&")));
}

/// Jumps, the newest first; the present one is checked.
void fill(QMenu* menu, MainWindow& window) {
  menu->clear();
  const auto& history = *window.context().history;
  const auto& document = window.context().controller->document();
  const auto& places = history.places();
  if (!document || places.empty()) {
    menu->addAction(tr("No jumps yet"))->setEnabled(false);
    return;
  }
  // Those around where one is, should there be more.
  const auto newest = std::min(places.size(), std::max(history.at() + mostShown / 2, mostShown));
  const auto oldest = newest > mostShown ? newest - mostShown : 0;
  for (auto i = newest; i-- > oldest;) {
    const bool here = i == history.at();
    const auto selected = window.context().selection->op();
    auto* action = menu->addAction(textOf(*document, here && selected ? selected : places[i]));
    action->setCheckable(true);
    action->setChecked(here);
    QObject::connect(action, &QAction::triggered, &window, [&window, i] {
      const auto& context = window.context();
      window.listings().goTo(context.history->goTo(i, context.selection->op()));
    });
  }
}

/// Esc takes back the last jump where nothing else has a use for it: the key then comes to the window itself. Once, and
/// from where the jump led: who presses it twice to be rid of something does not lose their place.
class EscapeGoesBack : public QObject {
 public:
  explicit EscapeGoesBack(MainWindow& window) : QObject(&window), window_(window) { window.installEventFilter(this); }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override {
    if (watched != &window_ || event->type() != QEvent::KeyPress) return false;
    const auto* key = static_cast<QKeyEvent*>(event);
    if (key->key() != Qt::Key_Escape || key->modifiers() != Qt::NoModifier || window_.messages().isVisible())
      return false;
    const auto& history = *window_.context().history;
    const bool isThere = !history.places().empty() && !history.canGoForward() &&
                         history.places().back() == window_.context().selection->op();
    if (!isThere || !window_.actions().back->isEnabled()) return false;
    window_.actions().back->trigger();
    return true;
  }

 private:
  MainWindow& window_;
};

const WindowPart jumpsPart(PartOrder::jumps, [](MainWindow& window) {
  auto* menu = named(new QMenu(tr("&Jumps"), &window), "jumps");
  QObject::connect(menu, &QMenu::aboutToShow, &window, [menu, &window] { fill(menu, window); });
  fill(menu, window);
  auto* go = window.menu("go");
  auto& actions = window.actions();
  go->insertMenu(actions.toExecution, menu);
  if (const auto* bar = window.findChild<QToolBar*>(QStringLiteral("toolbar-run")))
    if (auto* button = qobject_cast<QToolButton*>(bar->widgetForAction(actions.back))) {
      button->setMenu(menu);
      button->setPopupMode(QToolButton::MenuButtonPopup);
    }
  new EscapeGoesBack(window);
});

}  // namespace
}  // namespace retrograd::views
