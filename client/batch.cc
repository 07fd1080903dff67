#include "client/batch.h"

#include <string>
#include <utility>

using headrace::Status;
using headrace::client::Component;
using headrace::client::Connection;

headrace_batch* headrace_batch::New(const std::shared_ptr<Connection>& connection) {
  headrace_batch* batch = connection->TakeSpare();
  if (batch == nullptr) [[unlikely]]
    batch = new (connection->components().size()) headrace_batch;
  batch->connection = connection;
  return batch;
}

void headrace_batch::Free(headrace_batch* batch) {
  // Until the object is kept: this batch may be the last that holds the connection.
  const std::shared_ptr<Connection> connection = std::move(batch->connection);
  connection->Release(batch->arrival, batch->users);
  Keep(batch, *connection);
  connection->PrepareNext();
}

void headrace_batch::Drop(headrace_batch* batch) {
  const std::shared_ptr<Connection> connection = std::move(batch->connection);
  Keep(batch, *connection);
}

void headrace_batch::Keep(headrace_batch* batch, Connection& connection) {
  batch->arrival = {};
  batch->measured = false;
  batch->checked.store(0, std::memory_order_relaxed);
  batch->users.clear();
  delete connection.KeepSpare(batch);
}

std::string headrace_batch::Where(size_t i) const {
  return "ring: component '" + connection->components()[i].spec.name + "' of step " + std::to_string(view().step);
}

Status headrace_batch::Measure() {
  const std::vector<Component>& components = connection->components();
  for (size_t i = 0; i < components.size(); ++i) {
    if (MeasureTensor(components[i], extent(i), &strides()[i])) [[likely]]
      continue;
    return headrace::Corrupt(Where(i) + ": " + std::to_string(extent(i).bytes) + " bytes in " +
                             std::to_string(extent(i).ndim) + " dimensions are not what its shape and dtype take");
  }
  return {};
}

Status headrace_batch::CheckRowSplitsOnce(size_t i) const {
  // A bit for each of the first 64; those beyond are checked each time.
  const uint64_t bit = i < 64 ? uint64_t{1} << i : 0;
  if (extent(i).splits_offset == 0 || (checked.load(std::memory_order_relaxed) & bit) != 0) return {};
  RETURN_IF_ERROR(headrace::client::CheckRowSplits(connection->components()[i], extent(i), strides()[i], view().data),
                  Where(i));
  checked.fetch_or(bit, std::memory_order_relaxed);
  return {};
}
