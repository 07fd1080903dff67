# The loader sidecar. The context is build/images, which `make image-context` fills:
#   docker build -f images/loader.Dockerfile -t headrace/loader:0.1.0 build/images
FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates libbz2-1.0 libcurl4 libisal2 libjpeg62-turbo \
      liblz4-1 libpng16-16 libsimdjson14 libprometheus-cpp-core1.0 libpugixml1v5 libsnappy1v5 libssl3 libzstd1 \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/*
COPY lib/ /usr/local/lib/
COPY headrace-loader /usr/local/bin/headrace-loader
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/headrace-loader"]
