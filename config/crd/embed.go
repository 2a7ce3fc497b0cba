// Package crd holds the CustomResourceDefinitions as the generator wrote them,
// for programs that apply their schema, defaults and rules without an API
// server. It imports nothing.
package crd

import "embed"

// Bases are the definitions, one YAML file each, under the folder "bases".
//
//go:embed bases/*.yaml
var Bases embed.FS
