//go:build !race

package muxengine

const raceDetector = false
