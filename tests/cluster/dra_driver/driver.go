package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
)

// Implements kubeletplugin.DRAPlugin. All state is in cdiDir: one file for each prepared claim, named by its UID, so a
// restart forgets nothing. The helper calls one method at a time.
type driver struct {
	node, cdiDir string
	failed       chan<- error // takes one error without waiting; it ends the program
}

// A CDI specification (github.com/cncf-tags/container-device-interface), as far as it is used.
type cdiSpec struct {
	Version string      `json:"cdiVersion"`
	Kind    string      `json:"kind"`
	Devices []cdiDevice `json:"devices"`
}
type cdiDevice struct {
	Name  string   `json:"name"`
	Edits cdiEdits `json:"containerEdits"`
}
type cdiEdits struct {
	Env []string `json:"env"`
}

const cdiKind = driverName + "/gpu"

func (d *driver) cdiFile(claim types.UID) string {
	return filepath.Join(d.cdiDir, driverName+"-"+string(claim)+".json")
}

// variable turns "gpu-0" into "SIMULATED_GPU_0".
func variable(device string) string {
	return "SIMULATED_" + strings.ToUpper(strings.ReplaceAll(device, "-", "_"))
}

func (d *driver) prepare(claim *resourceapi.ResourceClaim) kubeletplugin.PrepareResult {
	spec := cdiSpec{Version: "0.6.0", Kind: cdiKind}
	var devices []kubeletplugin.Device
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != driverName {
			continue
		}
		if result.Pool != d.node {
			return kubeletplugin.PrepareResult{Err: fmt.Errorf("device %s is of node %s, not %s", result.Device, result.Pool, d.node)}
		}
		// By the claim as well: a name that comes back with other content might be read from a cache.
		name := string(claim.UID) + "-" + result.Device
		spec.Devices = append(spec.Devices, cdiDevice{name, cdiEdits{[]string{variable(result.Device) + "=" + uuid(d.node, result.Device)}}})
		devices = append(devices, kubeletplugin.Device{
			Requests:     []string{result.Request},
			PoolName:     result.Pool,
			DeviceName:   result.Device,
			CDIDeviceIDs: []string{cdiKind + "=" + name},
		})
	}
	if err := writeWhole(d.cdiFile(claim.UID), spec); err != nil {
		return kubeletplugin.PrepareResult{Err: err}
	}
	return kubeletplugin.PrepareResult{Devices: devices}
}

// writeWhole writes a file that others see whole or not at all.
func writeWhole(path string, content any) error {
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	partial := path + ".partial"
	if err := os.WriteFile(partial, text, 0o644); err != nil {
		return err
	}
	return os.Rename(partial, path)
}

func (d *driver) PrepareResourceClaims(_ context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		results[claim.UID] = d.prepare(claim)
	}
	return results, nil
}

func (d *driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := map[types.UID]error{}
	for _, claim := range claims {
		err := os.Remove(d.cdiFile(claim.UID))
		if errors.Is(err, os.ErrNotExist) {
			err = nil // the kubelet asks again where it is not sure
		}
		results[claim.UID] = err
	}
	return results, nil
}

func (d *driver) HandleError(ctx context.Context, err error, message string) {
	runtime.HandleErrorWithContext(ctx, err, message)
	if errors.Is(err, kubeletplugin.ErrRecoverable) {
		return
	}
	select {
	case d.failed <- fmt.Errorf("%s: %w", message, err):
	default: // the program ends already
	}
}
