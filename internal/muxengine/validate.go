package muxengine

import (
	"github.com/suaveplan/storagemux/internal/storage"
)

// complete fills in the defaults of cfg and of the muxes below it, in a copy.
func complete(cfg Config) *Config {
	if cfg.Keyspace == "" {
		cfg.Keyspace = KeyspaceReplicated
	}
	if cfg.BackendTimeout <= 0 {
		cfg.BackendTimeout = DefaultBackendTimeout
	}
	if cfg.Health.Cooldown <= 0 {
		cfg.Health.Cooldown = DefaultCooldown
	}
	if cfg.Health.MaxCooldown <= 0 {
		cfg.Health.MaxCooldown = DefaultMaxCooldown
	}
	if cfg.Health.WhenAllDown == "" {
		cfg.Health.WhenAllDown = WhenAllDownFail
	}
	if cfg.OnFanoutPartial == "" {
		cfg.OnFanoutPartial = FanoutPartialSucceed
	}
	if cfg.StickyHash == "" {
		cfg.StickyHash = StickyFNV1aModulo
	}
	members := make([]Member, len(cfg.Members))
	copy(members, cfg.Members)
	for i := range members {
		if members[i].Mux != nil {
			members[i].Mux = complete(*members[i].Mux)
		}
		if members[i].DrainTimeout <= 0 {
			members[i].DrainTimeout = DefaultDrainTimeout
		}
	}
	cfg.Members = members
	return &cfg
}

// validate refuses a cfg that New and Apply must not take. depth is the number
// of muxes around and including this one, ids the identities seen so far.
func validate(cfg *Config, path string, depth int, ids map[string]bool) error {
	if depth > MaxDepth {
		return configError(cfg, storage.CodeRecursionDepthExceeded, "", "muxes are nested more than %d deep", MaxDepth)
	}
	if err := validateSelf(cfg); err != nil {
		return err
	}
	names := map[string]bool{}
	for i := range cfg.Members {
		m := &cfg.Members[i]
		here := join(path, m.Name)
		id := identity(m, here)
		switch {
		case m.Name == "":
			return configError(cfg, storage.CodeBackendNameConflict, "", "backend %d has no name", i)
		case names[m.Name]:
			return configError(cfg, storage.CodeBackendNameConflict, m.Name, "two backends are named %q", m.Name)
		case ids[id]:
			return configError(cfg, storage.CodeBackendNameConflict, m.Name, "two backends have the identity %q", id)
		case (m.Storage == nil) == (m.Mux == nil):
			return configError(cfg, storage.CodeNoBackendsConfigured, m.Name, "backend %q must be either a storage or a mux", m.Name)
		}
		names[m.Name], ids[id] = true, true
		if m.Mux != nil {
			if err := validate(m.Mux, here, depth+1, ids); err != nil {
				return err
			}
		}
		if foreign, ok := m.Storage.(*Mux); ok && depth+foreign.depth() > MaxDepth {
			return configError(cfg, storage.CodeRecursionDepthExceeded, m.Name, "muxes are nested more than %d deep", MaxDepth)
		}
	}
	return nil
}

func validateSelf(cfg *Config) error {
	mode, ok := modes[cfg.Mode]
	switch {
	case !ok:
		return configError(cfg, storage.CodeInvalidMode, "", "there is no mode %q", cfg.Mode)
	case len(cfg.Members) == 0:
		return configError(cfg, storage.CodeNoBackendsConfigured, "", "a mux needs at least one backend")
	case len(cfg.Members) > MaxMembers:
		return configError(cfg, storage.CodeInvalidMode, "", "a mux has at most %d backends, not %d", MaxMembers, len(cfg.Members))
	case cfg.Keyspace == KeyspaceSpread && !mode.spread:
		return configError(cfg, storage.CodeInvalidMode, "", "mode %s presumes that all backends hold the same keys and cannot have keyspace spread", cfg.Mode)
	case cfg.Keyspace != KeyspaceSpread && cfg.Keyspace != KeyspaceReplicated:
		return configError(cfg, storage.CodeInvalidMode, "", "there is no keyspace %q", cfg.Keyspace)
	case mode.check != nil:
		return mode.check(cfg)
	}
	return nil
}
