package muxengine

import "github.com/suaveplan/storagemux/internal/storage"

// shield reads from its first member, the origin, and from the others, the
// mirrors, when that fails. It writes to all, and the origin's outcome decides.
var shield = mode{
	name: ModeShield, read: walk, write: fanOut, list: walk,
	next:          inOrder,
	spread:        true,
	originDecides: true,
	check: func(cfg *Config) error {
		if len(cfg.Members) < 2 {
			return configError(cfg, storage.CodeMirrorOriginRequired, "", "a shield needs an origin and at least one mirror")
		}
		return nil
	},
}
