// Command rclone is rclone with the remotes and commands that this project's
// measurements and tests use, so that it builds in a minute.
package main

import (
	_ "github.com/rclone/rclone/backend/s3"
	_ "github.com/rclone/rclone/backend/union"
	"github.com/rclone/rclone/cmd"
	_ "github.com/rclone/rclone/cmd/serve"
	_ "github.com/rclone/rclone/cmd/serve/s3"
	_ "github.com/rclone/rclone/cmd/version"
)

func main() { cmd.Main() }
