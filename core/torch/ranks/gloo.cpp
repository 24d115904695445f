// Gloo's own headers are Debian's (libgloo-dev); its code is in LibTorch. Only pointers to Gloo's objects pass through
// here, whose layouts may differ.
#define USE_DISTRIBUTED
#define USE_C10D_GLOO
#include <ATen/ops/from_blob.h>
#include <ATen/ops/view_as_real.h>
#include <arpa/inet.h>
#include <c10/util/Logging.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "core/base/error.h"
#include "core/ranks/liveness.h"
#include "core/ranks/transport.h"
#include "core/torch/execution/device.h"
#include "core/torch/ranks/group_link.h"
#include "core/torch/ranks/group_wait.h"
#include "core/torch/ranks/nccl_library.h"
#include "core/torch/tracing/convert.h"

namespace retrograd {
namespace {

using namespace std::chrono_literals;

constexpr int onlyErrors = 2;

/// Keeps the bytes alive.
at::Tensor asTensor(const std::shared_ptr<const Bytes>& bytes) {
  return at::from_blob(const_cast<std::byte*>(bytes->data()), {std::ssize(*bytes)}, [bytes](void*) {}, at::kByte);
}

/// The keys of the run that the ranks' signs of life need, over a connection of their own.
class StoreKeys final : public SharedKeys {
 public:
  explicit StoreKeys(const c10::intrusive_ptr<c10d::Store>& store) : store_(store->clone()) {}
  void set(const std::string& key, const std::string& value) override { store_->set(key, bytes(value)); }
  std::string setOnce(const std::string& key, const std::string& value) override {
    return text(store_->compareSet(key, {}, bytes(value)));
  }
  std::optional<std::string> find(const std::string& key) override {
    if (!store_->check({key})) return std::nullopt;
    return text(store_->get(key));
  }
  std::vector<std::string> all(const std::vector<std::string>& keys) override {
    std::vector<std::string> values;
    for (const auto& value : store_->multiGet(keys)) values.push_back(text(value));
    return values;
  }

