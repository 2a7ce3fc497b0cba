// Package controller is the operator: one reconciler for each kind, and around
// them what is shared, one file per concern. Reconcilers only gather facts and
// carry out results; what to do is decided in package render, what to say in
// package status, and what proxies say is collected by package fleet.
//
// It imports api, render and muxconfig, and never the engine or the proxy.
package controller
