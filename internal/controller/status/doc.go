// Package status puts together what the status of a StorageMux and of a
// StorageBackend says, from the verdicts of render and the reports of proxies.
// Everything in it is a pure function: no client, no clock, no logging.
//
// It imports api, render and muxconfig.
package status
