package muxconfig

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// InvalidError names the field of a document that breaks a rule, and the rule.
type InvalidError struct {
	Field, Rule string
}

// Error implements error.
func (e *InvalidError) Error() string {
	if e.Field == "" {
		return e.Rule
	}
	return e.Field + ": " + e.Rule
}

func invalid(field, format string, args ...any) error {
	return &InvalidError{Field: field, Rule: fmt.Sprintf(format, args...)}
}

// Validate checks all of d but its size: versions, the frontend, each mux and
// backend by itself, and the topology as a whole. The first broken rule is
// returned, as an InvalidError.
func Validate(d *Document) error {
	checks := []func(*Document) error{
		validateHead, validateFrontend, validateAdmin, validateMuxes, validateBackends, validateTopology, validateSchema,
	}
	for _, check := range checks {
		if err := check(d); err != nil {
			return err
		}
	}
	return nil
}

func validateHead(d *Document) error {
	switch {
	case d.Schema < MinSchemaVersion || d.Schema > SchemaVersion:
		return invalid("schema", "version %d must be %d to %d", d.Schema, MinSchemaVersion, SchemaVersion)
	case d.Revision < 1:
		return invalid("revision", "must be at least 1")
	case d.Transitions < 0:
		return invalid("transitions", "must not be negative")
	}
	return nil
}

// validateSchema refuses what proxies that read only d's schema do not know.
func validateSchema(d *Document) error {
	if needed, field := NeedsSchema(d); needed > d.Schema {
		return invalid("schema", "must be at least %d for %s", needed, field)
	}
	return nil
}

func validateFrontend(d *Document) error {
	f := d.Frontend
	if f.Bucket == "" {
		return invalid("frontend.bucket", "must not be empty")
	}
	if len(f.Domains) > MaxDomains {
		return invalid("frontend.domains", "must have at most %d entries", MaxDomains)
	}
	for i, domain := range f.Domains {
		if domain == "" || domain != strings.ToLower(domain) || strings.ContainsAny(domain, ":/ ") {
			return invalid(fmt.Sprintf("frontend.domains[%d]", i), "must be a DNS name in lower case, without a port")
		}
	}
	switch f.Auth {
	case FrontendNone:
		if len(f.KeyPairs) > 0 {
			return invalid("frontend.keyPairs", "must be empty with auth None")
		}
	case FrontendSigV4:
		if len(f.KeyPairs) < 1 || len(f.KeyPairs) > MaxKeyPairs {
			return invalid("frontend.keyPairs", "must have 1 to %d entries with auth SigV4", MaxKeyPairs)
		}
	default:
		return invalid("frontend.auth", "%q must be SigV4 or None", f.Auth)
	}
	for i, pair := range f.KeyPairs {
		if pair.AccessKeyID == "" || pair.SecretAccessKey == "" {
			return invalid(fmt.Sprintf("frontend.keyPairs[%d]", i), "must have an access key id and a secret access key")
		}
	}
	if f.TLS != nil && (f.TLS.Cert == "" || f.TLS.Key == "") {
		return invalid("frontend.tls", "must have a certificate and its key")
	}
	return nil
}

func validateAdmin(d *Document) error {
	if d.Admin.Token == "" || d.Admin.TLS.Cert == "" || d.Admin.TLS.Key == "" {
		return invalid("admin", "must have a token, a certificate and its key")
	}
	for field, key := range map[string]Secret{"keys.current": d.Keys.Current, "keys.previous": d.Keys.Previous} {
		if key == "" && field == "keys.previous" {
			continue
		}
		if raw, err := base64.StdEncoding.DecodeString(key.Reveal()); err != nil || len(raw) != 32 {
			return invalid(field, "must be 32 bytes in base64")
		}
	}
	return nil
}

func validateMuxes(d *Document) error {
	if !slices.IsSortedFunc(d.Muxes, func(a, b Mux) int { return cmp.Compare(a.Name, b.Name) }) {
		return invalid("muxes", "must be sorted by name")
	}
	for i := range d.Muxes {
		if i > 0 && d.Muxes[i].Name == d.Muxes[i-1].Name {
			return invalid("muxes", "two muxes are named %q", d.Muxes[i].Name)
		}
		if err := validateMux(&d.Muxes[i], len(d.Released) > 0); err != nil {
			return err
		}
	}
	return nil
}

