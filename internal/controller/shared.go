package controller

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/suaveplan/storagemux/internal/controller/fleet"
	"github.com/suaveplan/storagemux/internal/render"
)

// shared is what both reconcilers work with.
type shared struct {
	// client reads from the cache and writes; live reads from the API server.
	client client.Client
	live   client.Reader

	documents  *documents
	references *references
	applied    *appliedChildren
	leadership *leadership
	upgrades   *upgrades
	fleet      *fleet.Fleet
	graph      graph
	budget     *figureBudget
	writes     *ownWrites
	turns      *turns
	events     eventSink
	render     render.Options
	now        func() time.Time

	// muxes and backends wake the two reconcilers.
	muxes, backends *waker
}
