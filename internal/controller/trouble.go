package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/render"
)

// startPatience is how long a pod on a node may take before its container is
// created: pulling its image is told apart from it.
const startPatience = time.Minute

// Reasons for which a container waits, as the kubelet gives them.
var (
	pullTrouble  = []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable", "ImageInspectError"}
	startTrouble = []string{"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}
)

// podTrouble says what keeps a pod from running, nil if nothing is known. What
// it says is the same from one try of the kubelet to the next.
func podTrouble(pod *corev1.Pod, now time.Time) *render.Verdict {
	trouble := func(reason, format string, args ...any) *render.Verdict {
		return &render.Verdict{Reason: reason, Message: "pod " + pod.Name + ": " + fmt.Sprintf(format, args...)}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return trouble(v1alpha1.ReasonUnschedulable, "%s", c.Message)
		}
	}
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		waiting := c.State.Waiting
		switch {
		case waiting == nil:
		case slices.Contains(pullTrouble, waiting.Reason):
			return trouble(v1alpha1.ReasonImagePullFailed, "the image %s cannot be pulled", c.Image)
		case waiting.Reason == "CrashLoopBackOff":
			if last := c.LastTerminationState.Terminated; last != nil {
				return trouble(v1alpha1.ReasonProxyCrashing, "the proxy ends again and again, last with exit code %d (%s)", last.ExitCode, last.Reason)
			}
			return trouble(v1alpha1.ReasonProxyCrashing, "the proxy ends again and again")
		case slices.Contains(startTrouble, waiting.Reason):
			return trouble(v1alpha1.ReasonPodNotStarting, "%s: %s", waiting.Reason, waiting.Message)
		case overdueStart(pod, now):
			return trouble(v1alpha1.ReasonPodNotStarting, "it waits for its volumes and its network for more than %s, its events say why", startPatience)
		}
	}
	return nil
}

// overdueStart reports whether a pod has been on its node for longer than its
// volumes and its network should take.
func overdueStart(pod *corev1.Pod, now time.Time) bool {
	return pod.Status.StartTime != nil && now.Sub(pod.Status.StartTime.Time) >= startPatience
}

// starting reports whether a pod may come to be overdue.
func starting(pod *corev1.Pod) bool {
	return pod.Status.StartTime != nil && slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.State.Waiting != nil && c.State.Waiting.Reason == "ContainerCreating"
	})
}

// gatherTrouble finds out why there are no pods at all although there should
// be, and looks again at those that take long to start.
func (r *muxReconciler) gatherTrouble(ctx context.Context, scope *muxScope) error {
	for i := range scope.pods {
		if pod := &scope.pods[i]; starting(pod) && !overdueStart(pod, scope.facts.Now) {
			scope.later(startPatience + time.Second - scope.facts.Now.Sub(pod.Status.StartTime.Time))
		}
	}
	if len(scope.pods) > 0 || !render.HasWorkload(scope.mux) || render.Replicas(scope.mux) == 0 {
		return nil
	}
	meta, err := r.deploymentMeta(ctx, types.NamespacedName{Namespace: scope.mux.Namespace, Name: scope.mux.Name})
	if err != nil || meta == nil {
		return err
	}
	deployment := &appsv1.Deployment{}
	key := types.NamespacedName{Namespace: meta.Namespace, Name: meta.Name}
	if err := r.live.Get(ctx, key, deployment); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("read Deployment %s: %w", key, err)
	}
	for _, c := range deployment.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			scope.trouble = &render.Verdict{Reason: v1alpha1.ReasonPodsNotCreated, Message: "the pods cannot be created: " + c.Message}
		}
	}
	return nil
}
