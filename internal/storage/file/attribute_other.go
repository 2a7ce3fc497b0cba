//go:build !linux && !darwin && !freebsd && !netbsd

package file

import (
	"errors"
	"os"
	"strings"
	"syscall"
)

// Elsewhere there are no extended attributes: the store keeps content only,
// and its capabilities say so. A folder must then be used by one process only.

func setAttribute(*os.File, []byte) error   { return errors.ErrUnsupported }
func getAttribute(*os.File) ([]byte, error) { return nil, nil }
func lock(*os.File, bool) error             { return nil }
func tryLock(*os.File) bool                 { return true }
func outOfSpace(err error) bool             { return errors.Is(err, syscall.ENOSPC) }
func tooLongName(err error) bool            { return errors.Is(err, syscall.ENAMETOOLONG) }
func tooLargeFile(error) bool               { return false }
func readOnly(error) bool                   { return false }
func tooLargeAttribute(error) bool          { return false }
func isDirectory(err error) bool {
	return errors.Is(err, os.ErrExist) || errors.Is(err, syscall.EISDIR) || errors.Is(err, os.ErrPermission)
}
func notDirectory(err error) bool {
	return errors.Is(err, syscall.ENOTDIR) || err != nil && strings.Contains(err.Error(), "not a directory")
}

const openFlags = os.O_RDONLY
