// Random programs through Retrograd and through eager LibTorch: scripts/fuzz programs.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <c10/util/Logging.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include "tests/fuzz/programs/catalogue.h"
#include "tests/fuzz/programs/figures.h"
#include "tests/fuzz/programs/generator.h"
#include "tests/fuzz/programs/guarded_memory.h"
#include "tests/fuzz/programs/print.h"
#include "tests/fuzz/programs/read_program.h"
#include "tests/fuzz/programs/schema.h"
#include "tests/fuzz/programs/shrink.h"
#include "tests/fuzz/programs/trial.h"
#include "tests/fuzz/programs/workers.h"

namespace fs = std::filesystem;

namespace retrograd::fuzz {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Options {
  std::uint64_t count = 2000, seed = 1;
  int jobs = 1;
  double seconds = 0;
  int tries = 600;
  std::size_t perFamily = 1;
  std::string findings = "findings";
  bool refused = false;  ///< shrink what was refused too
  std::optional<std::uint64_t> program;
  std::string text;  ///< a file with a printed program, which is run alone under `seed` and `mode`
  Mode mode;
};

std::vector<std::string> opNames() {
  std::set<std::string> names;
  for (const auto& entry : catalogue()) names.insert(entry.op);
  return {names.begin(), names.end()};
}

std::uint64_t programSeed(std::uint64_t seed, std::uint64_t i) { return Random(seed * 0x9e3779b97f4a7c15u + i).next(); }

void setUp() {
  static bool done = false;
  if (done) return;
  done = true;
  at::set_num_threads(1);
  // Drafts that eager refuses are normal here, and the names of the functions on the stack took a quarter of the time.
  c10::SetStackTraceFetcher([]() -> std::string { return {}; });
  guardMemory();
  // Retrograd registers derivatives that LibTorch lacks when it first derives: before any program is made.
  for (std::uint64_t i = 0; i < 3; ++i)
    if (const auto program = generate(i)) tryProgram(*program);
}

/// tryProgram(), and whether a kernel wrote beyond its memory meanwhile.
Verdict tryGuarded(const Program& program) {
  auto verdict = tryProgram(program);
  if (auto damage = takeDamage(); !damage.empty()) {
    // What is refused ran eagerly only: then the damage is LibTorch's own.
    verdict.kind = verdict.kind == Verdict::Kind::refused ? Verdict::Kind::skipped : Verdict::Kind::failed;
    verdict.message = std::move(damage);
  }
  return verdict;
}

std::string work(std::uint64_t seed, const std::unordered_map<std::string, std::size_t>& opIndex) {
  setUp();
  Record record;
  const auto start = Clock::now();
  const auto program = generate(seed);
  record.generating = since(start);
  if (!program) {
    record.kind = -1;
    return record.line();
  }
  record.ops = opCount(*program);
  const auto has = featuresOf(*program);
  const auto& all = allFeatures();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (std::binary_search(has.begin(), has.end(), all[i])) record.features.push_back(i);
  forEachCall(*program, [&](const Call& call) {
    if (const auto it = opIndex.find(call.op); it != opIndex.end()) record.used.push_back(it->second);
  });
  const auto verdict = tryGuarded(*program);
  record.noisy = verdict.noisy;
  record.kind = static_cast<int>(verdict.kind);
  record.where = verdict.where;
  record.message = verdict.message;
  record.subject = verdict.subjectSeconds;
  record.oracle = verdict.oracleSeconds;
  return record.line();
}

/// The smallest program that shows the same (`kind`), as text, command and test.
std::string report(std::uint64_t seed, const Options& options, Verdict::Kind kind, bool dies) {
  setUp();
  const auto program = generate(seed);
  if (!program) return "the seed gives no program any more";
  Verdict last;
  const auto first = dies ? Verdict() : tryGuarded(*program);
  if (!dies && first.kind != kind)
    return fmt::format("# seed {}: by itself it is {}: {}\n{}", seed, name(first.kind), first.message,
                       printProgram(*program));
  const auto wantedFamily = familyOf(first.message);
  const auto fails = [&](const Program& candidate) {
    if (dies) return runIsolated([&] { return tryGuarded(candidate).message; }, 30).died;
    const auto verdict = tryGuarded(candidate);
    if (verdict.kind != first.kind) return false;
    if (first.kind == Verdict::Kind::refused && familyOf(verdict.message) != wantedFamily) return false;
    last = verdict;
    return true;
  };
  const auto small = shrink(*program, fails, dies ? options.tries / 10 : options.tries);
  const auto what = dies ? std::string("the process dies") : last.message.empty() ? first.message : last.message;
  const auto where = dies ? std::string() : last.where.empty() ? first.where : last.where;
  return fmt::format("# seed {}: {} ops, of {}\n# {}{}{}\n# retrograd check program.txt {}\n{}\n{}", seed,
                     opCount(small), opCount(*program), where, where.empty() ? "" : ": ", what, printMode(small),
                     printProgram(small), printTest(small, fmt::format("Seed{:x}", seed), what));
}

class Findings {
 public:
  explicit Findings(const Options& options) : options_(options) {}

  void add(std::uint64_t seed, Verdict::Kind kind, const std::string& where, const std::string& message, bool dies) {
    const auto family = where + ": " + familyOf(message);
    if (families_[family]++ >= options_.perFamily) return;
    fmt::print("seed {} {}: {}\n", seed, where, message);
    const auto text = runIsolated([&] { return report(seed, options_, kind, dies); }, 180);
    const auto body =
        text.died ? fmt::format("# seed {}: {}: {}; shrinking it {}\n", seed, where, message, text.text) : text.text;
    fmt::print("{}\n", body);
    std::fflush(stdout);
    fs::create_directories(options_.findings);
    std::ofstream(fs::path(options_.findings) / fmt::format("program-{}.txt", seed)) << body;
  }

