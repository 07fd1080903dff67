// A driver of simulated GPUs for the tests: it publishes devices of its node in a ResourceSlice and prepares claims of
// them for the kubelet, as a real driver does (k8s.io/dynamic-resource-allocation). What a container gets of a device is
// one environment variable, so a test sees who was given what.
//
// It is for tests alone. It runs without privileges, as a user of its own: simulated_gpus.sh gives it the kubelet's
// registration folder and the runtime's CDI folder of its node, where on a real node only root writes, since whoever
// may write there decides what containers get. On a test cluster nobody else is there to be misled.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os/signal"
	"syscall"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

// The name under which DeviceClasses find the devices; also the vendor of the CDI devices.
const driverName = "gpu.example.com"

type options struct {
	kubeconfig, node, registrarDir, pluginDir, cdiDir string
	devices                                           int
}

func parseOptions() (options, error) {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "how to reach the API server")
	flag.StringVar(&o.node, "node", "", "the node's name")
	flag.IntVar(&o.devices, "devices", 2, "GPUs of the node")
	flag.StringVar(&o.registrarDir, "registrar-dir", "", "where the kubelet looks for plugins; exists, writable")
	flag.StringVar(&o.pluginDir, "plugin-dir", "", "for the driver's socket; exists, writable")
	flag.StringVar(&o.cdiDir, "cdi-dir", "", "where the container runtime looks for CDI devices; exists, writable")
	flag.Parse()
	for _, name := range []string{"kubeconfig", "node", "registrar-dir", "plugin-dir", "cdi-dir"} {
		if flag.Lookup(name).Value.String() == "" {
			return o, fmt.Errorf("-%s is required", name)
		}
	}
	return o, nil
}

// uuid names a device in the whole cluster; it is what containers see.
func uuid(node, device string) string { return "SIM-" + node + "-" + device }

func devicesOf(o options) []resourceapi.Device {
	devices := make([]resourceapi.Device, o.devices)
	for i := range devices {
		name := fmt.Sprintf("gpu-%d", i)
		id := uuid(o.node, name)
		devices[i] = resourceapi.Device{
			Name:       name,
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"uuid": {StringValue: &id}},
		}
	}
	return devices
}

func run() error {
	o, err := parseOptions()
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	failed := make(chan error, 1)
	plugin, err := kubeletplugin.Start(ctx, &driver{node: o.node, cdiDir: o.cdiDir, failed: failed},
		kubeletplugin.DriverName(driverName),
		kubeletplugin.NodeName(o.node),
		kubeletplugin.KubeClient(client),
		kubeletplugin.RegistrarDirectoryPath(o.registrarDir),
		kubeletplugin.PluginDataDirectoryPath(o.pluginDir))
	if err != nil {
		return err
	}
	defer plugin.Stop()
	pool := resourceslice.Pool{Slices: []resourceslice.Slice{{Devices: devicesOf(o)}}}
	if err := plugin.PublishResources(ctx, resourceslice.DriverResources{
		Pools: map[string]resourceslice.Pool{o.node: pool}}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

func main() {
	if err := run(); err != nil {
		log.Fatalf("simulated GPUs: %v", err)
	}
}
