#include <QSignalSpy>
#include <QTest>
#include <atomic>
#include <future>

#include "tests/views/synthetic.h"
#include "tests/views/test_program.h"
#include "views/session/breakpoint_key.h"
#include "views/session/document_controller.h"
#include "views/session/jump_history.h"
#include "views/session/selection.h"

namespace retrograd::views {

/// The objects behind the window, without a widget.
class SessionTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void newerJobDropsOlderOfItsTag();
  void cancelStopsARunningJob();
  void resultsOfGoneOwnersAreDropped();
  void theWorkerRestsOnceAfterItsJobs();
  void errorsReachTheOwner();
  void selectionRelatesOps();
  void historyForgetsWhatLayAhead();
  void keysSurviveANewDocument();
  void programStepsByOperation();
  void stepsAddUp();
  void valuesCarryStatistics();
};

namespace {

Worker::Job job(const QString& tag, Worker::Work work) { return {tag, {}, false, std::move(work), {}}; }

}  // namespace

void SessionTest::newerJobDropsOlderOfItsTag() {
  Worker worker;
  QObject owner;
  std::promise<void> gate;
  auto opened = gate.get_future().share();
  std::vector<int> done;
  const auto noting = [&](int number) {
    return [&done, number](const Progress&) -> Worker::Deliver { return [&done, number] { done.push_back(number); }; };
  };
  worker.post(&owner, job(QStringLiteral("other"), [opened](const Progress&) -> Worker::Deliver {
    opened.wait();
    return {};
  }));
  for (int i = 0; i < 5; ++i) worker.post(&owner, job(QStringLiteral("values"), noting(i)));
  worker.post(&owner, job(QString(), noting(10)));
  worker.post(&owner, job(QString(), noting(11)));
  gate.set_value();
  QVERIFY(QTest::qWaitFor([&] { return done.size() == 3; }, 5000));
  QCOMPARE(done, (std::vector<int>{4, 10, 11}));
}

void SessionTest::cancelStopsARunningJob() {
  Worker worker;
  QObject owner;
  std::atomic<bool> running = false;
  bool cancelled = false;
  Worker::Job endless{QStringLiteral("open"),
                      {},
                      false,
                      [&](const Progress& progress) -> Worker::Deliver {
                        running = true;
                        for (;;) progress.check();
                      },
                      [&](const Error& error) { cancelled = error.code() == ErrorCode::cancelled; }};
  worker.post(&owner, std::move(endless));
  QVERIFY(QTest::qWaitFor([&] { return running.load(); }, 5000));
  QVERIFY(worker.busy(&owner, QStringLiteral("open")));
  worker.cancel(&owner, QStringLiteral("open"));
  QVERIFY(QTest::qWaitFor([&] { return cancelled; }, 5000));
  QVERIFY(!worker.busy(&owner, QStringLiteral("open")));
}

void SessionTest::resultsOfGoneOwnersAreDropped() {
  Worker worker;
  bool called = false;
  std::atomic<bool> ran = false;
  {
    QObject owner;
    worker.post(&owner, job(QStringLiteral("a"), [&](const Progress&) -> Worker::Deliver {
      ran = true;
      return [&] { called = true; };
    }));
    while (!ran) std::this_thread::yield();  // no events in between: the result is still under way
  }
  // The next job is delivered after what the gone owner's would have been.
  QObject other;
  bool delivered = false;
  worker.post(&other,
              job(QStringLiteral("b"), [&](const Progress&) -> Worker::Deliver { return [&] { delivered = true; }; }));
  QTRY_VERIFY(delivered);
  QVERIFY(!called);
}

// Memory that is kept for the next run goes back when nothing runs.
void SessionTest::theWorkerRestsOnceAfterItsJobs() {
  std::atomic<int> rests = 0;
  Worker worker;
  worker.setRest([&] { ++rests; }, std::chrono::milliseconds(1));
  QObject owner;
  int delivered = 0;
  const auto run = [&] {
    worker.post(&owner, job({}, [&](const Progress&) -> Worker::Deliver { return [&] { ++delivered; }; }));
  };
  QCOMPARE(rests.load(), 0);
  run();
  QTRY_COMPARE(rests.load(), 1);
  run();
  QTRY_COMPARE(rests.load(), 2);
  QCOMPARE(delivered, 2);
}

void SessionTest::errorsReachTheOwner() {
  Worker worker;
  QObject owner;
  QString message;
  worker.post(&owner, {QStringLiteral("a"),
                       {},
                       false,
                       [](const Progress&) -> Worker::Deliver { throw std::runtime_error("odd"); },
                       [&](const Error& error) { message = QString::fromStdString(error.what()); }});
  QVERIFY(QTest::qWaitFor([&] { return !message.isEmpty(); }, 5000));
  QCOMPARE(message, QStringLiteral("odd"));
}

