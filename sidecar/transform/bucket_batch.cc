#include "sidecar/transform/bucket_batch.h"

#include <algorithm>
#include <cstring>

#include "common/spec/bucket_batch.h"
#include "common/spec/components.h"

namespace headrace::side {
namespace {

class BucketBatchDataset : public Dataset<Batch> {
 public:
  BucketBatchDataset(DatasetPtr<Record> input, const headrace::Batch& batch, LookSite site)
      : input_(std::move(input)),
        buckets_(*batch.buckets),
        drop_remainder_(batch.drop_remainder),
        site_(std::move(site)) {}

  std::unique_ptr<Stream<Batch>> Iterate(Pass pass) const override;

 private:
  class BucketStream;
  const DatasetPtr<Record> input_;
  const headrace::Batch::Buckets buckets_;
  const bool drop_remainder_;
  const LookSite site_;
};

class BucketBatchDataset::BucketStream : public Stream<Batch> {
 public:
  BucketStream(const BucketBatchDataset& dataset, std::unique_ptr<Stream<Record>> input)
      : dataset_(dataset),
        input_(std::move(input)),
        decoded_(dataset.site_),
        // ParseInputSpec has found it.
        component_(*BucketedComponent(dataset.buckets_, decoded_.components())),
        buckets_(dataset.buckets_.sizes.size()),
        block_(decoded_.most()) {
    const TensorSpec& component = decoded_.components()[component_];
    if (component.dtype == DType::kString) return;
    unit_bytes_ = DTypeSize(component.dtype);
    for (size_t d = 1; d < component.shape.size(); ++d) unit_bytes_ *= static_cast<size_t>(component.shape[d]);
  }

  Result<size_t> Read(std::span<Batch> out) override {
    while (!ended_) {
      // No batch is full before as many have come as its bucket lacks: then it is the last of them that fills one.
      const std::span<Record> block = std::span(block_).first(std::min(Lacking(), block_.size()));
      ASSIGN_OR_RETURN(const size_t read, input_->Read(block));
      ended_ = read == 0;
      if (ended_) break;
      std::vector<Record>* full = nullptr;
      RETURN_IF_ERROR(decoded_.ForEach(block.first(read), [&](size_t i, size_t row) -> Status {
        const size_t bucket = BucketOf(row);
        buckets_[bucket].push_back(std::move(block[i]));
        if (buckets_[bucket].size() == Size(bucket)) full = &buckets_[bucket];
        return {};
      }));
      if (full != nullptr) return Give(full, &out[0]);
    }
    for (; !dataset_.drop_remainder_ && flushed_ < buckets_.size(); ++flushed_) {
      if (!buckets_[flushed_].empty()) return Give(&buckets_[flushed_], &out[0]);
    }
    return size_t{0};
  }

 private:
  size_t Size(size_t bucket) const { return static_cast<size_t>(dataset_.buckets_.sizes[bucket]); }
  size_t Lacking() const {
    size_t least = Size(0) - buckets_[0].size();
    for (size_t b = 1; b < buckets_.size(); ++b) least = std::min(least, Size(b) - buckets_[b].size());
    return least;
  }
  size_t BucketOf(size_t row) const {
    BytesRef values;
    std::memcpy(&values, decoded_.Row(component_, row), sizeof values);
    const std::vector<int64_t>& boundaries = dataset_.buckets_.boundaries;
    const auto length = static_cast<int64_t>(values.size / unit_bytes_);
    return static_cast<size_t>(std::upper_bound(boundaries.begin(), boundaries.end(), length) - boundaries.begin());
  }

  static size_t Give(std::vector<Record>* bucket, Batch* out) {
    out->records.clear();
    out->records.swap(*bucket);  // a bucket filled again takes the memory of a batch that is gone
    out->rows = static_cast<int64_t>(out->records.size());
    out->row_records = 1;
    return 1;
  }

  const BucketBatchDataset& dataset_;
  std::unique_ptr<Stream<Record>> input_;
  DecodedRecords decoded_;
  const size_t component_;
  size_t unit_bytes_ = 1;  // of the first dimension
  std::vector<std::vector<Record>> buckets_;
  std::vector<Record> block_;
  bool ended_ = false;
  size_t flushed_ = 0;  // buckets, at the end
};

std::unique_ptr<Stream<Batch>> BucketBatchDataset::Iterate(Pass pass) const {
  return std::make_unique<BucketStream>(*this, input_->Iterate(pass));
}

}  // namespace

DatasetPtr<Batch> MakeBucketBatch(DatasetPtr<Record> input, const headrace::Batch& batch, LookSite site) {
  return std::make_unique<BucketBatchDataset>(std::move(input), batch, std::move(site));
}

}  // namespace headrace::side