// validateMux checks one mux. Below its mode's minimum a mux may only fall
// where members were let go by force; it then serves nothing.
func validateMux(m *Mux, released bool) error {
	field := func(name string) string { return fmt.Sprintf("muxes[%s].%s", m.Name, name) }
	switch {
	case m.Name == "" || m.UID == "":
		return invalid("muxes", "each mux must have a name and a uid")
	case IsLadder(m.Name) != (m.Mode == ModeFallback):
		return invalid(field("mode"), "%s must be the mode of the candidates of a fallback backend, and of nothing else", ModeFallback)
	case !IsLadder(m.Name) && !slices.Contains(Modes(), m.Mode):
		return invalid(field("mode"), "%q must be one of %v", m.Mode, Modes())
	case m.Keyspace != KeyspaceReplicated && m.Keyspace != KeyspaceSpread:
		return invalid(field("keyspace"), "%q must be replicated or spread", m.Keyspace)
	case m.Keyspace == KeyspaceSpread && !ModeTakesSpread(m.Mode):
		return invalid(field("keyspace"), "must be replicated in mode %s", m.Mode)
	case IsLadder(m.Name) && m.Keyspace != KeyspaceReplicated:
		return invalid(field("keyspace"), "must be replicated in mode %s", m.Mode)
	case len(m.Members) < MinMembers(m.Mode) && !released:
		return invalid(field("members"), "must have at least %d in mode %s", MinMembers(m.Mode), m.Mode)
	case m.BackendTimeout <= 0:
		return invalid(field("backendTimeout"), "must be above zero")
	case m.Retry.MaxAttempts < 1:
		return invalid(field("retry.maxAttempts"), "must be at least 1")
	case m.Retry.InitialInterval < 0 || m.Retry.MaxInterval < m.Retry.InitialInterval:
		return invalid(field("retry"), "initialInterval must not be negative nor above maxInterval")
	case m.Health.Cooldown <= 0 || m.Health.MaxCooldown < m.Health.Cooldown:
		return invalid(field("health"), "cooldown must be above zero and at most maxCooldown")
	case m.Health.WhenAllDown != AllDownTry && m.Health.WhenAllDown != AllDownFail:
		return invalid(field("health.whenAllDown"), "%q must be Try or Fail", m.Health.WhenAllDown)
	case m.StickyHash != "" && m.StickyHash != StickyFNV1aModulo && m.StickyHash != StickyRendezvous:
		return invalid(field("stickyHash"), "%q must be fnv1a-modulo or rendezvous", m.StickyHash)
	case m.OnFanoutPartial != "" && m.OnFanoutPartial != FanoutPartialSucceed && m.OnFanoutPartial != FanoutPartialFail:
		return invalid(field("onFanoutPartial"), "%q must be Succeed or Fail", m.OnFanoutPartial)
	}
	return validateMembers(m)
}

func validateMembers(m *Mux) error {
	seen := map[string]bool{}
	var total int64
	for i := range m.Members {
		member := &m.Members[i]
		field := fmt.Sprintf("muxes[%s].members[%s]", m.Name, member.Name)
		switch {
		case member.Name == "":
			return invalid(field, "must have a name")
		case strings.Contains(member.Name, "/"):
			return invalid(field, "the name must not contain a slash")
		case seen[member.Name]:
			return invalid(field, "two members have this name")
		case (member.Backend == "") == (member.Mux == ""):
			return invalid(field, "must name exactly one of backend and mux")
		case m.Mode == ModeWeighted && member.Weight == nil:
			return invalid(field+".weight", "must be set in mode weighted")
		case m.Mode != ModeWeighted && member.Weight != nil:
			return invalid(field+".weight", "must be set in mode weighted only")
		case member.Weight != nil && *member.Weight < 0:
			return invalid(field+".weight", "must not be negative")
		}
		if drain := member.Drain; drain != nil {
			if drain.Phase != DrainReadOnly && drain.Phase != DrainGranted {
				return invalid(field+".drain.phase", "%q must be ReadOnly or Granted", drain.Phase)
			}
			if (drain.Phase == DrainGranted) != (drain.Deadline != nil) {
				return invalid(field+".drain.deadline", "must be set in phase Granted only")
			}
		}
		seen[member.Name] = true
		if member.Weight != nil {
			total += int64(*member.Weight)
		}
	}
	if m.Mode == ModeWeighted && total == 0 && len(m.Members) > 0 {
		return invalid(fmt.Sprintf("muxes[%s].members", m.Name), "at least one weight must be above zero")
	}
	return nil
}

