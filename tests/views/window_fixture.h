#pragma once
#include <QDockWidget>
#include <QTemporaryDir>
#include <QTest>
#include <memory>

#include "tests/views/synthetic.h"
#include "views/window/main_window.h"

namespace retrograd::views {

/// A main window with a worker, settings of its own and an engine that the test chooses.
class WindowFixture {
 public:
  enum class Start : std::uint8_t {
    everything,  ///< all docks and the joint are open, so that tests need not open them
    asItComes
  };
  explicit WindowFixture(std::shared_ptr<Engine> engine = std::make_shared<FakeEngine>(),
                         Start start = Start::everything);
  ~WindowFixture();

  MainWindow& window() { return *window_; }
  Theme& theme() { return *theme_; }
  DocumentController& controller() { return *window_->context().controller; }
  const Execution& execution() const { return window_->context().execution->now(); }
  Selection& selection() { return *window_->context().selection; }
  ListingView& listing(TraceKind kind) { return window_->listings().listing(kind); }
  const Analysis& analysis() { return *controller().document()->analysis; }

  /// Opens and waits until the file is there (or failed); returns whether it is.
  bool open(const QString& path);
  /// Waits until nothing runs.
  bool settle();
  /// Waits until nothing of the window is under way: no job, no question, no panel that is about to ask. What has not
  /// come then never comes.
  bool quiet();
  /// Opens the dock and brings it to the front; returns it when its panel is in sight.
  QDockWidget* raise(const char* dock);
  /// Clicks with the left button into the text of the op's line.
  void click(TraceKind kind, BoundSymbolId op);
  void press(int key, Qt::KeyboardModifiers modifiers = Qt::NoModifier);
  /// Writes the window to $RETROGRAD_TEST_PICTURES/<name>.png where that is set.
  void picture(const QString& name);

 private:
  QTemporaryDir folder_;
  QSettings settings_;
  std::unique_ptr<Theme> theme_;
  std::shared_ptr<Worker> worker_;
  MainWindow* window_;
};

/// A window of a common size, without settings, with a synthetic model of three layers.
std::unique_ptr<WindowFixture> openedAsItComes(std::shared_ptr<Engine> engine = std::make_shared<FakeEngine>());

/// Waits until the widget's picture stays the same from one turn of the event loop to the next: what moves or is still
/// being drawn has come to rest.
bool standsStill(QWidget& widget);

}  // namespace retrograd::views
