# The operator. The context is build/images, which `make image-context` fills:
#   docker build -f images/operator.Dockerfile -t headrace/operator:0.1.0 build/images
FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends libcpprest2.10 libprometheus-cpp-core1.0 libssl3 zlib1g \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/*
COPY headrace-operator /usr/local/bin/headrace-operator
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/headrace-operator"]