func validateBackends(d *Document) error {
	if !slices.IsSortedFunc(d.Backends, func(a, b Backend) int { return cmp.Compare(a.Name, b.Name) }) {
		return invalid("backends", "must be sorted by name")
	}
	uids := map[string]bool{}
	for i := range d.Backends {
		b := &d.Backends[i]
		field := fmt.Sprintf("backends[%s]", b.Name)
		switch {
		case b.Name == "" || b.UID == "":
			return invalid("backends", "each backend must have a name and a uid")
		case i > 0 && b.Name == d.Backends[i-1].Name:
			return invalid("backends", "two backends are named %q", b.Name)
		case uids[b.UID]:
			return invalid(field+".uid", "another backend has it too")
		case b.Timeout < 0:
			return invalid(field+".timeout", "must not be negative")
		case b.MaxInFlight < 1:
			return invalid(field+".maxInFlight", "must be at least 1")
		case b.HealthCheck != nil && (b.HealthCheck.Interval <= 0 || b.HealthCheck.Timeout <= 0):
			return invalid(field+".healthCheck", "interval and timeout must be above zero")
		}
		if err := validateBackendType(d, field, b); err != nil {
			return err
		}
		uids[b.UID] = true
	}
	return nil
}

func validateBackendType(d *Document, field string, b *Backend) error {
	types := 0
	if b.S3 != nil {
		types++
		switch auth := b.S3.Auth; {
		case b.S3.Bucket == "":
			return invalid(field+".s3.bucket", "must not be empty")
		case !slices.Contains([]string{AddressingAuto, AddressingPath, AddressingVirtualHosted}, b.S3.AddressingStyle):
			return invalid(field+".s3.addressingStyle", "%q must be Auto, Path or VirtualHosted", b.S3.AddressingStyle)
		case auth.Type == AuthSecret && (auth.AccessKeyID == "" || auth.SecretAccessKey == ""):
			return invalid(field+".s3.auth", "must have an access key id and a secret access key")
		case auth.Type != AuthSecret && auth.Type != AuthAmbient && auth.Type != AuthAnonymous:
			return invalid(field+".s3.auth.type", "%q must be Secret, Ambient or Anonymous", auth.Type)
		}
	}
	if b.HTTP != nil {
		types++
		if err := validateHTTP(field+".http", b.HTTP); err != nil {
			return err
		}
	}
	if b.Bunny != nil {
		types++
		if err := validateBunny(field+".bunny", b.Bunny); err != nil {
			return err
		}
	}
	if b.Swift != nil {
		types++
		if err := validateSwift(field+".swift", b.Swift); err != nil {
			return err
		}
	}
	if b.Azure != nil {
		types++
		if err := validateAzure(field+".azure", b.Azure); err != nil {
			return err
		}
	}
	if b.File != nil {
		types++
		if b.File.Path == "" {
			return invalid(field+".file.path", "must not be empty")
		}
	}
	if b.Memory != nil {
		types++
		if b.Memory.SizeLimit < 1 {
			return invalid(field+".memory.sizeLimit", "must be at least 1 byte")
		}
	}
	if b.Fallback != nil {
		types++
		if err := validateFallback(d, field+".fallback", b); err != nil {
			return err
		}
	}
	if types != 1 {
		return invalid(field, "must have exactly one type that this version knows")
	}
	return nil
}

func validateTopology(d *Document) error { return Walk(d, nil) }
