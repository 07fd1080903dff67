# Run by `helm test` (templates/tests/delivery.yaml) in a pod that uses a tiny input. That it runs at all says that the
# operator accepted the input, that the webhook put the loader into the pod, and that the loader started. What is left to
# see is that it delivers. The image has bash and no HTTP client.
metrics() {
  exec 3<>"/dev/tcp/127.0.0.1/${PORT:-9464}" || return
  printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3
  cat <&3
  exec 3>&-
}
if [ ! -S "${HEADRACE_DIR:?the webhook did not inject this container}/loader.sock" ]; then
  echo "no loader listens at $HEADRACE_DIR/loader.sock"
  exit 1
fi
while text=$(metrics 2>&1); do
  if batches=$(grep '^headrace_loader_ring_batches{replica="0"} [1-9]' <<< "$text"); then
    echo "the loader delivers: $batches"
    exit 0
  fi
  sleep 0.2  # the Job's deadline ends this
done
echo "the loader does not tell its metrics: $text"
exit 1
