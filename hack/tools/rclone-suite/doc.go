// Package suite pins rclone and what the tests of its s3 backend need, so that
// hack/clients/run.sh can build them: go test -c github.com/rclone/rclone/backend/s3.
package suite

import (
	_ "github.com/rclone/rclone/backend/s3"
	_ "github.com/rclone/rclone/fstest/fstests"
)
