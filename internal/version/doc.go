// Package version knows which version of the project a binary was built from. It imports nothing of ours and is
// meant for the commands under cmd, which hand the version on to whoever has to show it.
package version
