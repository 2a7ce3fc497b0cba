package muxconfig

import (
	"fmt"
	"log/slog"
	"time"
)

// Secret is text that is written to the wire and nowhere else: every way to
// print it, fmt and slog included, shows a placeholder.
type Secret string

const redacted = "[redacted]"

// Reveal returns the text itself.
func (s Secret) Reveal() string { return string(s) }

// String implements fmt.Stringer.
func (s Secret) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (s Secret) GoString() string { return redacted }

// Format implements fmt.Formatter, for verbs that String does not cover.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// A struct that holds Secrets behind a pointer needs a Format of its own: of
// such a pointer fmt prints the fields as they are when the verb does not fit.
// The ones below print their type and what identifies them.

// Format implements fmt.Formatter.
func (d Document) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "document %s/%s revision %d", d.Owner.Namespace, d.Owner.Name, d.Revision)
}

// Format implements fmt.Formatter.
func (x Frontend) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "frontend of bucket %s", x.Bucket)
}

// Format implements fmt.Formatter.
func (p KeyPair) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "key pair %s", p.AccessKeyID) }

// Format implements fmt.Formatter.
func (KeyCert) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("certificate and key")) }

// Format implements fmt.Formatter.
func (Admin) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("admin token and certificate")) }

// Format implements fmt.Formatter.
func (Keys) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("sealing keys")) }

// Format implements fmt.Formatter.
func (b Backend) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "backend %s (%s)", b.Name, b.UID) }

// Format implements fmt.Formatter.
func (s S3) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "bucket %s of %q", s.Bucket, s.Endpoint)
}

// Format implements fmt.Formatter.
func (a S3Auth) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "auth %s %s", a.Type, a.AccessKeyID)
}

// Duration is a time.Duration that is text ("1m30s") on the wire.
type Duration time.Duration

// Std returns d as the standard type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String implements fmt.Stringer.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q must be a duration such as 30s", text)
	}
	*d = Duration(parsed)
	return nil
}
