// tf.data's enumerate(start): numbers the records; the number becomes the component "index".
#pragma once

#include "sidecar/core/dataset.h"

namespace headrace::side {

class EnumerateDataset : public Dataset<Record> {
 public:
  EnumerateDataset(DatasetPtr<Record> input, int64_t start) : input_(std::move(input)), start_(start) {}

  std::unique_ptr<Stream<Record>> Iterate(Pass pass) const override {
    return std::make_unique<EnumerateStream>(input_->Iterate(pass), start_);
  }

 private:
  class EnumerateStream : public Stream<Record> {
   public:
    EnumerateStream(std::unique_ptr<Stream<Record>> input, int64_t start) : input_(std::move(input)), next_(start) {}
    Result<size_t> Read(std::span<Record> out) override {
      ASSIGN_OR_RETURN(const size_t read, input_->Read(out));
      for (size_t i = 0; i < read; ++i) out[i].index = next_++;
      return read;
    }

    Result<uint64_t> PassOver(uint64_t n) override {
      ASSIGN_OR_RETURN(const uint64_t passed, input_->PassOver(n));
      next_ += static_cast<int64_t>(passed);
      return passed;
    }

   private:
    std::unique_ptr<Stream<Record>> input_;
    int64_t next_;
  };

  DatasetPtr<Record> input_;
  int64_t start_;
};

}  // namespace headrace::side
