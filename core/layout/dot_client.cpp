#include "core/layout/dot_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>

#include "core/base/installation.h"

namespace retrograd::layout {
namespace {

constexpr std::size_t longestAnswer = 64u << 20;
constexpr int pollMilliseconds = 20;  // how long a wish to stop waits at most

/// The request with edges that keep the ports' rows to themselves: nothing else begins as high as the top port or ends
/// as low as the bottom one.
std::string requestOf(const LayerGraph& graph) {
  std::vector<bool> entered(graph.nodes, false), left(graph.nodes, false);
  for (const auto& edge : graph.edges) entered[edge.to] = left[edge.from] = true;
  std::string edges;
  std::size_t count = graph.edges.size();
  for (const auto& edge : graph.edges) edges += fmt::format("e {} {}\n", edge.from, edge.to);
  const auto last = graph.nodes - 1;
  for (std::int32_t i = graph.topPort ? 1 : 0; i < (graph.bottomPort ? last : graph.nodes); ++i) {
    if (graph.topPort && !entered[i]) edges += fmt::format("e 0 {}\n", i), ++count;
    if (graph.bottomPort && !left[i]) edges += fmt::format("e {} {}\n", i, last), ++count;
  }
  auto text = fmt::format("layout {} {} {}\n", graph.nodes, count,
                          dotEffort(graph.nodes) == DotEffort::full ? "full" : "reduced");
  for (std::int32_t i = 0; i < graph.nodes; ++i)
    text += fmt::format("n {:.1f} {:.1f}\n", graph.width[i], std::max(8.f, graph.height[i]));
  return text + edges + "end\n";
}

/// Nothing where the answer is not what was asked for: the helper is not trusted further than its lines.
std::optional<Layering> layeringOf(const LayerGraph& graph, const std::string& answer) {
  std::istringstream in(answer);
  std::string word, line;
  std::int64_t nodes = 0, edges = 0;
  if (!(in >> word >> nodes >> edges) || word != "ok" || nodes != graph.nodes || edges < std::ssize(graph.edges))
    return {};
  std::vector<std::int32_t> rows(graph.nodes);
  std::vector<float> x(graph.nodes);
  for (std::int32_t i = 0; i < graph.nodes; ++i)
    if (!(in >> word >> rows[i] >> x[i]) || word != "n" || rows[i] < 0 || rows[i] >= graph.nodes) return {};
  std::getline(in, line);
  std::vector<std::vector<float>> passages(graph.edges.size());
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    if (!std::getline(in, line)) return {};
    std::istringstream places(line);
    places >> word;
    for (float place = 0; places >> place;) passages[e].push_back(place);
    if (rows[graph.edges[e].from] >= rows[graph.edges[e].to]) return {};
  }
  return layeringFrom(graph, std::move(rows), x, passages);
}

}  // namespace

DotEffort dotEffort(std::int32_t nodes) {
  if (nodes <= 300) return DotEffort::full;
  if (nodes <= 1'000) return DotEffort::reduced;
  return nodes <= 2'000 ? DotEffort::watched : DotEffort::none;
}

std::string layoutHelper() {
  const auto helper = privateFile("retrograd-layout");
  return !helper.empty() && access(helper.c_str(), X_OK) == 0 ? helper.string() : std::string();
}

bool DotClient::start() {
  if (helper_) return true;
  if (program_.empty()) return false;
  ChildOptions options;
  options.streams =
      ChildOptions::Streams::socket;  // at whose end it ends by itself; the thread that starts it may end earlier
  try {
    helper_ = std::make_unique<Child>(std::vector<std::string>{program_}, options);
  } catch (const Error&) {
    return false;
  }
  return true;
}

bool DotClient::wait(short what, const Progress& progress) {
  for (;;) {
    progress.check();
    const auto left = deadline_ - std::chrono::steady_clock::now();
    if (left.count() < 0) return false;
    if (!told_.empty())
      progress.at(told_, 1 - std::chrono::duration<double>(left) / std::chrono::duration<double>(limit_));
    pollfd entry{helper_->output(), what, 0};
    const int ready = poll(&entry, 1, pollMilliseconds);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool DotClient::send(const std::string& text, const Progress& progress) {
  for (std::size_t sent = 0; sent < text.size();) {
    if (!wait(POLLOUT, progress)) return false;
    const auto n = ::send(helper_->output(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (n > 0) sent += n;
  }
  return true;
}

std::string DotClient::receive(const Progress& progress) {
  std::string answer;
  char buffer[1 << 14];
  while (answer.size() < longestAnswer) {
    if (!wait(POLLIN, progress)) return {};
    const auto n = recv(helper_->output(), buffer, sizeof buffer, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return {};
    if (n > 0) answer.append(buffer, n);
    if (answer.ends_with("\nend\n")) return answer;
    if (answer.starts_with("error") && answer.ends_with("\n")) return {};
  }
  return {};
}

std::optional<Layering> DotClient::operator()(const LayerGraph& graph, const Progress& progress) {
  const auto effort = dotEffort(graph.nodes);
  if (graph.nodes < 2 || effort == DotEffort::none || !start()) return {};
  told_ = effort == DotEffort::watched ? fmt::format("dot: {} boxes", graph.nodes) : std::string();
  deadline_ = std::chrono::steady_clock::now() + limit_;
  std::string answer;
  try {
    if (send(requestOf(graph), progress)) answer = receive(progress);
  } catch (const Error&) {
    helper_.reset();
    throw;
  }
  // Whatever went wrong, the next graph gets a helper without a past.
  if (answer.empty()) helper_.reset();
  return answer.empty() ? std::nullopt : layeringOf(graph, answer);
}

std::optional<Layering> bestLayering(DotClient& dot, const LayerGraph& graph, const Progress& progress) {
  auto own = layer(graph, progress);
  const auto ours = quality(own);
  if (ours.crossings == 0) return own;
  auto theirs = dot(graph, progress);
  if (!theirs) return own;
  const auto other = quality(*theirs);
  const bool better = other.crossings != ours.crossings ? other.crossings < ours.crossings : other.span < ours.span;
  return better ? std::move(theirs) : std::move(own);
}

}  // namespace retrograd::layout