 private:
  static std::vector<std::uint8_t> bytes(const std::string& text) { return {text.begin(), text.end()}; }
  static std::string text(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }
  c10::intrusive_ptr<c10d::Store> store_;
};

bool isLoopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

/// A socket for the store to listen on, which by itself would listen on all interfaces and serve anyone who asks. The
/// store closes it.
int loopbackSocket(const std::string& address, int port) {
  const bool isSix = address == "::1";
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, address.c_str(), &four.sin_addr) != 1) four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = four.sin_port;
  six.sin6_addr = in6addr_loopback;
  const int handle = ::socket(isSix ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  const auto* place = isSix ? reinterpret_cast<const sockaddr*>(&six) : reinterpret_cast<const sockaddr*>(&four);
  if (handle >= 0 && ::setsockopt(handle, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
      ::bind(handle, place, isSix ? sizeof six : sizeof four) == 0 && ::listen(handle, SOMAXCONN) == 0)
    return handle;
  const std::string why = std::strerror(errno);
  if (handle >= 0) ::close(handle);
  throw Error(ErrorCode::execution, fmt::format("the ranks cannot meet at {}:{}: {}", address, port, why),
              "MASTER_ADDR");
}

class GlooTransport final : public Transport {
 public:
  explicit GlooTransport(const Rendezvous& where) : where_(where) {
    // A failure is reported as an error, once; LibTorch's log would add its own stack for each try.
    if (!std::getenv("TORCH_CPP_LOG_LEVEL")) FLAGS_caffe2_log_level = onlyErrors;
    signal(SIGPIPE, SIG_IGN);  // a peer that is gone is an error of the write, not the end of this process
    store_ = openStore();
    liveness_ = std::make_unique<Liveness>(std::make_unique<StoreKeys>(store_), where.rank, where.size, where.silence);
    wait_.emplace(*liveness_, where.operation);
    group_ = connect("gloo");
    liveness_->watch();
  }
  ~GlooTransport() override {
    liveness_->leave(where_.rank != 0 ? 0ms : liveness_->hasFailed() ? 5000ms : where_.operation);  // the store is here
    if (!liveness_->hasFailed()) return;
    // The group's threads may still wait for a rank that is gone, and would be waited for here.
    static_cast<void>(group_.release());
    static_cast<void>(store_.release());
  }

  int rank() const override { return where_.rank; }
  int size() const override { return where_.size; }

  std::unique_ptr<Transfer> send(std::shared_ptr<const Bytes> bytes, int to, int tag) override {
    return begin(bytes, to, [&](std::vector<at::Tensor>& tensors) { return group_->send(tensors, to, tag); });
  }
  std::unique_ptr<Transfer> receive(std::shared_ptr<Bytes> bytes, int from, int tag) override {
    return begin(bytes, from, [&](std::vector<at::Tensor>& tensors) { return group_->recv(tensors, from, tag); });
  }

  void sumOverRanks(std::span<std::byte> elements, DType dtype) override {
    const auto type = toScalarType(dtype);
    const auto given = at::from_blob(elements.data(), {std::ssize(elements) / itemSize(dtype)}, type);
    auto sum = at::isReducedFloatingType(type) ? given.to(at::kFloat)
                                               : given.clone();  // the group's own, who may be left behind with it
    std::vector<at::Tensor> tensors{at::isComplexType(type) ? at::view_as_real(sum) : sum};
    together([&] { return group_->allreduce(tensors); });
    given.copy_(sum);
  }
  void barrier() override {
    together([&] { return group_->barrier(); });
  }

  void fail(const std::string& reason) noexcept override { liveness_->fail(where_.rank, reason); }

  LinkResult linkDevices(const std::optional<Device>& device, const RankPairs& pairs) override {
    const auto offers = exchange(offerOf(device));
    if (auto refusal = linkRefusal(offers); !refusal.empty()) return {nullptr, std::move(refusal)};
    return {linkOverGroups(linkGroups(*device), *device, pairs, *wait_), {}};
  }

 private:
  c10::intrusive_ptr<c10d::TCPStore> openStore() const {
    c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(where_.port);
    options.isServer = where_.rank == 0;
    options.numWorkers = where_.size;
    options.timeout = where_.meeting;
    if (options.isServer && isLoopback(where_.address))
      options.masterListenFd = loopbackSocket(where_.address, where_.port);
    try {
      return c10::make_intrusive<c10d::TCPStore>(where_.address, options);
    } catch (const std::exception& error) {
      throw Error(ErrorCode::execution, fmt::format("rank {} of {} does not meet the others at {}:{} within {} s: {}",
                                                    where_.rank, where_.size, where_.address, where_.port,
                                                    where_.meeting.count() / 1000, reasonOf(error)));
    }
  }

  c10::intrusive_ptr<c10d::ProcessGroupGloo> connect(const std::string& name) const {
    auto options = c10d::ProcessGroupGloo::Options::create(where_.meeting);
    try {
      options->devices.push_back(device());
      auto store = c10::make_intrusive<c10d::PrefixStore>(name, store_);
      auto group = c10::make_intrusive<c10d::ProcessGroupGloo>(store, where_.rank, where_.size, options);
      group->setTimeout(where_.operation);
      return group;
    } catch (const std::exception& error) {
      // A rank that dies now is no more than a closed connection to this one, so the message says where the ranks meet.
      throw Error(ErrorCode::execution,
                  fmt::format("rank {} of {} cannot connect to the others, who meet at rank 0 ({}:{}): {}", where_.rank,
                              where_.size, where_.address, where_.port, reasonOf(error)));
    }
  }

  /// The network to use: the loopback where all are on one machine, else GLOO_SOCKET_IFNAME's, else that of the
  /// machine's name.
  std::shared_ptr<gloo::transport::Device> device() const {
    if (isLoopback(where_.address)) return c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
    if (const auto* interface = std::getenv("GLOO_SOCKET_IFNAME"))
      return c10d::ProcessGroupGloo::createDeviceForInterface(interface);
    return c10d::ProcessGroupGloo::createDefaultDevice();
  }

  template <typename Begin>
  std::unique_ptr<Transfer> begin(const std::shared_ptr<const Bytes>& bytes, int peer, const Begin& start) {
    if (peer < 0 || peer >= where_.size || peer == where_.rank)
      throw Error(ErrorCode::badUse, fmt::format("rank {} has no connection to rank {}", where_.rank, peer));
    std::vector<at::Tensor> tensors{asTensor(bytes)};
    auto work = wait_->begin(peer, [&] { return start(tensors); });
    return std::make_unique<GroupTransfer>(std::move(work), tensors.front(), peer, *wait_);
  }

  /// Runs a collective. It cannot be interrupted, only left behind: with a failure its memory and threads are no longer
  /// waited for.
  template <typename Begin>
  void together(const Begin& start) const {
    const auto work = wait_->begin(GroupWait::anyRank, start);
    wait_->polled(*work, GroupWait::anyRank);
  }

  static LinkOffer offerOf(const std::optional<Device>& device) {
    LinkOffer offer{device, {}, {}};
    if (!device || device->type != Device::Type::cuda) return offer;
    try {
      requireDevice(*device);
      const auto& nccl = ncclLibrary();
      offer.trouble = nccl.trouble;
      if (!offer.trouble.empty()) return offer;
      std::array<char, 33> unit{};
      nccl.unit(device->index, unit.data());
      offer.unit = unit.data();
    } catch (const std::exception& error) {
      offer.trouble = reasonOf(error);
    }
    return offer;
  }

  /// What all ranks offer, in their order.
  std::vector<LinkOffer> exchange(const LinkOffer& own) {
    const auto key = [](int rank) { return fmt::format("link/{}", rank); };
    StoreKeys keys(store_);
    keys.set(key(where_.rank), text(own));
    barrier();
    std::vector<std::string> names;
    for (int rank = 0; rank < where_.size; ++rank) names.push_back(key(rank));
    std::vector<LinkOffer> offers;
    for (const auto& one : keys.all(names)) offers.push_back(linkOffer(one));
    return offers;
  }

  LinkGroups linkGroups(Device device) const {
    if (device.type != Device::Type::cuda) return {connect("link/up"), connect("link/down")};
    const auto make = [&](const char* name) {
      const auto store = c10::make_intrusive<c10d::PrefixStore>(name, store_->clone());
      return c10::intrusive_ptr<c10d::Backend>::reclaim(
          ncclLibrary().group(store.get(), where_.rank, where_.size, where_.operation.count()));
    };
    return {make("nccl/up"), make("nccl/down")};
  }

  Rendezvous where_;
  c10::intrusive_ptr<c10d::TCPStore> store_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  std::unique_ptr<Liveness> liveness_;
  std::optional<GroupWait> wait_;
};

}  // namespace

std::unique_ptr<Transport> connectRanks(const Rendezvous& rendezvous) {
  return std::make_unique<GlooTransport>(rendezvous);
}

}  // namespace retrograd
