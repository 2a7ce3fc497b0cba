//go:build race

package muxengine

// raceDetector: allocations and speed are not what they are.
const raceDetector = true
