#include "views/window/session_keeper.h"

#include <QApplication>
#include <QFileInfo>

#include "views/stages/stage_plan.h"
#include "views/text/format.h"
#include "views/widgets/window_size.h"
#include "views/window/main_window.h"

namespace retrograd::views {
namespace {

constexpr int saveDelay = 1000;  // ms: stepping through a listing changes the selection many times a second

}  // namespace

SessionKeeper& SessionKeeper::of(QSettings* settings) {
  if (auto* keeper = settings->findChild<SessionKeeper*>({}, Qt::FindDirectChildrenOnly)) return *keeper;
  return *new SessionKeeper(settings);
}

SessionKeeper::SessionKeeper(QSettings* settings) : QObject(settings), session_(settings) {
  soon_.setSingleShot(true);
  soon_.setInterval(saveDelay);
  connect(&soon_, &QTimer::timeout, this, &SessionKeeper::save);
  connect(qApp, &QCoreApplication::aboutToQuit, this, &SessionKeeper::settle);
}

QList<MainWindow*> SessionKeeper::windows() const {
  QList<MainWindow*> windows;
  for (const auto& entry : entries_)
    if (entry.window && entry.window->isVisible()) windows << entry.window;
  return windows;
}

SessionKeeper::Entry* SessionKeeper::entryOf(const MainWindow* window) {
  const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.window == window; });
  return found == entries_.end() ? nullptr : &*found;
}

void SessionKeeper::add(MainWindow* window) {
  std::erase_if(entries_, [](const Entry& entry) { return !entry.window; });
  entries_.push_back({window, {}});
  window->installEventFilter(this);
  const auto& context = window->context();
  connect(context.controller, &DocumentController::documentChanged, this, [this, window] { opened(window, true); });
  connect(context.controller, &DocumentController::openFailed, this, [this, window] { opened(window, false); });
  connect(context.selection, &Selection::changed, &soon_, qOverload<>(&QTimer::start));
  connect(context.stages, &StagePlan::changed, &soon_, qOverload<>(&QTimer::start));
}

void SessionKeeper::restore(MainWindow* window, const WindowRecord& record) {
  auto* entry = entryOf(window);
  if (!entry) return;
  entry->pending = record;
  session_.beginRestoring();
  window->restoreGeometry(record.geometry);
  keepWithinScreen(*window);
  window->context().controller->open(record.request);
}

void SessionKeeper::opened(MainWindow* window, bool well) {
  soon_.start();
  auto* entry = entryOf(window);
  if (!entry || !entry->pending) return;
  const auto record = std::move(*entry->pending);
  entry->pending.reset();
  if (std::ranges::none_of(entries_, [](const Entry& other) { return other.pending.has_value(); }))
    session_.endRestoring();
  const auto& document = window->context().controller->document();
  if (!well || !document || document->request.path != record.request.path) return;
  window->arrange(record.arrangement);
  if (record.cuts) window->context().stages->restore(*record.cuts);
  auto& listings = window->listings();
  const auto kind = static_cast<TraceKind>(record.active);
  if (listings.isShown(kind)) listings.listing(kind).setFocus();
  if (const auto op = opOfText(*document->analysis, record.selected)) listings.goTo(op);
}

std::optional<WindowRecord> SessionKeeper::recordOf(const Entry& entry) const {
  if (entry.pending) return entry.pending;
  auto& window = *entry.window;
  const auto& document = window.context().controller->document();
  if (!document) return {};
  return WindowRecord{document->request,
                      window.saveGeometry(),
                      window.arrangement(),
                      opText(*document->analysis, window.context().selection->op()),
                      static_cast<int>(window.listings().active().kind()),
                      window.context().stages->kept()};
}

void SessionKeeper::save() {
  if (!closing_.empty()) return;
  std::vector<WindowRecord> records;
  for (const auto& entry : entries_)
    if (entry.window && entry.window->isVisible())
      if (auto record = recordOf(entry)) records.push_back(std::move(*record));
  session_.save(records);
}

bool SessionKeeper::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Close) {
    // The window's own closeEvent() comes after this and closes its file.
    const auto* entry = entryOf(static_cast<MainWindow*>(watched));
    if (auto record = entry ? recordOf(*entry) : std::nullopt) closing_.push_back(std::move(*record));
    anyClosed_ = true;
    QTimer::singleShot(0, this, &SessionKeeper::settle);
  }
  return QObject::eventFilter(watched, event);
}

/// Those that closed are the session if no window is left, and gone from it otherwise.
void SessionKeeper::settle() {
  soon_.stop();
  const auto closed = std::exchange(closing_, {});
  if (!windows().isEmpty()) return save();
  if (!std::exchange(anyClosed_, false)) return;
  session_.endRestoring();
  session_.save(closed);
}

QList<MainWindow*> reopenLastSession(const Shared& shared) {
  auto& keeper = SessionKeeper::of(shared.settings);
  auto& session = keeper.session();
  const auto show = [&] {
    auto* window = new MainWindow(shared);
    window->show();
    return window;
  };
  if (!session.isWanted() || session.isRestoredElsewhere()) return {};
  const auto records = session.windows();
  if (session.failedToRestore()) {
    session.endRestoring();
    session.save({});
    auto* window = show();
    window->messages().show(MessageBar::Kind::warning,
                            tr("The last session was not reopened: the program ended before its files were "
                               "read. They are in File > Open Recent."));
    return {window};
  }
  QList<MainWindow*> windows;
  QStringList gone;
  for (const auto& record : records) {
    const auto path = toQt(record.request.path);
    if (!QFileInfo::exists(path)) {
      gone << path;
      continue;
    }
    windows << show();
    keeper.restore(windows.back(), record);
  }
  if (!gone.isEmpty()) {
    if (windows.isEmpty()) windows << show();
    windows.front()->messages().show(MessageBar::Kind::warning,
                                     tr("Not reopened, for it is gone: %1").arg(gone.join(QStringLiteral(", "))));
  }
  return windows;
}

}  // namespace retrograd::views
