package controller

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/controller/fleet"
	"github.com/suaveplan/storagemux/internal/controller/status"
	"github.com/suaveplan/storagemux/internal/render"
)

// cachedPods returns the proxy pods of a mux that exist.
func cachedPods(ctx context.Context, cache client.Reader, mux types.NamespacedName) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := cache.List(ctx, list, client.InNamespace(mux.Namespace), client.MatchingFields{indexPods: mux.Name}); err != nil {
		return nil, fmt.Errorf("list the proxy pods of StorageMux %s: %w", mux, err)
	}
	return existing(list.Items), nil
}

// livePods returns the proxy pods of a namespace that exist, by mux, as the API
// server knows them. An empty mux asks for all.
func livePods(ctx context.Context, live client.Reader, namespace, mux string) (map[string][]corev1.Pod, error) {
	wanted := client.MatchingLabels{v1alpha1.LabelName: v1alpha1.LabelNameValue, v1alpha1.LabelManagedBy: v1alpha1.LabelManagedByValue}
	if mux != "" {
		wanted[v1alpha1.LabelMux] = mux
	}
	list := &corev1.PodList{}
	if err := live.List(ctx, list, client.InNamespace(namespace), wanted); err != nil {
		return nil, fmt.Errorf("list the proxy pods of namespace %s: %w", namespace, err)
	}
	pods := map[string][]corev1.Pod{}
	for _, pod := range existing(list.Items) {
		pods[pod.Labels[v1alpha1.LabelMux]] = append(pods[pod.Labels[v1alpha1.LabelMux]], pod)
	}
	return pods, nil
}

// existing leaves out pods without a process that could still run.
func existing(pods []corev1.Pod) []corev1.Pod {
	return slices.DeleteFunc(pods, func(p corev1.Pod) bool {
		return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
}

// proxiesOf joins the pods of a mux with what the fleet has heard of them.
func (s *shared) proxiesOf(mux types.NamespacedName, pods []corev1.Pod) []status.Proxy {
	seen, now := s.fleet.Observations(mux), s.now()
	proxies := make([]status.Proxy, 0, len(pods))
	for i := range pods {
		pod := &pods[i]
		p := status.Proxy{
			Proxy:       render.Proxy{Pod: pod.Name, Running: running(pod), Ready: ready(pod)},
			Terminating: pod.DeletionTimestamp != nil,
			Unheard:     true,
			Trouble:     podTrouble(pod, now),
		}
		if o, ok := seen[pod.Name]; ok && o.Target.UID == string(pod.UID) {
			p.Report, p.Stale = o.Report, o.Freshness == fleet.Lost
			p.Unheard = o.Report == nil && o.Freshness != fleet.Lost
			p.Tried = o.Freshness != fleet.Pending
		}
		proxies = append(proxies, p)
	}
	return proxies
}

// facts returns the part of proxies that decisions are made from.
func facts(proxies []status.Proxy) []render.Proxy {
	list := make([]render.Proxy, 0, len(proxies))
	for i := range proxies {
		list = append(list, proxies[i].Proxy)
	}
	return list
}

// fleetTargets are the pods that have an address to be asked at.
func fleetTargets(mux *v1alpha1.StorageMux, pods []corev1.Pod) []fleet.Target {
	var list []fleet.Target
	for i := range pods {
		if pod := &pods[i]; pod.Status.PodIP != "" {
			list = append(list, fleet.Target{
				Mux:    types.NamespacedName{Namespace: mux.Namespace, Name: mux.Name},
				MuxUID: string(mux.UID),
				Pod:    pod.Name, UID: string(pod.UID), IP: pod.Status.PodIP,
			})
		}
	}
	return list
}

// running reports whether a process of the pod may hold requests.
func running(pod *corev1.Pod) bool {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].State.Running != nil {
			return true
		}
	}
	return false
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
