// Package clients runs real S3 clients against `storagemux serve` in every mode
// over real stores, each client with its defaults wherever it can be, and writes
// what came out to docs/clients.md; beside them rclone's own test suite, with
// docs/rclone-suite.md. `make test-clients` installs the clients and runs it; it
// knows nothing of this module but the binary.
package clients
