#define USE_DISTRIBUTED
#include "core/torch/ranks/group_link.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <thread>

#include "core/base/error.h"
#include "core/ranks/transport.h"
#include "core/torch/tracing/convert.h"

namespace retrograd {
namespace {

constexpr int noTag = 0;

/// The tensor's bytes: what is sent need not have a dtype that the group knows.
at::Tensor bytesOf(const at::Tensor& tensor) { return tensor.reshape({-1}).view(at::kByte); }

/// A tensor of no bytes is not sent.
class NoTransfer final : public Transfer {
 public:
  void wait() override {}
};

class GroupLink final : public DeviceLink {
 public:
  GroupLink(LinkGroups groups, Device device, const GroupWait& wait)
      : groups_(std::move(groups)), device_(device), wait_(wait) {}
  ~GroupLink() override {
    const bool isNccl = device_.type == Device::Type::cuda;
    for (auto* group : {&groups_.up, &groups_.down}) {
      if (!wait_.hasFailed()) {
        if (isNccl) (*group)->shutdown();  // its destructor would complain that nobody did
        continue;
      }
      // Its threads may still wait for a rank that is gone, and would be waited for here; NCCL's kernels that nobody
      // answers end with abort().
      auto* left = group->release();
      if (isNccl) std::thread([left] { left->abort(); }).detach();
    }
  }

  Device device() const override { return device_; }
  std::string carrier() const override { return device_.type == Device::Type::cuda ? "NCCL" : "Gloo"; }

  TensorData allocate(const TensorMeta& meta) override { return keepTensor(at::empty(meta.sizes, options(meta))); }

  std::unique_ptr<Transfer> send(const TensorData& tensor, int to) override {
    return begin(tensor, to, [&](std::vector<at::Tensor>& bytes) { return group(rank(), to)->send(bytes, to, noTag); });
  }
  std::unique_ptr<Transfer> receive(const TensorData& tensor, int from) override {
    return begin(tensor, from,
                 [&](std::vector<at::Tensor>& bytes) { return group(from, rank())->recv(bytes, from, noTag); });
  }

  TensorData sumOverRanks(const std::optional<TensorData>& term, const TensorMeta& meta) override {
    const auto type = toScalarType(meta.dtype);
    // Small floats are summed as larger ones, as between hosts.
    const auto wide = at::isReducedFloatingType(type) ? at::kFloat : type;
    auto sum = at::zeros(meta.sizes, options(meta).dtype(wide));
    if (term) sum.copy_(borrowTensor(*term));
    std::vector<at::Tensor> tensors{sum.is_complex() ? at::view_as_real(sum) : sum};
    const auto work = wait_.begin(GroupWait::anyRank, [&] { return groups_.up->allreduce(tensors); });
    wait_.polled(*work, GroupWait::anyRank);
    return keepTensor(sum.to(type));
  }

  /// One byte over each way, pair by pair: whoever has the first pair that is not done yet finds its peer there too.
  void connect(RankPairs pairs) {
    std::ranges::sort(pairs);
    for (const auto& [from, to] : pairs)
      if (from == rank() || to == rank()) connectTo(from == rank() ? to : from, from == rank());
  }

 private:
  int rank() const { return groups_.up->getRank(); }
  /// Of what goes from one rank to another.
  const c10::intrusive_ptr<c10d::Backend>& group(int from, int to) const {
    return from < to ? groups_.up : groups_.down;
  }

  void connectTo(int peer, bool sends) {
    // The call owns all that it uses: it may be left behind.
    auto bytes = std::make_shared<std::vector<at::Tensor>>(
        1, at::zeros({1}, at::TensorOptions().dtype(at::kByte).device(toTorchDevice(device_))));
    auto work = std::make_shared<c10::intrusive_ptr<c10d::Work>>();
    const auto way = sends ? group(rank(), peer) : group(peer, rank());
    wait_.leavable([=] { *work = sends ? way->send(*bytes, peer, noTag) : way->recv(*bytes, peer, noTag); }, peer);
    GroupTransfer(*work, bytes->front(), peer, wait_).wait();
  }
  at::TensorOptions options(const TensorMeta& meta) const {
    return at::TensorOptions().dtype(toScalarType(meta.dtype)).device(toTorchDevice(device_));
  }

  std::unique_ptr<Transfer> begin(
      const TensorData& tensor, int peer,
      const std::function<c10::intrusive_ptr<c10d::Work>(std::vector<at::Tensor>&)>& start) {
    if (tensor.memory != device_) throw Error(ErrorCode::internal, "a tensor of another device on a link");
    if (tensor.meta.bytes() == 0) return std::make_unique<NoTransfer>();
    std::vector<at::Tensor> bytes{bytesOf(borrowTensor(tensor))};
    auto work = wait_.begin(peer, [&] { return start(bytes); });
    return std::make_unique<GroupTransfer>(std::move(work), bytes.front(), peer, wait_);
  }

  LinkGroups groups_;
  Device device_;
  const GroupWait& wait_;
};

}  // namespace

std::unique_ptr<DeviceLink> linkOverGroups(LinkGroups groups, Device device, const RankPairs& pairs,
                                           const GroupWait& wait) {
  auto link = std::make_unique<GroupLink>(std::move(groups), device, wait);
  link->connect(pairs);
  return link;
}

}  // namespace retrograd
