#include "tests/views/window_fixture.h"

#include <QApplication>
#include <QImage>
#include <QScrollBar>

#include "views/engine/pool_job.h"
#include "views/theme/tokens.h"

namespace retrograd::views {

WindowFixture::WindowFixture(std::shared_ptr<Engine> engine, Start start)
    : settings_(folder_.filePath(QStringLiteral("settings.ini")), QSettings::IniFormat),
      theme_(std::make_unique<Theme>(*qApp)),
      worker_(std::make_shared<Worker>()),
      window_(new MainWindow({worker_, std::move(engine), theme_.get(), &settings_})) {
  theme_->choose(Theme::Choice::light);
  if (start == Start::everything) {
    window_->resize(1600, 980);
    window_->listings().toggleAction(TraceKind::joint)->setChecked(true);
    for (auto* dock : window_->docks()) dock->show();
    for (const auto* front : {"dock-values", "dock-memory", "dock-why"})
      window_->findChild<QDockWidget*>(QLatin1String(front))->raise();
  }
  window_->show();
  // Without a window manager no window becomes active by itself.
  QApplication::setActiveWindow(window_);
  if (!QTest::qWaitForWindowExposed(window_)) qFatal("the window does not show");
}

WindowFixture::~WindowFixture() { delete window_; }

bool WindowFixture::open(const QString& path) {
  window_->openFile(path);
  return QTest::qWaitFor([&] { return !controller().opening(); }, 60000) && controller().document() != nullptr;
}

bool WindowFixture::settle() {
  return QTest::qWaitFor(
      [&] { return !execution().running && !controller().worker().busy(&controller(), QStringLiteral("run")); }, 60000);
}

bool WindowFixture::quiet() {
  int turns = 0;  // one answer may lead to the next question
  return QTest::qWaitFor(
      [&] {
        const auto panels = window_->findChildren<Panel*>();
        const bool busy = controller().opening() || execution().running || controller().worker().busy(&controller()) ||
                          PoolJob::pool().activeThreadCount() > 0 ||
                          std::any_of(panels.begin(), panels.end(), [](const Panel* panel) { return panel->busy(); });
        turns = busy ? 0 : turns + 1;
        return turns > 2;
      },
      60000);
}

QDockWidget* WindowFixture::raise(const char* name) {
  auto* dock = window_->findChild<QDockWidget*>(QLatin1String(name));
  dock->show();
  dock->raise();
  const auto* panel = qobject_cast<Panel*>(dock->widget());
  if (!QTest::qWaitFor([&] { return panel->inSight(); })) qFatal("the dock does not come to the front");
  return dock;
}

bool standsStill(QWidget& widget) {
  QImage before;
  int same = 0;
  return QTest::qWaitFor(
      [&] {
        auto now = widget.grab().toImage();
        same = now == before ? same + 1 : 0;
        before = std::move(now);
        return same > 2;
      },
      20000);
}

void WindowFixture::click(TraceKind kind, BoundSymbolId op) {
  auto& view = listing(kind);
  if (!view.isRowVisible(view.rowOf(op))) view.verticalScrollBar()->setValue(view.rowOf(op));
  const int row = view.rowOf(op);
  const auto rect = view.rowRect(row);
  const int line = rect.height() / static_cast<int>(1 + view.shownCode(row).breaks.size());
  // In the first line, right of the gutter and the fold mark, left of most text: x is where a line of depth 1 starts.
  QTest::mouseClick(view.viewport(), Qt::LeftButton, Qt::NoModifier,
                    QPoint(tokens::gutterWidth + line + 30, rect.top() + line / 2));
}

void WindowFixture::press(int key, Qt::KeyboardModifiers modifiers) {
  auto* focus = QApplication::focusWidget();
  QTest::keyClick(focus ? focus : window_, static_cast<Qt::Key>(key), modifiers);
}

void WindowFixture::picture(const QString& name) {
  const auto folder = qEnvironmentVariable("RETROGRAD_TEST_PICTURES");
  if (folder.isEmpty()) return;
  if (!quiet() || !standsStill(*window_)) qFatal("the window does not come to rest");
  window_->grab().save(QStringLiteral("%1/%2.png").arg(folder, name));
}

std::unique_ptr<WindowFixture> openedAsItComes(std::shared_ptr<Engine> engine) {
  auto f = std::make_unique<WindowFixture>(std::move(engine), WindowFixture::Start::asItComes);
  f->window().resize(1280, 800);
  if (!f->open(QStringLiteral("synthetic:3"))) qFatal("no file");
  return f;
}

}  // namespace retrograd::views
