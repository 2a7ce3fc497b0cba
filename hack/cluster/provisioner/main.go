// Command provisioner serves the default StorageClass of the from-source cluster. It runs on the node itself and
// answers each PersistentVolumeClaim with a folder of its own below --root, as a `local` volume: unlike hostPath,
// that is a volume type on which the kubelet honours a pod's fsGroup, as it does on the disks of a cloud.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v11/controller"
)

const provisionerName = "storagemux.dev/local-folder"

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the kubeconfig `file` to reach the cluster with")
	node := flag.String("node", "", "the `name` of the node that this process runs on")
	root := flag.String("root", "", "the `folder` below which volumes are made")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, folders{node: *node, root: *root}); err != nil {
		fmt.Fprintln(os.Stderr, "provisioner:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string, volumes folders) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig %q: %w", kubeconfig, err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client from kubeconfig %q: %w", kubeconfig, err)
	}
	controller.NewProvisionController(ctx, client, provisionerName, volumes,
		controller.LeaderElection(false),
		// The defaults begin at 15 s and give up, which suits a cloud.
		controller.RateLimiter(workqueue.NewTypedItemExponentialFailureRateLimiter[any](100*time.Millisecond, 5*time.Second)),
		controller.FailedProvisionThreshold(0),
		controller.FailedDeleteThreshold(0),
	).Run(ctx)
	return nil
}

// folders makes and removes volumes, each a folder named like its PersistentVolume.
type folders struct{ node, root string }

func (f folders) Provision(_ context.Context, options controller.ProvisionOptions) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	path := filepath.Join(f.root, options.PVName)
	// Root's own and closed to others: who may write is the pod's fsGroup to say.
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, controller.ProvisioningFinished, fmt.Errorf("make the folder of volume %s: %w", options.PVName, err)
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: options.PVName},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *options.StorageClass.ReclaimPolicy,
			AccessModes:                   options.PVC.Spec.AccessModes,
			VolumeMode:                    options.PVC.Spec.VolumeMode,
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: options.PVC.Spec.Resources.Requests[corev1.ResourceStorage],
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}},
			NodeAffinity:           f.onThisNode(),
		},
	}, controller.ProvisioningFinished, nil
}

func (f folders) Delete(_ context.Context, volume *corev1.PersistentVolume) error {
	if err := os.RemoveAll(filepath.Join(f.root, volume.Name)); err != nil {
		return fmt.Errorf("remove the folder of volume %s: %w", volume.Name, err)
	}
	return nil
}

// onThisNode is what the API asks of every local volume.
func (f folders) onThisNode() *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{f.node},
			}},
		}},
	}}
}
