#include "sidecar/source/index_files.h"

#include "common/spec/formats.h"
#include "sidecar/source/framed_records.h"

namespace headrace::side {

Status IndexFiles(const InputSpec& spec, const std::string& data_dir,
                  const std::function<void(const IndexedFile&)>& done) {
  const auto* const source = std::get_if<FilesSource>(&spec.source);
  if (source == nullptr) return InvalidArgument("spec.source: has no files to index");
  const Format& format = FormatOf(source->format);
  if (format.framer == nullptr) {
    return InvalidArgument("spec.source.files.format: files of format " + std::string(FormatName(source->format)) +
                           " say themselves where their records lie, and need no index");
  }
  ASSIGN_OR_RETURN(const FileTable files, ListFiles(*source, data_dir));
  if (files.any_remote()) {
    return InvalidArgument("spec.source.files.paths: indexes are kept beside files of mounted volumes only");
  }
  for (size_t file = 0;; ++file) {
    ASSIGN_OR_RETURN(const bool more, files.Has(file));
    if (!more) return {};
    const std::string& path = files.path(file);
    SourceContext context;
    context.spec = &spec;
    context.format = &format;
    context.compression = source->compression;
    context.files = FileTable({path});
    context.by_number = SourceContext::ByNumber::kAlways;
    ASSIGN_OR_RETURN(const StoredBlock* const kept, context.FindStored(format, 0));
    ASSIGN_OR_RETURN(const StoredBlock* const block, context.Stored(format, 0));
    if (kept == nullptr) {
      ASSIGN_OR_RETURN(StoredFile* const stored, block->file());
      RETURN_IF_ERROR(SaveRecordIndex(static_cast<const FramedBlock*>(block)->index(), *stored));
    }
    done({path, block->records(), kept == nullptr});
  }
}

}  // namespace headrace::side
