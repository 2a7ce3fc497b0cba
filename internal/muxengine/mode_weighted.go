package muxengine

import "github.com/suaveplan/storagemux/internal/storage"

// weighted draws each member with a probability in proportion to its weight.
// A draw that hits a member that was tried already is not mapped onto another
// one, since that would give its neighbour more than its share; when the draws
// are used up, what was not tried follows in configured order.
var weighted = mode{
	name: ModeWeighted, read: walk, write: walk, list: walk,
	next:   byWeight,
	takes:  func(m *member) bool { return m.weight > 0 },
	check:  checkWeights,
	weighs: true,
}

func byWeight(p *pick) int {
	for p.draws < len(p.set.index) {
		p.draws++
		if at := p.set.alias.draw(p.node.mux.rand()); !p.tried.has(p.set.index[at]) {
			return at
		}
	}
	for at, i := range p.set.index {
		if !p.tried.has(i) {
			return at
		}
	}
	return 0
}

func checkWeights(cfg *Config) error {
	total := 0
	for i := range cfg.Members {
		m := &cfg.Members[i]
		switch {
		case m.Weight == nil:
			return configError(cfg, storage.CodeWeightedRequiresWeights, m.Name, "mode weighted needs a weight for every backend, and %q has none", m.Name)
		case *m.Weight < 0:
			return configError(cfg, storage.CodeInvalidWeight, m.Name, "the weight of %q is %d and must not be negative", m.Name, *m.Weight)
		}
		total += *m.Weight
	}
	if total == 0 {
		return configError(cfg, storage.CodeInvalidWeight, "", "the weights must not all be zero")
	}
	return nil
}
