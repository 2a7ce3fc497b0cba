// Package tracing sends spans to an OTLP collector as the standard OTEL_*
// variables of the environment say, and takes trace contexts from clients. It
// imports nothing of this module.
package tracing
