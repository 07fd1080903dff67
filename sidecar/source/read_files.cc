#include <algorithm>
#include <vector>

#include "sidecar/source/source.h"
#include "sidecar/transform/counted.h"

namespace headrace::side {
namespace {

class AllFiles : public Dataset<File> {
 public:
  explicit AllFiles(const FileTable& files) : files_(files) {}
  std::unique_ptr<Stream<File>> Iterate(Pass) const override { return std::make_unique<FileStream>(files_); }

 private:
  class FileStream : public Stream<File> {
   public:
    explicit FileStream(const FileTable& files) : files_(files) {}
    Result<size_t> Read(std::span<File> out) override {
      size_t read = 0;
      for (; read < out.size(); ++read) {
        ASSIGN_OR_RETURN(const bool more, files_.Has(next_));
        if (!more) break;
        out[read].index = static_cast<uint32_t>(next_++);
      }
      return read;
    }

    Result<uint64_t> PassOver(uint64_t n) override {
      uint64_t passed = 0;
      for (; passed < n; ++passed) {
        ASSIGN_OR_RETURN(const bool more, files_.Has(next_));
        if (!more) break;
        ++next_;
      }
      return passed;
    }

   private:
    const FileTable& files_;
    size_t next_ = 0;
  };
  const FileTable files_;
};

// tf.data's interleave: cycle_length slots visited in turn. A visited empty slot takes the next file and is read at
// once; after block_length records, or when the slot's file ends (the slot becomes empty), the next slot is visited.
// Once no files are left, empty slots are passed over. One slot is file after file.
class ReadFilesDataset : public Dataset<Record> {
 public:
  ReadFilesDataset(DatasetPtr<File> files, const Interleave& interleave, const Format& format, SourceContext* context)
      : files_(std::move(files)), interleave_(interleave), format_(format), context_(context) {}

  std::unique_ptr<Stream<Record>> Iterate(Pass pass) const override {
    return std::make_unique<InterleaveStream>(*this, files_->Iterate(pass));
  }

 private:
  class InterleaveStream : public Stream<Record> {
   public:
    InterleaveStream(const ReadFilesDataset& read, std::unique_ptr<Stream<File>> files)
        : read_(read), files_(std::move(files)), slots_(read.interleave_.cycle_length) {}

    Result<size_t> Read(std::span<Record> out) override {
      return Visit(out.size(), [&](Stream<Record>& slot, uint64_t most) -> Result<uint64_t> {
        ASSIGN_OR_RETURN(const size_t read, slot.Read(out.first(most)));
        return read;
      });
    }
    Result<uint64_t> PassOver(uint64_t n) override {
      uint64_t passed = 0;
      while (passed < n) {
        ASSIGN_OR_RETURN(const uint64_t more,
                         Visit(n - passed, [](Stream<Record>& slot, uint64_t most) { return slot.PassOver(most); }));
        if (more == 0) break;
        passed += more;
      }
      return passed;
    }

   private:
    // Takes up to `wanted` records of one slot by `take`, and returns how many; 0 is the end.
    template <typename Take>
    Result<uint64_t> Visit(uint64_t wanted, Take take) {
      size_t passed_over = 0;
      while (passed_over < slots_.size()) {
        auto& slot = slots_[current_];
        if (slot == nullptr && !no_more_files_) {
          File file;
          ASSIGN_OR_RETURN(const bool more, ReadOne(*files_, file));
          no_more_files_ = !more;
          if (more) {
            ASSIGN_OR_RETURN(slot, OpenRecords(read_.format_, *read_.context_, file.index));
          }
        }
        if (slot == nullptr) {
          Advance();
          ++passed_over;
          continue;
        }
        passed_over = 0;
        ASSIGN_OR_RETURN(const uint64_t read, take(*slot, std::min<uint64_t>(wanted, left_in_block_)));
        if (read == 0) {
          slot.reset();
          Advance();
          continue;
        }
        left_in_block_ -= static_cast<int64_t>(read);
        if (left_in_block_ == 0) Advance();
        return read;
      }
      return uint64_t{0};
    }

    void Advance() {
      current_ = (current_ + 1) % slots_.size();
      left_in_block_ = read_.interleave_.block_length;
    }

    const ReadFilesDataset& read_;
    std::unique_ptr<Stream<File>> files_;
    std::vector<std::unique_ptr<Stream<Record>>> slots_;
    size_t current_ = 0;
    int64_t left_in_block_ = read_.interleave_.block_length;
    bool no_more_files_ = false;
  };

  DatasetPtr<File> files_;
  Interleave interleave_;
  const Format& format_;
  SourceContext* context_;
};

DatasetPtr<File> WholeFileList(const Plan& plan, const TransformContext& transform, const SourceContext& context) {
  return ApplyFilePipeline(std::get<FilesSource>(plan.spec.source).pipeline, "spec.source.files.pipeline", transform,
                           std::make_unique<AllFiles>(context.files));
}

}  // namespace

DatasetPtr<File> MakeFileList(const Plan& plan, const TransformContext& transform, const SourceContext& context) {
  DatasetPtr<File> files = WholeFileList(plan, transform, context);
  const Topology& topology = transform.topology;
  if (plan.effective_policy != AutoShardPolicy::kFile || topology.num_workers == 1) return files;
  return std::make_unique<ShardDataset<File>>(std::move(files), topology.num_workers, topology.worker_index, 0, "");
}

DatasetPtr<Record> ReadFiles(DatasetPtr<File> files, const Interleave& interleave, const Format& format,
                             SourceContext* context) {
  return std::make_unique<ReadFilesDataset>(std::move(files), interleave, format, context);
}

Status CheckFileCount(const Plan& plan, const TransformContext& transform, const SourceContext& context) {
  const int64_t workers = transform.topology.num_workers;
  if (plan.effective_policy != AutoShardPolicy::kFile || workers == 1) return {};
  // Counted on the list that is sharded, of which a repeat may make more, or a take fewer, than there are files.
  const DatasetPtr<File> list = WholeFileList(plan, transform, context);
  const auto stream = list->Iterate({});
  int64_t count = 0;
  File file;
  while (count < workers) {
    ASSIGN_OR_RETURN(const bool more, ReadOne(*stream, file));
    if (!more) break;
    ++count;
  }
  if (count == workers) return {};
  return InvalidArgument("spec.source.files.paths: " + std::to_string(count) + " file" + (count == 1 ? "" : "s") +
                         " for " + std::to_string(workers) + " workers under policy " +
                         (plan.spec.distribution.auto_shard_policy == AutoShardPolicy::kAuto ? "Auto, which is File "
                                                                                               "where there are files"
                                                                                             : "File") +
                         ": every worker needs at least one; use at most " + std::to_string(count) +
                         " workers, split the data into more files, or set spec.distribution.autoShardPolicy to Data");
}

Status CheckFirstHeader(const Plan& plan, const TransformContext& transform, SourceContext* context) {
  if (!context->format->headers) return {};
  const DatasetPtr<File> files = MakeFileList(plan, transform, *context);
  File first;
  ASSIGN_OR_RETURN(const bool any, ReadOne(*files->Iterate({}), first));
  if (!any) return {};
  ASSIGN_OR_RETURN(const auto records, OpenRecords(*context->format, *context, first.index));
  if (context->format->framer == nullptr) return {};  // it was read to open the file
  Record record;
  return ReadOne(*records, record).status();
}

}  // namespace headrace::side
