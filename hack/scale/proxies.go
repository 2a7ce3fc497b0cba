package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/suaveplan/storagemux/internal/controller/fleet/fleettest"
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/render"
)

// adminPort is where the operator asks proxies.
const adminPort = "8081"

// proxies stands in for Deployments, nodes and proxies: each mux gets pods once
// its document is there, whose proxies take up every later one at once.
type proxies struct {
	cluster client.Client
	perMux  int

	work chan *corev1.Secret

	mu     sync.Mutex
	number int
	byMux  map[string]*muxProxies
	failed error
}

// muxProxies are the proxies of one mux.
type muxProxies struct {
	mu      sync.Mutex
	list    []*fleettest.Proxy
	applied *muxconfig.Document
	at      time.Time // when the last document was taken up
}

// take is called with every config Secret that came or changed.
func (p *proxies) take(ctx context.Context, secret *corev1.Secret) {
	select {
	case p.work <- secret:
	case <-ctx.Done():
	}
}

func (p *proxies) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case secret := <-p.work:
			if err := p.apply(ctx, secret); err != nil && ctx.Err() == nil {
				p.mu.Lock()
				p.failed = err
				p.mu.Unlock()
			}
		}
	}
}

func (p *proxies) of(mux string) *muxProxies {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byMux[mux] == nil {
		p.byMux[mux] = &muxProxies{}
	}
	return p.byMux[mux]
}

func (p *proxies) apply(ctx context.Context, secret *corev1.Secret) error {
	name, ok := strings.CutSuffix(secret.Name, render.ConfigSecretName(""))
	if !ok {
		return nil
	}
	document, err := muxconfig.Decode(secret.Data[muxconfig.SecretKey])
	if err != nil {
		return fmt.Errorf("read the document of %s: %w", name, err)
	}
	m := p.of(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.applied != nil && !document.Supersedes(m.applied) {
		return nil
	}
	for _, proxy := range m.list {
		proxy.Apply(document)
	}
	m.applied, m.at = document, time.Now()
	for i := len(m.list); i < p.perMux; i++ {
		proxy, err := p.start(ctx, secret.Namespace, name, i, document)
		if err != nil {
			return err
		}
		m.list = append(m.list, proxy)
	}
	return nil
}

// start makes a proxy and the pod that it is in.
func (p *proxies) start(ctx context.Context, namespace, mux string, index int, document *muxconfig.Document) (*fleettest.Proxy, error) {
	p.mu.Lock()
	p.number++
	ip := fmt.Sprintf("127.%d.%d.%d", 1+p.number/62500, p.number/250%250, p.number%250+1)
	p.mu.Unlock()
	l, err := net.Listen("tcp", net.JoinHostPort(ip, adminPort))
	if err != nil {
		return nil, err
	}
	proxy := fleettest.Serve(l, document)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-%d", mux, index), Labels: render.ChildLabels(mux)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "proxy", Image: "localhost/storagemux:scale"}}},
	}
	if err := p.cluster.Create(ctx, pod); err != nil {
		return nil, err
	}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
		Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "proxy", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
	}
	return proxy, p.cluster.Status().Update(ctx, pod)
}

// each calls f for every proxy.
func (p *proxies) each(f func(*fleettest.Proxy)) {
	p.mu.Lock()
	var all []*muxProxies
	for _, m := range p.byMux {
		all = append(all, m)
	}
	p.mu.Unlock()
	for _, m := range all {
		m.mu.Lock()
		list := m.list
		m.mu.Unlock()
		for _, proxy := range list {
			f(proxy)
		}
	}
}

func (p *proxies) stop() {
	var ended sync.WaitGroup
	p.each(func(proxy *fleettest.Proxy) { ended.Go(proxy.Stop) })
	ended.Wait()
}
