package servers

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// Network is the way to a server, which can be told to break.
type Network struct{ proxy *toxiproxy.Proxy }

// Fault is something that goes wrong on a network: a toxic of toxiproxy.
type Fault struct {
	Type string `json:"type"`
	// Stream is upstream, for what the client sends, or downstream.
	Stream string `json:"stream"`
	// Toxicity is the share of connections that it happens to.
	Toxicity   float64          `json:"toxicity"`
	Attributes map[string]int64 `json:"attributes"`
}

// Resets resets a connection with the first bytes of the stream, which are lost.
func Resets(stream string) []Fault {
	return []Fault{{Type: "reset_peer", Stream: stream, Toxicity: 1}}
}

// Ends closes a connection in order after so many bytes of the stream.
func Ends(stream string, after int64) []Fault {
	return []Fault{{Type: "limit_data", Stream: stream, Toxicity: 1, Attributes: map[string]int64{"bytes": after}}}
}

// ResetsAfter resets a connection after so many bytes of the stream. A reset
// that happens to no connection makes all of them end in one.
func ResetsAfter(stream string, after int64) []Fault {
	return append(Ends(stream, after), Fault{Type: "reset_peer", Stream: stream, Toxicity: 0})
}

// Stalls lets nothing of the stream through.
func Stalls(stream string) []Fault {
	return []Fault{{Type: "timeout", Stream: stream, Toxicity: 1, Attributes: map[string]int64{"timeout": 0}}}
}

// Slows lets so many KiB of the stream through each second, in small pieces.
func Slows(stream string, rate int64) []Fault {
	return []Fault{
		{Type: "slicer", Stream: stream, Toxicity: 1, Attributes: map[string]int64{"average_size": 5000, "size_variation": 4000, "delay": 10}},
		{Type: "bandwidth", Stream: stream, Toxicity: 1, Attributes: map[string]int64{"rate": rate}},
	}
}

// ThroughNetwork puts a network without faults before the server at address.
func ThroughNetwork(t testing.TB, address string) *Network {
	t.Helper()
	logger := zerolog.Nop()
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), logger)
	n := &Network{toxiproxy.NewProxy(api, "network", "127.0.0.1:0", address)}
	if err := n.proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.proxy.Stop)
	return n
}

// Address is where the server is reached.
func (n *Network) Address() string { return n.proxy.Listen }

// Break makes the faults happen to connections that are made from now on.
func (n *Network) Break(t testing.TB, faults []Fault) {
	t.Helper()
	for _, fault := range faults {
		document, err := json.Marshal(fault)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.proxy.Toxics.AddToxicJson(bytes.NewReader(document)); err != nil {
			t.Fatal(err)
		}
	}
}

// Mend ends all faults.
func (n *Network) Mend(t testing.TB) { n.proxy.Toxics.ResetToxics(t.Context()) }
