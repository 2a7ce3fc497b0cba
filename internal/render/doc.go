// Package render turns resources and facts into what is to be: whether a mux is
// accepted, the document its proxies get, how far each drain has come, and the
// child objects as apply configurations. Everything in it is a pure function:
// no client, no clock, no logging, no randomness.
//
// It imports api, muxconfig and the fallback URI parser.
package render
