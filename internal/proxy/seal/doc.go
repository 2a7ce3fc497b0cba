// Package seal protects what clients hold between two requests, such as list
// tokens, with keys that all proxies of a mux share: any replica opens what
// another sealed, and a key can be replaced while tokens are out.
//
// It imports nothing of this module.
package seal