  void print() const {
    for (const auto& [family, count] : families_) fmt::print("  {:>8}  {}\n", count, family);
  }

 private:
  const Options& options_;
  std::map<std::string, std::size_t> families_;
};

/// A mistake in the table of ops would go unnoticed: it is never drawn.
void requireOps(const std::vector<std::string>& names) {
  std::string missing;
  for (const auto& name : names)
    if (!hasSchema(name)) missing += " " + name;
  if (!missing.empty()) throw std::runtime_error("LibTorch has no" + missing);
}

int runOne(const Options& options) {
  setUp();
  const auto program = generate(*options.program);
  if (!program) return fmt::print("the seed gives no program\n"), 0;
  fmt::print("{}", printProgram(*program));
  fmt::print("# retrograd check program.txt {}\n", printMode(*program));
  const auto verdict = tryGuarded(*program);
  fmt::print("# {}: {}: {}\n", verdict.where, name(verdict.kind), verdict.message);
  if (!verdict.isFinding() && verdict.kind != Verdict::Kind::refused) return 0;
  fmt::print("{}\n", report(*options.program, options, verdict.kind, false));
  return 1;
}

int runText(const Options& options) {
  setUp();
  std::ifstream file(options.text);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto verdict = tryGuarded(readProgram(text, options.seed, options.mode));
  fmt::print("{}: {}: {}\n", verdict.where, name(verdict.kind), verdict.message);
  return verdict.kind == Verdict::Kind::same ? 0 : 1;
}

int run(const Options& options) {
  const auto names = opNames();
  requireOps(names);
  if (!options.text.empty()) return runText(options);
  if (options.program) return runOne(options);
  std::unordered_map<std::string, std::size_t> opIndex;
  for (std::size_t i = 0; i < names.size(); ++i) opIndex[names[i]] = i;
  Figures figures(names, allFeatures());
  Findings findings(options);
  const auto start = Clock::now();
  WorkerOptions workers{options.count, options.jobs, options.seconds, 30};
  std::uint64_t done = 0;
  runWorkers(
      workers, [&](std::uint64_t i) { return work(programSeed(options.seed, i), opIndex); },
      [&](std::uint64_t i, const std::string& line) {
        const auto record = Record::of(line);
        figures.add(record);
        if (record.kind >= 0) {
          const auto kind = static_cast<Verdict::Kind>(record.kind);
          if (kind == Verdict::Kind::different || kind == Verdict::Kind::failed ||
              (options.refused && kind == Verdict::Kind::refused))
            findings.add(programSeed(options.seed, i), kind, record.where, name(kind) + ": " + record.message, false);
        }
        if (++done % 10000 == 0) {
          fmt::print("{} of {} after {:.0f} s, {} findings\n", done, options.count, since(start), figures.findings());
          std::fflush(stdout);
        }
      },
      [&](std::uint64_t i, const std::string& how) {
        Record record;
        record.kind = static_cast<int>(Verdict::Kind::failed);
        record.message = how;
        figures.add(record);
        findings.add(programSeed(options.seed, i), Verdict::Kind::failed, "", how, true);
      });
  figures.print(since(start));
  if (figures.findings() > 0) fmt::print("findings\n"), findings.print();
  const auto broken = figures.broken();
  for (const auto& one : broken) fmt::print("not held: {}\n", one);
  return figures.findings() > 0 || !broken.empty() ? 1 : 0;
}

}  // namespace
}  // namespace retrograd::fuzz

int main(int count, char** arguments) {
  using namespace retrograd::fuzz;
  Options options;
  try {
    for (int i = 1; i < count; ++i) {
      const std::string argument = arguments[i];
      const auto value = [&] {
        return i + 1 < count ? std::string(arguments[++i]) : throw std::runtime_error(argument + " takes a value");
      };
      if (argument == "--count") options.count = std::stoull(value());
      else if (argument == "--seed") options.seed = std::stoull(value());
      else if (argument == "--jobs") options.jobs = std::stoi(value());
      else if (argument == "--seconds") options.seconds = std::stod(value());
      else if (argument == "--tries") options.tries = std::stoi(value());
      else if (argument == "--per-family") options.perFamily = std::stoul(value());
      else if (argument == "--findings") options.findings = value();
      else if (argument == "--refused") options.refused = true;
      else if (argument == "--program") options.program = std::stoull(value());
      else if (argument == "--text") options.text = value();
      else if (argument == "--order") options.mode.order = std::stoi(value());
      else if (argument == "--min-cut") options.mode.minCut = true;
      else if (argument == "--recompute-all") options.mode.recomputeAll = true;
      else if (argument == "--cut") options.mode.cuts.push_back(std::stoull(value()));
      else
        throw std::runtime_error(
            "usage: fuzz_programs [--count N] [--seed S] [--jobs J] [--seconds T] [--tries N] [--per-family N] "
            "[--findings FOLDER] [--refused] [--program "
            "SEED]\n"
            "       fuzz_programs --text FILE [--seed S] [--order 2] [--min-cut] [--recompute-all] [--cut "
            "POSITION]...");
    }
    return run(options);
  } catch (const std::exception& e) {
    fmt::print(stderr, "fuzz_programs: {}\n", e.what());
    return 2;
  }
}