void SessionTest::selectionRelatesOps() {
  const auto analysis = syntheticAnalysis(3);
  Selection selection;
  selection.reset(analysis);
  const auto linear = analysis->computation().trace.ops[0];
  const auto forward = analysis->forward.ops[1];
  const auto backward = analysis->backward.ops.back();
  selection.select(backward);
  QCOMPARE(selection.relation(backward), Relation::selected);
  QCOMPARE(selection.relation(linear), Relation::origin);
  QCOMPARE(selection.relation(forward), Relation::origin);
  QCOMPARE(selection.relation(analysis->backward.ops[analysis->backward.ops.size() - 2]), Relation::sibling);
  QCOMPARE(selection.relation(analysis->backward.ops.front()), Relation::none);
  selection.select(forward);
  int derived = 0;
  for (auto op : analysis->backward.ops) derived += selection.relation(op) == Relation::derived;
  QCOMPARE(derived, 5);
}

void SessionTest::historyForgetsWhatLayAhead() {
  JumpHistory history;
  const BoundSymbolId a(1), b(2), c(3), d(4);
  history.jumped(a, b);
  history.jumped(b, c);
  QCOMPARE(history.back(c), b);
  QCOMPARE(history.back(b), a);
  QVERIFY(!history.canGoBack());
  QCOMPARE(history.forward(a), b);
  history.jumped(b, d);
  QVERIFY(!history.canGoForward());
  QCOMPARE(history.back(d), b);
  history.originJumped(b, c);
  QCOMPARE(history.returnFrom(c), b);
  QVERIFY(!history.returnFrom(a).valid());
}

void SessionTest::keysSurviveANewDocument() {
  const auto before = syntheticAnalysis(3), after = syntheticAnalysis(5);
  std::vector<OpKey> keys;
  for (auto op : before->joint.ops) keys.push_back(keyOf(*before, op));
  for (std::size_t i = 0; i < keys.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) QVERIFY(!(keys[i] == keys[k]));
  const auto found = findKeys(*after, keys);
  for (std::size_t i = 0; i < found.size(); ++i) {
    QVERIFY(found[i].valid());
    QCOMPARE(after->document->opName(found[i]), before->document->opName(before->joint.ops[i]));
    QCOMPARE(keyOf(*after, found[i]), keys[i]);
  }
  // A place that is gone is not found.
  QVERIFY(!findKeys(*before, {keyOf(*after, after->forward.ops.back())}).front().valid());
}

void SessionTest::programStepsByOperation() {
  const auto analysis = syntheticAnalysis(2);
  const Program program(analysis);
  QCOMPARE(program.size(), std::size_t(18));
  QCOMPARE(program.steps().goal(Step::over, 0), std::size_t(2));  // t, addmm
  QCOMPARE(program.steps().goal(Step::over, 2), std::size_t(3));  // relu
  QCOMPARE(program.steps().goal(Step::over, 5),
           std::size_t(6));  // relu of the last layer: its backward is not the same group
  QCOMPARE(program.steps().goal(Step::over, 7), std::size_t(12));  // five ops of linear's backward
  QCOMPARE(program.steps().goal(Step::over, 7, [&](BoundSymbolId op) { return op == program.opAt(9); }),
           std::size_t(9));
  QCOMPARE(program.steps().goal(Step::overBack, 12), std::size_t(7));
  QCOMPARE(program.steps().goal(Step::overBack, 6), std::size_t(5));
  QCOMPARE(program.steps().goal(Step::over, 18), std::size_t(18));
  QCOMPARE(program.steps().goal(Step::overBack, 0), std::size_t(0));
  // A computation op runs where its first forward op does.
  QCOMPARE(program.executed(analysis->computation().trace.ops[1]), analysis->forward.ops[2]);
}

void SessionTest::stepsAddUp() {
  ExecutionState execution;
  DocumentController controller(std::make_shared<Worker>(), std::make_shared<FakeEngine>(), &execution);
  OpenRequest other;
  other.path = "synthetic4";
  controller.open(other);
  QVERIFY(QTest::qWaitFor([&] { return controller.document() != nullptr; }, 5000));
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 9; ++i) controller.run().step(Step::into);
    for (int i = 0; i < 8; ++i) controller.run().step(Step::intoBack);
    QCoreApplication::processEvents();
  }
  QVERIFY(QTest::qWaitFor([&] { return !execution.now().running; }, 5000));
  QCOMPARE(execution.now().position, std::size_t(20));
  QCOMPARE(execution.now().current, controller.document()->program.opAt(20));
}

void SessionTest::valuesCarryStatistics() {
  const auto analysis = syntheticAnalysis(2);
  FakeRunner runner(analysis);
  const auto op = analysis->forward.ops[1];
  const auto output = analysis->document->outputs(op)[0];
  auto report = reportValues(runner, *analysis, {op, output}, {});
  QCOMPARE(report.rows.size(), std::size_t(4));
  QVERIFY(!report.rows.back().statistics);
  QVERIFY(report.detail && !report.detail->contents.data);
  runner.runTo(2, {});
  report = reportValues(runner, *analysis, {op, output}, {});
  QVERIFY(report.rows.back().statistics.has_value());
  QCOMPARE(report.detail->statistics.elements, std::int64_t(80));
  QVERIFY(report.detail->contents.data);
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::SessionTest)
#include "session_test.moc"
