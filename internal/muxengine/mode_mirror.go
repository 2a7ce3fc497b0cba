package muxengine

// mirror treats its members alike: reads take the first answer, writes go to
// all and need one success.
var mirror = mode{
	name: ModeMirror, read: race, write: fanOut, list: race,
	next:   inOrder,
	spread: true,
}
